"""Kill a training run at random moments, resume it, and compare it with one that never stopped.

python scripts/soak.py --cycles 30

Every cycle trains a small agent in a process that is ended one to three times (SIGKILL, SIGTERM or
SIGINT, while it trains, writes a checkpoint or starts) and resumed; now and then the newest
checkpoint is damaged, too. Its model, logs and monitor files must then equal the reference's, times
aside. Afterwards a long evaluation is watched: neither memory nor open files may grow.
"""

import argparse
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import psutil

from fl_saliency.checkpoints.baselines import read_model
from fl_saliency.checkpoints.snapshots import find_snapshots
from fl_saliency.logs.readers import (
    monitor_files,
    read_monitor,
    read_progress,
    read_tensorboard,
)

ROOT = Path(__file__).resolve().parents[1]
TRAIN = [
    *(sys.executable, str(ROOT / "train_baselines.py"), "--network", "cnn_daqn"),
    *("--num-envs", "4", "--num-steps", "16", "--env-workers", "2", "--train-seed", "7"),
    *("--checkpoint-minutes", "0.01", "--resume"),
]
TIMES = ["fps", "time_elapsed", "wall_time"]
FINISHED = "finished by itself"
SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)


def differences(first: Path, second: Path) -> list[str]:
    """In what two run directories differ, times aside; nothing if they are equal."""
    found = [] if _same_models(first, second) else ["model.pkl"]
    logs = [read_progress(run / "logs" / "progress.csv") for run in (first, second)]
    if not _same_tables(*logs):
        found.append("progress.csv")
    events = [read_tensorboard(run / "tb") for run in (first, second)]
    if not _same_tables(*events) or not events[1].index.is_monotonic_increasing:
        found.append("TensorBoard")
    files = [monitor_files(run / "logs") for run in (first, second)]
    for one, other in zip(*files, strict=True):
        games = [read_monitor(path).episodes.drop(columns="t") for path in (one, other)]
        if not games[0].equals(games[1]):
            found.append(one.name)
    return found


def _same_models(first: Path, second: Path) -> bool:
    one, other = (read_model(run / "model.pkl") for run in (first, second))
    pairs = zip(one.arrays, other.arrays, strict=True)
    return one.names == other.names and all(np.array_equal(*pair) for pair in pairs)


def _same_tables(first: pd.DataFrame, second: pd.DataFrame) -> bool:
    one, other = (table.drop(columns=TIMES, errors="ignore") for table in (first, second))
    return one.equals(other)


@dataclass
class Cycle:
    """One run that is ended and resumed."""

    run: Path
    steps: int
    seconds: float
    """How long the reference trained, from its first checkpoint on."""
    rng: random.Random
    parts: int = 1
    """How often it is ended."""

    def play(self) -> list[str]:
        """End and resume the run until it is finished; returns what happened to it."""
        events: list[str] = []
        self.parts = self.rng.randint(1, 3)
        for _ in range(self.parts):
            events.append(self._end_somewhere())
            if events[-1] == FINISHED:
                break
            if self.rng.random() < 0.3 and self._damage():
                events.append("newest checkpoint damaged")
        finish(self.run, self.steps)
        return events

    def _end_somewhere(self) -> str:
        number = self.rng.choice(SIGNALS)
        with started(self.run, self.steps) as process:
            wait_for_training(process, self.run)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(self.rng.uniform(0, 0.9 * self.seconds / self.parts))
            if process.poll() is not None:
                return FINISHED
            process.send_signal(number)
            process.wait()
        newest = find_snapshots(self.run / "checkpoints")
        update = int(newest[0].name) if newest else 0
        return f"{signal.Signals(number).name} after checkpoint {update}"

    def _damage(self) -> bool:
        """Spoil the newest checkpoint, if there is an older one to go back to."""
        found = find_snapshots(self.run / "checkpoints")
        if len(found) < 2:
            return False
        file = found[0] / "arrays.safetensors"
        content = bytearray(file.read_bytes())
        content[self.rng.randrange(len(content))] ^= 0xFF
        file.write_bytes(content[: self.rng.choice((len(content), len(content) // 2))])
        return True


@contextlib.contextmanager
def started(run: Path, steps: int) -> Iterator["subprocess.Popen[bytes]"]:
    """A training process in `run`, which does not outlive the block."""
    command = [*TRAIN, "--num-timesteps", str(steps), "--output-dir", str(run)]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def wait_for_training(process: "subprocess.Popen[bytes]", run: Path) -> None:
    """Wait until `process` has taken the run directory."""
    while process.poll() is None and not (run / ".lock").exists():
        time.sleep(0.02)


def finish(run: Path, steps: int) -> float:
    """Train to the end; returns the seconds since the process took the folder."""
    with started(run, steps) as process:
        wait_for_training(process, run)
        began = time.monotonic()
        if process.wait() != 0:
            raise SystemExit(f"the run in {run} ended with status {process.returncode}")
    return time.monotonic() - began


def watch_evaluation(run: Path, folder: Path, steps: int) -> bool:
    """Evaluate `run` for about `steps` agent steps in each of 4 envs; tell memory and open files.

    Compared are the first and the last fifth of the time since the first games were finished: what
    comes before is the start, in which memory and files have yet to be taken.
    """
    command = [sys.executable, str(ROOT / "run_baselines.py"), "--experiment-dir", str(run)]
    command += ["--num-env", "4", "--evals-per-env", str(steps // 25), "--max-eplen", "100"]
    output = folder / "eval"
    samples: list[tuple[int, int]] = []
    with subprocess.Popen(
        [*command, "--output-dir", str(output)], stdout=subprocess.DEVNULL
    ) as job:
        watched = psutil.Process(job.pid)
        while job.poll() is None:
            with contextlib.suppress(psutil.Error):
                if find_snapshots(output / "evaluation.partial"):
                    samples.append((watched.memory_info().rss >> 20, watched.num_fds()))
            time.sleep(0.2)
    fifth = len(samples) // 5
    if job.returncode or not fifth:
        print(f"the evaluation ended with status {job.returncode} after {len(samples)} looks")
        return False
    # Medians: a file that is being written when it is looked at is no leak.
    begin, end = (np.median(part, axis=0) for part in (samples[:fifth], samples[-fifth:]))
    print(
        f"evaluation of {steps} steps in each of 4 envs: {begin[0]:.0f} MiB in the first fifth, "
        f"{end[0]:.0f} MiB in the last; open files {begin[1]:.0f} and {end[1]:.0f}"
    )
    return bool(end[0] - begin[0] < 20 and end[1] <= begin[1])


def main() -> int:
    """Run all cycles; 0 if every one was equal and the evaluation flat."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cycles", type=int, default=30, help="runs to end and resume")
    parser.add_argument("--updates", type=int, default=40, help="updates of each run")
    parser.add_argument(
        "--jobs",
        type=int,
        default=joblib.cpu_count(),
        help="runs side by side",
    )
    parser.add_argument("--seed", type=int, default=0, help="of the moments at which runs end")
    parser.add_argument("--evaluation-steps", type=int, default=10_000, help="0: no evaluation")
    arguments = parser.parse_args()
    steps = arguments.updates * 64
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        folder = Path(name)
        reference = folder / "reference"
        seconds = finish(reference, steps)
        print(f"reference: {arguments.updates} updates in {seconds:.0f} s", flush=True)
        equal = 0

        def play(number: int) -> tuple[list[str], list[str]]:
            rng = random.Random(f"{arguments.seed}/{number}")
            run = folder / f"cycle-{number}"
            return Cycle(run, steps, seconds, rng).play(), differences(reference, run)

        with ThreadPoolExecutor(arguments.jobs) as pool:
            numbers = range(1, arguments.cycles + 1)
            for number, (events, wrong) in zip(numbers, pool.map(play, numbers), strict=True):
                equal += not wrong
                found = f"differs in {', '.join(wrong)}" if wrong else "equal"
                print(f"cycle {number}: {'; '.join(events)}: {found}", flush=True)
        print(f"{equal} of {arguments.cycles} equal")
        flat = not arguments.evaluation_steps or watch_evaluation(
            reference, folder, arguments.evaluation_steps
        )
    return 0 if equal == arguments.cycles and flat else 1


if __name__ == "__main__":
    raise SystemExit(main())
