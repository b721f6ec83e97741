"""The whole job in small: train, evaluate, watch and score one agent; ends with where things are.

Usage: python scripts/demo.py [folder]     (default: out/demo, or out/demo.2, ... if it exists)
"""

import shlex
import sys
from itertools import count
from pathlib import Path

from fl_saliency.cli import benchmark, run, train

ROOT = Path(__file__).resolve().parent.parent
GAME = "BreakoutNoFrameskip-v4"
STEPS = {
    "run": "a training run of cnn_sparse_fls on Breakout (8192 timesteps)",
    "eval": "its evaluation: scores, and a video of the game with the attention over it",
    "gaze": "how its attention agrees with the gaze of the bundled trial (synthetic gaze)",
}
PICTURES = {
    "run": ("curve.png", "model.pkl"),
    "eval": ("perception.mp4", "perception.png", "results.png", "results.json"),
    "gaze": ("saliency.png", "saliency.json"),
}


def free_folder(base: Path) -> Path:
    """`base`, or base.2, base.3, ... : the first that does not exist."""
    names = (base if n == 1 else base.with_name(f"{base.name}.{n}") for n in count(1))
    return next(path for path in names if not path.exists())


def main(argv: list[str]) -> int:
    """Run the three jobs one after the other; returns the first exit status that is not 0."""
    out = free_folder(Path(argv[0]) if argv else Path("out/demo"))
    run_dir, eval_dir, gaze_dir = (str(out / name) for name in STEPS)
    trials = shlex.quote(str(ROOT / "demo" / "atari_head"))
    jobs = (
        (train, f"--env-name {GAME} --num-timesteps 8192", run_dir),
        (
            run,
            f"--experiment-dir {shlex.quote(run_dir)} --num-env 2 --max-eplen 4000"
            " --raw-obs --processed-obs",
            eval_dir,
        ),
        (benchmark, f"--experiment-dir {shlex.quote(run_dir)} --atari-head-dir {trials}", gaze_dir),
    )
    for (name, what), (command, arguments, folder) in zip(STEPS.items(), jobs, strict=True):
        print(f"\n== {name}: {what}", flush=True)
        if status := command.main([*shlex.split(arguments), "--output-dir", folder]):
            return status
    print("\nLook at:")
    for name, files in PICTURES.items():
        for file in files:
            print(f"  {out / name / file}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
