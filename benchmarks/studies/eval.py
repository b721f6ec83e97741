"""Evaluation: steps/s of all envs together, without and with video, and memory."""

from functools import partial

from benchmarks.environments import peer
from benchmarks.harness import Settings, Table, in_turn, median, ours

ORIGINAL = "OpenAI Baselines (TensorFlow 1), 16 envs"
ENVS = 16


def run(settings: Settings) -> list[Table]:
    """Tables `eval` and `eval_video`."""
    return [without_video(settings), with_video(settings)]


def without_video(settings: Settings) -> Table:
    steps = settings.pick(1500, 300)

    jobs = {
        f"{network}, {ENVS} envs": partial(
            ours, "evaluation", "--network", network, "--num-env", ENVS, "--steps", steps
        )
        for network in ("cnn", "cnn_sparse_fls")
    }
    if not settings.quick:
        arguments = ("--evaluate", "--steps", steps)
        jobs[ORIGINAL] = partial(peer, settings, "baselines", "baselines_train.py", *arguments)
    runs, notes = in_turn(jobs, settings.rounds)
    original = median(runs[ORIGINAL], "steps_per_s") if ORIGINAL in runs else None
    rows = []
    for name, found in runs.items():
        speed = median(found, "steps_per_s")
        over = None if original is None else round(speed / original, 2)
        rows.append([name, speed, over, max(run["peak_mib"] for run in found)])
    return Table(
        name="eval",
        title="Evaluation on Breakout without video",
        columns=["", "steps/s", "over the original", "peak memory, MiB"],
        rows=rows,
        notes=notes,
        figures=runs,
    )


def with_video(settings: Settings) -> Table:
    """The whole command with both kinds of picture; 4 envs, so many frames each."""
    frames = settings.pick(20_000, 300)
    jobs = {
        f"cnn_sparse_fls, 4 envs, screen and input, {frames} frames": partial(
            ours,
            "evaluation",
            *("--network", "cnn_sparse_fls", "--num-env", 4, "--steps", frames, "--video"),
        )
    }
    runs, notes = in_turn(jobs, 1)
    return Table(
        name="eval_video",
        title="Evaluation on Breakout with videos, from the start of the job to the finished files",
        columns=["", "steps of all envs", "steps/s of all envs", "peak memory, MiB"],
        rows=[
            [
                name,
                found[0]["frames"],
                median(found, "steps_per_s"),
                max(run["peak_mib"] for run in found),
            ]
            for name, found in runs.items()
        ],
        notes=notes,
        figures=runs,
    )
