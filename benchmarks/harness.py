"""What all studies share: contenders that run in turn, tables of medians, the machine."""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from fl_saliency.errors import JobError

ROOT = Path(__file__).resolve().parents[1]
THIS_PYTHON = sys.executable


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How long to measure, and where the peers live."""

    quick: bool = False
    """A fraction of the work and one round less: for a look, not for a claim."""
    rounds: int = 3
    """How often every contender runs; figures are medians."""
    peers: Path = ROOT / ".venv-peers"
    """Where each peer's own environment is made."""

    def pick(self, full: int, quick: int) -> int:
        """`quick` of a short run, else `full`."""
        return quick if self.quick else full


@dataclass(frozen=True, kw_only=True)
class Table:
    """One table of a study: what docs/performance.md shows, and the figures behind it."""

    name: str
    """Unique: the marker in docs/performance.md."""
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]
    notes: Sequence[str] = ()
    """Lines under the table: what was skipped and why, versions."""
    figures: Mapping[str, Any] = field(default_factory=dict)
    """Every single measurement, for results/*.json."""

    def markdown(self) -> str:
        lines = [self.title, "", _row(self.columns), _row(["---"] * len(self.columns))]
        lines += [_row([_cell(cell) for cell in row]) for row in self.rows]
        lines += [f"\n{note}" for note in self.notes]
        return "\n".join(lines) + "\n"

    def as_dict(self) -> dict[str, Any]:
        return {
            "title": self.title,
            "columns": list(self.columns),
            "rows": [list(row) for row in self.rows],
            "notes": list(self.notes),
            "figures": dict(self.figures),
        }


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return str(value)


class UnavailableError(Exception):
    """A contender that cannot run here; its text says why, and goes under the table."""


def in_turn(
    contenders: Mapping[str, Callable[[], Mapping[str, Any]]], rounds: int
) -> tuple[dict[str, list[Mapping[str, Any]]], list[str]]:
    """Run every contender `rounds` times, one after another.

    Returns name -> what each run gave, and a line on each contender that is not available.
    """
    runs: dict[str, list[Mapping[str, Any]]] = {name: [] for name in contenders}
    skipped: dict[str, str] = {}
    for number in range(rounds):
        for name, contender in contenders.items():
            if name in skipped:
                continue
            started = time.monotonic()
            try:
                runs[name].append(contender())
            except UnavailableError as reason:
                skipped[name] = f"{name}: not measured, {reason}."
                report(skipped[name])
                continue
            figure = _figures(runs[name][-1])
            spent = time.monotonic() - started
            report(f"{name}, round {number + 1}: {figure} ({spent:.0f} s)")
    return {name: found for name, found in runs.items() if found}, list(skipped.values())


def _figures(run: Mapping[str, Any]) -> str:
    numbers = {key: value for key, value in run.items() if isinstance(value, int | float)}
    return ", ".join(f"{key} {_cell(float(value))}" for key, value in numbers.items())


def report(text: str) -> None:
    """Tell how far a study is, on stderr."""
    print(text, file=sys.stderr, flush=True)


def median(runs: Sequence[Mapping[str, Any]], key: str) -> float:
    """The median of one figure over a contender's runs."""
    return float(statistics.median(run[key] for run in runs))


def worker(command: Sequence[str | Path], **environment: str) -> dict[str, Any]:
    """Run a process whose last line of stdout is JSON; JobError with its last words if it fails.

    Its figures come with `peak_mib`, the most memory that it and its own processes held together
    (resident; pages that they share count in each).
    """
    words = [str(part) for part in command]
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        environ = {**os.environ, **environment}
        environ.pop("TF2_BEHAVIOR", None)  # TensorFlow 2 leaves it, and TensorFlow 1 obeys it
        with subprocess.Popen(words, stdout=out, stderr=err, cwd=ROOT, env=environ) as process:
            peak = _watch(process)
        out.seek(0), err.seek(0)
        lines, complaints = out.read().strip().splitlines(), err.read().strip().splitlines()
    if process.returncode or not lines:
        last = (complaints or ["no output"])[-1]
        raise JobError(f"{' '.join(words)}: exit status {process.returncode}: {last}")
    found: dict[str, Any] = json.loads(lines[-1])
    return {**found, "peak_mib": peak}


def run_process(command: Sequence[object], **options: Any) -> None:
    """Run a process to its end; JobError if it fails."""
    words = [str(part) for part in command]
    status = subprocess.run(words, cwd=ROOT, **options).returncode
    if status:
        raise JobError(f"{' '.join(words)}: exit status {status}")


def _watch(process: subprocess.Popen[bytes], every: float = 0.5) -> float:
    """Wait for `process`; the most MiB that it and its children held."""
    watched, peak = psutil.Process(process.pid), 0.0
    while process.poll() is None:
        with contextlib.suppress(psutil.Error):
            family = [watched, *watched.children(recursive=True)]
            peak = max(peak, sum(member.memory_info().rss for member in family) / 2**20)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(every)
    return peak


def ours(module: str, *arguments: object) -> dict[str, Any]:
    """Run `python -m benchmarks.workers.MODULE` of this environment."""
    return worker([THIS_PYTHON, "-m", f"benchmarks.workers.{module}", *map(str, arguments)])


def machine() -> dict[str, Any]:
    """The processor, its cores, and the versions of what the figures depend on."""
    names = ("tensorflow", "keras", "ale-py", "numpy", "opencv-python-headless", "scikit-learn")
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "python": sys.version.split()[0],
        "versions": {name: version(name) for name in names},
    }


def _processor() -> str:
    text = Path("/proc/cpuinfo").read_text()
    name = next(line.split(":")[1].strip() for line in text.splitlines() if "model name" in line)
    widest = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if f" {flag}" in text]
    return f"{name} ({', '.join(widest)})"


def machine_line(found: Mapping[str, Any]) -> str:
    """The machine in one line, for a page."""
    versions = ", ".join(f"{name} {number}" for name, number in found["versions"].items())
    return f"{found['processor']}, {found['cores']} cores; Python {found['python']}, {versions}"
