"""The logs of a run: log.txt, progress.csv, monitor files, TensorBoard, and how they agree."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from fl_saliency.errors import FileFormatError
from fl_saliency.experiments.doctor.checkpoints import Saved
from fl_saliency.experiments.doctor.config import Expected
from fl_saliency.experiments.doctor.files import checked, names_in
from fl_saliency.experiments.doctor.report import Report, count
from fl_saliency.logs.monitor import monitor_path
from fl_saliency.logs.readers import (
    event_steps,
    monitor_files,
    read_monitor,
    read_progress,
    read_tensorboard,
)
from fl_saliency.logs.textfile import whole_lines

__all__ = ["examine_logs"]


def examine_logs(report: Report, expected: Expected, saved: Saved) -> int | None:
    """How many updates are logged, if that is known."""
    if "logs" not in report.names:
        return None
    present = names_in(report.directory / "logs")
    trained_here = expected.settings is not None
    rows = None
    if "progress.csv" in present or trained_here:
        rows = _examine_progress(report, expected, saved)
    needed = trained_here and rows != 0
    if "log.txt" in present or needed:
        _examine_text(report)
    if needed or any(name.endswith("monitor.csv") for name in present):
        _examine_monitors(report, expected, needed=needed)
    if "tb" in report.names or needed:
        _compare_rows(report, expected, saved, rows, _examine_tensorboard(report))
    return rows


def _examine_text(report: Report) -> None:
    with report.reading("logs/log.txt") as path:
        lines = whole_lines(checked(path))
        report.ok("logs/log.txt", count(len(lines), "line"))
    _note_torn(report, "logs/log.txt")


def _note_torn(report: Report, part: str) -> None:
    """A last line without its end is no damage: readers leave it out, and a resumed run cuts it."""
    with report.reading(part) as path, checked(path).open("rb") as file:
        file.seek(max(0, path.stat().st_size - 1))
        if file.read(1) not in (b"", b"\n") and not report.at_work:
            report.note(part, "an unfinished last line")


def _examine_progress(report: Report, expected: Expected, saved: Saved) -> int | None:
    """The number of rows in progress.csv."""
    part = "logs/progress.csv"
    with report.reading(part) as path:
        begun = saved.last or "model.pkl" in report.names
        if not begun and not (path.exists() and whole_lines(checked(path))):
            report.note(part, "no update is logged yet")
            return 0
        table = read_progress(checked(path))
        for problem in _progress_problems(table.to_dict("list"), expected):
            report.bad(part, problem)
        report.ok(part, count(len(table), "row"))
        _note_torn(report, part)
        return len(table)
    return None


def _progress_problems(table: Mapping[Any, list[float]], expected: Expected) -> Iterator[str]:
    """What contradicts in the columns of progress.csv; the original may log every n-th update."""
    updates = table.get("nupdates")
    if updates is None:
        yield "no column nupdates"
        return
    settings = expected.settings
    for line, (before, update) in enumerate(pairwise([0.0, *updates]), start=2):
        if update != before + 1 and (settings is not None or not update > before):
            yield f"line {line}: nupdates {update:g} follows {before:g}"
            return
    if settings is None:
        return
    units = {"total_timesteps": settings.batch_size, "serial_timesteps": settings.num_steps}
    for name, unit in units.items():
        values = table.get(name, [])
        wrong = [n for n, value in enumerate(values, start=1) if value != n * unit]
        if name not in table:
            yield f"no column {name}"
        elif wrong:
            yield f"line {wrong[0] + 1}: {name} is not {wrong[0]} x {unit}"
    if expected.updates is not None and len(updates) > expected.updates:
        yield f"{len(updates)} rows, the run has {count(expected.updates, 'update')}"


def _examine_monitors(report: Report, expected: Expected, *, needed: bool) -> None:
    """One monitor file per env, each of the run's game."""
    num_envs = expected.settings.num_envs if needed and expected.settings is not None else None
    with report.reading("logs") as folder:
        files = monitor_files(folder)
        games = sum(_examine_monitor(report, path, expected) for path in files)
        parts = [f"logs/{path.name}" for path in files]
        if num_envs is not None:
            _compare_envs(report, {path.name for path in files}, num_envs)
        if not report.is_bad(*parts):
            what = f"{count(len(files), 'env')}, {count(games, 'finished game')}"
            report.ok("logs/0.*.monitor.csv", what)


def _compare_envs(report: Report, found: set[str], num_envs: int) -> None:
    expected = {monitor_path(Path(), env).name for env in range(min(num_envs, len(found) + 1))}
    for name in sorted(expected - found):
        report.bad(f"logs/{name}", "missing")
    for name in sorted(found - expected):
        if len(found) > num_envs:
            report.bad(f"logs/{name}", f"the run has {count(num_envs, 'env')}")


def _examine_monitor(report: Report, path: Path, expected: Expected) -> int:
    """The number of games in monitor file `path`."""
    part = f"logs/{path.name}"
    with report.reading(part):
        monitor = read_monitor(checked(path))
        if monitor.env_id and expected.env_name and monitor.env_id != expected.env_name:
            report.bad(part, f"of {monitor.env_id}, the run is of {expected.env_name}")
        rows = monitor.episodes.to_numpy().tolist()
        for line, (before, row) in enumerate(pairwise(rows), start=4):
            if before == row:
                raise FileFormatError(f"line {line} repeats the line before")
        _note_torn(report, part)
        return len(rows)
    return 0


def _examine_tensorboard(report: Report) -> int | None:
    """The number of steps in TensorBoard's files."""
    with report.reading("tb") as folder:
        files = sorted(folder.glob("events.out.tfevents.*"))
        steps = [step for path in files for step in _event_steps(report, path)]
        read_tensorboard(folder)  # says what is wrong if there is none
        for before, step in pairwise(steps):
            if step <= before:
                raise FileFormatError(f"step {step} follows step {before}")
        report.ok("tb", f"{count(len(files), 'event file')}, {count(len(steps), 'step')}")
        return len(steps)
    return None


def _event_steps(report: Report, path: Path) -> list[int]:
    """The step of every row of scalars in event file `path`, as they come."""
    steps, is_torn = event_steps(checked(path))
    if is_torn and not report.at_work:
        report.note("tb", f"{path.name}: an unfinished last record")
    return steps


def _compare_rows(
    report: Report, expected: Expected, saved: Saved, rows: int | None, steps: int | None
) -> None:
    """progress.csv and TensorBoard have the same rows, but for the last moment of a killed run."""
    if rows is None or steps is None or report.at_work or report.is_bad("tb", "logs/progress.csv"):
        return
    if expected.settings is None and steps > rows:  # its csv may be written every n-th update
        return
    is_open = rows < (expected.updates or 0) if saved.last is None else rows > saved.last
    if rows == steps + 1 and is_open:
        report.note("tb", "lacks the last row of progress.csv: the job was killed between the two")
    elif rows > steps:
        report.bad("tb", f"{count(steps, 'step')}, progress.csv has {count(rows, 'row')}")
    elif rows < steps:
        report.bad("logs/progress.csv", f"{count(rows, 'row')}, tb has {count(steps, 'step')}")
