"""sanity.json: every figure of the checks with its interval, the verdicts, and what limits them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from fl_saliency.experiments.sanity import BASELINES
from fl_saliency.experiments.sanity.bootstrap import RESAMPLES
from fl_saliency.experiments.sanity.cautions import CAVEATS
from fl_saliency.experiments.sanity.checks import RANDOM_ORDERS, Findings
from fl_saliency.experiments.sanity.curves import BLUR_SIGMA, STEPS
from fl_saliency.experiments.sanity.parts import SHARE
from fl_saliency.experiments.sanity.randomisation import Kind, StageFinding
from fl_saliency.experiments.sanity.verdicts import RULES, verdicts

__all__ = ["sanity_record"]


def sanity_record(
    findings: Findings, provenance: Mapping[str, Any], cautions: Sequence[str]
) -> dict[str, Any]:
    """The record; `provenance` is what the checks were made of: agent, states, seeds."""
    return {
        **provenance,
        "states": findings.states,
        "methods": list(findings.methods),
        "baselines": list(BASELINES),
        "target": "the logit of the action that the agent chose",
        "intervals": f"percentile bootstrap over states, 95 %, {RESAMPLES} resamples",
        "cautions": list(cautions),
        "verdicts": [asdict(verdict) for verdict in verdicts(findings)],
        "rules": RULES,
        "randomisation": {
            "cascading": _stages(findings, "cascading"),
            "independent": _stages(findings, "independent"),
        },
        "insertion_deletion": {
            "steps": STEPS,
            "blur_sigma_pixels": BLUR_SIGMA,
            "random_orders": RANDOM_ORDERS,
            "raised_states": findings.raised,
            "curves": {
                name: {method: asdict(curve) for method, curve in found.items()}
                for name, found in findings.curves.items()
            },
        },
        "high_against_low": {
            "share": SHARE,
            "blur_sigma_pixels": BLUR_SIGMA,
            "effects": {
                effect: {method: asdict(parts) for method, parts in found.items()}
                for effect, found in findings.parts.items()
            },
        },
        "agreement": asdict(findings.agreement),
        "caveats": [asdict(caveat) for caveat in CAVEATS],
    }


def _stages(findings: Findings, kind: Kind) -> list[dict[str, Any]]:
    return [_stage(found) for found in findings.stages if found.stage.kind == kind]


def _stage(found: StageFinding) -> dict[str, Any]:
    methods = {
        method: {measure: asdict(one) for measure, one in measures.items()}
        for method, measures in found.methods.items()
    }
    return {"layer": found.stage.layer, "redrawn": list(found.stage.layers), "methods": methods}
