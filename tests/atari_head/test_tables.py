from typing import Any

from fl_saliency.atari_head.tables import to_tables
from fl_saliency.metrics.mit import MIT_METRICS
from fl_saliency.metrics.paper import METRICS


def figures(mean: float | None, n: int, **dropped: int) -> dict[str, Any]:
    interval = None if mean is None else (mean - 0.1, mean + 0.1)
    return {"mean": mean, "n": n, "dropped": dropped, "interval95": interval}


def method(name: str, target: str = "none") -> dict[str, Any]:
    return {
        "name": name,
        "target": target,
        "decisions": 9,
        "paper": {metric: figures(1.25, 9) for metric in METRICS},
        "mit": {metric: figures(-0.0004, 9) for metric in MIT_METRICS},
        "shifted": {shift: {m: float(shift) for m in METRICS} for shift in ("-1", "+1")},
    }


def test_each_convention_has_a_table_with_nss_beside_sauc_and_a_row_per_method() -> None:
    text = to_tables([method("attention"), method("sarfa", "action:3")])
    paper, shifted, mit = text.split("\n\n")
    assert paper.splitlines() == [
        "convention paper: mean and its 95 % interval",
        "method     explains  NSS                 sAUC                KL",
        "attention  none      1.250 [1.15, 1.35]  1.250 [1.15, 1.35]  1.250",
        "sarfa      action:3  1.250 [1.15, 1.35]  1.250 [1.15, 1.35]  1.250",
    ]
    assert shifted.splitlines()[:3] == [
        "convention paper, gaze shifted by frames: mean",
        "method     NSS -1  NSS 0  NSS +1  sAUC -1  sAUC 0  sAUC +1",
        "attention  -1.000  1.250  1.000   -1.000   1.250   1.000",
    ]
    assert mit.splitlines()[0] == "convention mit: mean"
    assert mit.splitlines()[1].split()[2:5] == ["NSS", "sAUC", "IG"]
    assert mit.splitlines()[2].split() == ["attention", "none", *["0.000"] * 7]


def test_what_is_undefined_is_no_number_and_what_is_dropped_is_told() -> None:
    row = method("uniform")
    row["paper"]["nss"] = figures(None, 0, constant_map=7, no_fixation=2)
    row["paper"]["kldiv"] = figures(2.0, 7, no_fixation=2)
    paper, shifted, _, dropped = to_tables([row]).split("\n\n")
    assert shifted.splitlines()[2].split()[2] == "-"
    assert paper.splitlines()[2] == "uniform  none      -    1.250 [1.15, 1.35]  2.000 (n 7)"
    assert dropped.splitlines() == [
        "left out of the means",
        "uniform (paper, of 9): nss constant_map 7, no_fixation 2; kldiv no_fixation 2",
    ]
