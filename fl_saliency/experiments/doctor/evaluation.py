"""Results of an evaluation, finished or not."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from fl_saliency.checkpoints.foreign import load_foreign
from fl_saliency.envs.protocol import Protocol
from fl_saliency.envs.snapshots import games_from_arrays
from fl_saliency.errors import FileFormatError
from fl_saliency.experiments.configs import PARTIAL, RESULT_FILES
from fl_saliency.experiments.doctor.files import examine_snapshots, read_json, require
from fl_saliency.experiments.doctor.pictures import examine_picture, examine_videos
from fl_saliency.experiments.doctor.report import Report, count, is_close

__all__ = ["examine_evaluation"]

_PER_GAME = ("rewards", "lengths", "elapsed_time", "env", "seed", "frames", "end")
_ORIGINAL = ("rewards", "lengths", "elapsed_time", "done_per_env")


def examine_evaluation(report: Report) -> None:
    """Results, videos and pictures of `fls run`, or what is saved of an unfinished one."""
    present = report.names.intersection(RESULT_FILES)
    if PARTIAL in report.names:
        _examine_saved_games(report)
    results = _examine_results(report) if "results.json" in present else None
    if "eval.pkl" in present:
        _examine_eval(report, results)
    examine_videos(report)
    for name in ("results.png", "perception.png"):
        examine_picture(report, name)
    if PARTIAL in report.names or report.at_work:
        return
    if present.intersection(("eval.pkl", "results.png")):
        require(report, ("results.json",))
    if results is not None and "n_episodes" in results:  # ours: the original leaves less
        require(report, RESULT_FILES[:3])
        if present.intersection(RESULT_FILES[3:]):
            require(report, RESULT_FILES[3:])


def _examine_results(report: Report) -> dict[str, Any] | None:
    """results.json, if it is whole."""
    with report.reading("results.json") as path:
        results = read_json(path)
        for problem in _results_problems(results):
            report.bad("results.json", problem)
        if not report.is_bad("results.json"):
            envs = count(len(results["done_per_env"]), "env")
            report.ok("results.json", f"{count(len(results['rewards']), 'game')} of {envs}")
            return results
    return None


def _results_problems(results: Mapping[str, Any]) -> Iterator[str]:
    """What contradicts in results.json, ours or the original's."""
    if missing := [name for name in _ORIGINAL if name not in results]:
        yield f"{missing[0]!r} is missing"
        return
    lists = {name: results[name] for name in (*_PER_GAME, "done_per_env") if name in results}
    for name, values in lists.items():
        if not isinstance(values, list) or not all(_is_entry(name, value) for value in values):
            yield f"{name!r} is no list of {'texts' if name == 'end' else 'numbers'}"
            return
    done, games = lists.pop("done_per_env"), len(results["rewards"])
    for name, values in lists.items():
        if len(values) != games:
            yield f"{name} has {len(values)} entries, rewards {games}"
    if sum(done) != games:
        yield f"done_per_env says {sum(done)} games, rewards has {games}"
    elif "env" in lists and Counter(lists["env"]) != +Counter(dict(enumerate(done))):
        yield "done_per_env is not how often each env stands in env"
    yield from _summary_problems(results)


def _is_entry(name: str, value: object) -> bool:
    if name == "end":
        return isinstance(value, str)
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _summary_problems(results: Mapping[str, Any]) -> Iterator[str]:
    """Which of the summary's figures are not those of the games."""
    rewards = results["rewards"]
    expected = {
        "n_episodes": len(rewards),
        "n_finished": results.get("end", []).count("game_over"),
        "mean_reward": float(np.mean(rewards)) if rewards else None,
        "std_reward": float(np.std(rewards)) if rewards else None,
    }
    for name, value in expected.items():
        if name in results and not is_close(results[name], value):
            yield f"{name} {results[name]!r} is not that of its games, {value!r}"


def _examine_eval(report: Report, results: Mapping[str, Any] | None) -> None:
    """eval.pkl opens, and has the figures of results.json."""
    with report.reading("eval.pkl") as path:
        arrays = load_foreign(path)
        if not isinstance(arrays, dict):
            raise FileFormatError("expected a dict of arrays")
        report.ok("eval.pkl", "as results.json" if results is not None else "opens")
        for name in ("done_per_env", *_PER_GAME):
            if results is not None and name in results:
                found = arrays.get(name)
                values = found.tolist() if isinstance(found, np.ndarray) else found
                if values != results[name]:
                    report.bad("eval.pkl", f"{name} is not that of results.json")


def _examine_saved_games(report: Report) -> None:
    """An unfinished evaluation: how many games it has saved, and whether it can go on."""
    snapshots = examine_snapshots(report, PARTIAL)
    if not snapshots:
        report.note(PARTIAL, "an unfinished evaluation: nothing of it is saved")
        return
    with report.reading(PARTIAL):
        state = snapshots[0].state
        job, recording = state["job"], state["recording"]
        num_actions = Protocol.from_dict(job["protocol"]).num_actions
        games_from_arrays(snapshots[0].arrays, state["games"], num_actions)
        done, total = len(state["episodes"]), job["num_env"] * job["evals_per_env"]
        report.note(
            PARTIAL,
            f"an unfinished evaluation: {done} of {count(total, 'game')} are saved; "
            "the same command goes on",
        )
        if recording is not None:
            _examine_frames(report, recording["spool"]["bytes"])


def _examine_frames(report: Report, expected: int) -> None:
    """The frames that wait for the video are as many as were saved, at least."""
    part = f"{PARTIAL}/frames"
    with report.reading(part) as path:
        size = path.stat().st_size
        if size < expected:
            raise FileFormatError(f"{size} bytes, fewer than the {expected} that were saved")
