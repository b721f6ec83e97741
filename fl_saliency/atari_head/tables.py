"""The comparison as text: a table for each convention, and what was dropped from the means."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["to_tables"]

Summary = Mapping[str, Any]

_COLUMNS = {
    "paper": (("nss", "NSS"), ("sauc", "sAUC"), ("kldiv", "KL")),
    "mit": (
        ("nss", "NSS"),
        ("sauc", "sAUC"),
        ("ig", "IG"),
        ("auc_judd", "AUC-Judd"),
        ("cc", "CC"),
        ("sim", "SIM"),
        ("kldiv", "KL"),
    ),
}
"""Metric and heading of each convention's columns; NSS stands beside what a centre cannot win."""
_SURE = ("nss", "sauc")
"""Metrics of the paper convention that are shown with their interval."""
_UNDEFINED = "-"


def to_tables(methods: Sequence[Summary]) -> str:
    """Both tables of the `methods` in saliency.json, in aligned columns."""
    blocks = []
    for convention, columns in _COLUMNS.items():
        heading = ["method", "explains", *(title for _, title in columns)]
        rows = [_row(method, convention, [name for name, _ in columns]) for method in methods]
        what = "mean and its 95 % interval" if convention == "paper" else "mean"
        blocks.append(f"convention {convention}: {what}\n{_aligned([heading, *rows])}")
    blocks.insert(1, _shifted(methods))
    dropped = "\n".join(line for method in methods for line in _dropped(method))
    return "\n\n".join([*blocks, *([f"left out of the means\n{dropped}"] if dropped else [])])


def _shifted(methods: Sequence[Summary]) -> str:
    """How the paper's means change with gaze of a frame earlier and of a frame later."""
    names = ("nss", "sauc")
    shifts = sorted([*methods[0]["shifted"], "0"], key=int)
    heading = ["method", *(f"{title} {at}" for title in ("NSS", "sAUC") for at in shifts)]
    rows = [
        [
            method["name"],
            *(
                _mean(method["shifted"][at][name] if at != "0" else method["paper"][name]["mean"])
                for name in names
                for at in shifts
            ),
        ]
        for method in methods
    ]
    return f"convention paper, gaze shifted by frames: mean\n{_aligned([heading, *rows])}"


def _mean(value: float | None) -> str:
    return _UNDEFINED if value is None else f"{round(value, 3) + 0.0:.3f}"  # no -0.000


def _row(method: Summary, convention: str, metrics: Sequence[str]) -> list[str]:
    sure = _SURE if convention == "paper" else ()
    figures = [
        _figure(method[convention][name], method["decisions"], with_interval=name in sure)
        for name in metrics
    ]
    return [method["name"], method["target"], *figures]


def _figure(figures: Summary, decisions: int, *, with_interval: bool) -> str:
    """The mean, and how many decisions it is of where that is not all."""
    if figures["mean"] is None:
        return _UNDEFINED
    text = _mean(figures["mean"])
    if with_interval and figures["interval95"] is not None:
        low, high = figures["interval95"]
        text += f" [{low:.2f}, {high:.2f}]"
    return text if figures["n"] == decisions else f"{text} (n {figures['n']})"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "\n".join(line.rstrip() for line in lines)


def _dropped(method: Summary) -> Iterator[str]:
    """A line for each convention in which decisions were dropped."""
    for convention in _COLUMNS:
        parts = [
            f"{name} {_counts(figures['dropped'])}"
            for name, figures in method[convention].items()
            if figures["dropped"]
        ]
        if parts:
            text = "; ".join(parts)
            yield f"{method['name']} ({convention}, of {method['decisions']}): {text}"


def _counts(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{reason} {count}" for reason, count in reasons.items())
