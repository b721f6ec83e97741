"""Training steps/s of ours and of Stable-Baselines3's PPO, in turn, on this machine.

python -m benchmarks.train_speed --peer-python PATH      (an environment with stable-baselines3 and
torch; the machine should do nothing else). Writes benchmarks/results/train_speed.{json,md}.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RESULTS = HERE / "results"


def contenders(peer: str) -> dict[str, list[str]]:
    """Name -> command; each prints one JSON line with steps_per_s and versions."""
    ours = [sys.executable, "-m", "benchmarks.ours_train", "--network"]
    sb3 = [peer, str(HERE / "peers" / "sb3_train.py"), "--vector"]
    return {
        "ours, cnn": [*ours, "cnn"],
        "ours, cnn_sparse_fls": [*ours, "cnn_sparse_fls"],
        "SB3 PPO NatureCNN, DummyVecEnv": [*sb3, "dummy"],
        "SB3 PPO NatureCNN, SubprocVecEnv": [*sb3, "subproc"],
    }


def measure(command: list[str], updates: int) -> dict[str, Any]:
    """Run one contender in a process of its own."""
    done = subprocess.run(
        [*command, "--updates", str(updates)],
        capture_output=True,
        text=True,
        check=True,
        cwd=HERE.parent,
    )
    return json.loads(done.stdout.strip().splitlines()[-1])


def summarise(runs: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Medians, and ratios to SB3's better vector env."""
    rows = {
        name: {
            "steps_per_s": [round(run["steps_per_s"], 1) for run in of_one],
            "median": statistics.median(run["steps_per_s"] for run in of_one),
            "versions": of_one[0]["versions"],
        }
        for name, of_one in runs.items()
    }
    best = max(row["median"] for name, row in rows.items() if name.startswith("SB3"))
    for row in rows.values():
        row["ratio_to_best_sb3"] = round(row["median"] / best, 2)
        row["median"] = round(row["median"], 1)
    return {
        "machine": {"cores": len(os.sched_getaffinity(0)), "processor": platform.machine()},
        "rows": rows,
    }


def table(summary: dict[str, Any]) -> str:
    lines = [
        f"{summary['machine']['cores']} cores, Breakout, 8 envs, float32; medians",
        "",
        "| | steps/s | over the better SB3 | runs |",
        "|---|---|---|---|",
    ]
    for name, row in summary["rows"].items():
        runs = ", ".join(map(str, row["steps_per_s"]))
        lines.append(f"| {name} | {row['median']} | {row['ratio_to_best_sb3']} | {runs} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=6)
    arguments = parser.parse_args()
    commands = contenders(arguments.peer_python)
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in commands}
    for _ in range(arguments.rounds):
        for name, command in commands.items():
            runs[name].append(measure(command, arguments.updates))
            print(f"{name}: {runs[name][-1]['steps_per_s']:.1f} steps/s", flush=True)
    summary = summarise(runs)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "train_speed.json").write_text(json.dumps(summary, indent=4) + "\n")
    (RESULTS / "train_speed.md").write_text(table(summary))
    print(table(summary))


if __name__ == "__main__":
    main()
