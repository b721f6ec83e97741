"""What the findings say of each method in a word, by rules that are stated, and with what caution.

The rules are this project's; the papers show curves and leave the threshold to the reader.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from fl_saliency.experiments.sanity import BASELINES
from fl_saliency.experiments.sanity.bootstrap import Interval
from fl_saliency.experiments.sanity.checks import CELLS, Findings
from fl_saliency.experiments.sanity.randomisation import StageFinding

__all__ = ["CHECKS", "ENOUGH", "RULES", "THRESHOLD", "Outcome", "Verdict", "judge", "verdicts"]

Outcome: TypeAlias = Literal["passes", "fails", "undecided"]

THRESHOLD = 0.5
"""Rank correlation below which two maps count as different."""
ENOUGH = 16
"""States below which nothing is decided: a percentile interval of a few is far too narrow."""
RULES = {
    "randomisation": (
        "all layers re-drawn: the Spearman correlation with the trained network's maps; passes if "
        f"its interval is below {THRESHOLD}, fails if it is above"
    ),
    "deletion": (
        "area under the curve of the chosen action's logit as pixels are blurred in the map's "
        "order: passes if the intervals of its gains over a random order and over one from the "
        "centre outwards are both above 0, fails if one is below"
    ),
    "insertion": (
        "the same as pixels of the whole picture are put into the blurred one in the map's order"
    ),
    "high against low": (
        "|change of the chosen action's logit| when the tenth of the pixels with the highest "
        "values is blurred: passes if the intervals of its differences to the lowest tenth and to "
        "a random one are both above 0, fails if one is below"
    ),
    CELLS: "the same when cells of the network's own attention map are set to 0",
}
CHECKS = tuple(RULES)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What one check says of one method."""

    check: str
    method: str
    outcome: Outcome
    """`undecided`: the interval holds the threshold, or too many states say nothing."""
    because: str
    """The figures behind it, for people, with "; " between them."""


def judge(found: Interval, threshold: float, *, above: bool) -> Outcome:
    """`passes` if the whole interval is above (or below) the threshold, `fails` if beyond it.

    Undecided otherwise, and if the figure is undefined in more than half of the states, or defined
    in fewer than `ENOUGH`.
    """
    if found.low is None or found.high is None or found.undefined > found.n or found.n < ENOUGH:
        return "undecided"
    if found.low > threshold:
        return "passes" if above else "fails"
    if found.high < threshold:
        return "fails" if above else "passes"
    return "undecided"


def verdicts(findings: Findings) -> list[Verdict]:
    """The verdicts on all methods, then on the baselines, check by check."""
    return [*_randomisation(findings), *_curves(findings), *_parts(findings)]


def _randomisation(findings: Findings) -> Iterator[Verdict]:
    last = _fully_redrawn(findings)
    for name in findings.names:
        found, elsewhere = (last.methods[name][key] for key in ("spearman", "spearman_nonzero"))
        outcome = judge(found, THRESHOLD, above=False)
        because = f"Spearman {found}{_missing(found)}"
        if outcome != judge(elsewhere, THRESHOLD, above=False):
            because += f"; where not 0: {elsewhere}"
        yield Verdict(check="randomisation", method=name, outcome=outcome, because=because)


def _fully_redrawn(findings: Findings) -> StageFinding:
    return next(f for f in reversed(findings.stages) if f.stage.kind == "cascading")


def _curves(findings: Findings) -> Iterator[Verdict]:
    for kind in ("deletion", "insertion"):
        for name in findings.names:
            if name in BASELINES:  # they are what the others are compared with
                continue
            found = findings.curves[f"{kind}_logit"][name]
            yield Verdict(
                check=kind,
                method=name,
                outcome=_all_above_0(found.over_random, found.over_centre),
                because=f"over random {found.over_random}; over centre {found.over_centre}",
            )


def _parts(findings: Findings) -> Iterator[Verdict]:
    for name, parts in findings.parts["logit"].items():
        yield Verdict(
            check=CELLS if name == CELLS else "high against low",
            method="attention" if name == CELLS else name,
            outcome=_all_above_0(parts.over_low, parts.over_random),
            because=f"high {parts.high}; low {parts.low}; random {parts.random}",
        )


def _all_above_0(*found: Interval) -> Outcome:
    outcomes = {judge(one, 0, above=True) for one in found}
    if "fails" in outcomes:
        return "fails"
    return "passes" if outcomes == {"passes"} else "undecided"


def _missing(found: Interval) -> str:
    return f"; undefined in {found.undefined} states" if found.undefined else ""
