"""What a reader must know before believing a sanity check: of this agent, and of all of them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fl_saliency.base import FloatArray
from fl_saliency.metrics.policy import log_policy, policy_kl
from fl_saliency.playback.states import States

__all__ = ["CAVEATS", "Caveat", "cautions"]

ENTROPY_SHARE = 0.95
"""Share of a uniform policy's entropy from which on a policy counts as one that knows nothing."""
SHORT_TRAINING = 1_000_000
"""Decisions; Atari agents are trained for 10 to 50 million."""
FEW_STATES = 32


@dataclass(frozen=True, kw_only=True)
class Caveat:
    """A limit that the literature names."""

    text: str
    source: str
    url: str


CAVEATS = (
    Caveat(
        text="A sanity check can only refute. A method that passes is not thereby right: an edge "
        "detector with a little noise from the weights passes parameter randomisation too.",
        source="Adebayo et al. 2018, Sanity Checks for Saliency Maps",
        url="https://arxiv.org/abs/1810.03292",
    ),
    Caveat(
        text="The measure of similarity and the post-processing (here magnitudes, without signs) "
        "change what parameter randomisation concludes, and integrated gradients from black are 0 "
        "on every black pixel, whatever the network: look at all three measures and at the maps.",
        source="Sundararajan and Taly 2018, A Note about: Local Explanation Methods for Deep "
        "Neural Networks lack Sensitivity to Parameter Values",
        url="https://arxiv.org/abs/1806.04205",
    ),
    Caveat(
        text="Some of what is left after randomisation is due to the task and the pictures (a "
        "bright object on black draws any method), not to the method.",
        source="Yona and Greenfeld 2021, Revisiting Sanity Checks for Saliency Maps",
        url="https://arxiv.org/abs/2110.14297",
    ),
    Caveat(
        text="Insertion, deletion and blurred parts show the network pictures that it never saw in "
        "training; a change may be due to their strangeness alone. Retraining on them, which would "
        "settle it, is not done here.",
        source="Hooker et al. 2019, A Benchmark for Interpretability Methods in Deep Neural "
        "Networks (ROAR)",
        url="https://arxiv.org/abs/1806.10758",
    ),
    Caveat(
        text="The perturbation methods are made to find what these curves measure, changes under "
        "blurs, and so are favoured by them.",
        source="Petsiuk et al. 2018, RISE",
        url="https://arxiv.org/abs/1806.07421",
    ),
    Caveat(
        text="A map that passes is a hypothesis, not an explanation: claims about what an agent "
        "attends to need an intervention (fls intervene).",
        source="Atrey et al. 2020, Exploratory Not Explanatory",
        url="https://arxiv.org/abs/1912.05743",
    ),
    Caveat(
        text="A built-in attention map does not depend on the layers behind it (pi, vf, fc1): it "
        "says where features are let through, not what is made of them, nor for which action. "
        "Re-drawing those layers cannot change it.",
        source="Nikulin et al. 2019, Free-Lunch Saliency via Attention in Atari Agents",
        url="https://arxiv.org/abs/1908.02511",
    ),
    Caveat(
        text="One trained network, one draw of random weights, states of few games: the intervals "
        "are over states alone, and take these as independent, which states of one game are not. "
        "They are too narrow for claims about a method or an architecture.",
        source="Agarwal et al. 2021, Deep Reinforcement Learning at the Edge of the Statistical "
        "Precipice",
        url="https://arxiv.org/abs/2108.13264",
    ),
)


def cautions(
    states: States, scores: FloatArray, blurred: FloatArray, config: Mapping[str, Any]
) -> list[str]:
    """Why this agent or these states may make the checks meaningless, a sentence each.

    Logits [S, A] of the pictures and of the wholly blurred ones; `config` is the run's.
    """
    found = []
    steps = config.get("num_timesteps")
    if isinstance(steps, int) and steps < SHORT_TRAINING:
        found.append(
            f"The agent was trained for {steps} decisions only: an agent that has learned nothing "
            "has nothing to explain, and every check of its maps is meaningless."
        )
    entropy, most = _entropy(scores), float(np.log(scores.shape[1]))
    if most == 0 or entropy > ENTROPY_SHARE * most:
        found.append(
            f"The policy is nearly uniform (entropy {entropy:.3f} of at most {most:.3f} nats): the "
            "agent hardly prefers any action, so there is little that a map could explain."
        )
    if (change := float(policy_kl(scores, blurred).mean())) < 0.01:
        found.append(
            f"Blurring the whole picture changes the policy by KL {change:.2g} nats only: the "
            "agent hardly looks, and insertion and deletion measure next to nothing."
        )
    if len(states) < FEW_STATES:
        found.append(f"There are {len(states)} states only: the intervals are rough.")
    if states.num_games == 1:
        found.append("All states are of 1 game: they are alike, and the intervals narrow.")
    return found


def _entropy(scores: FloatArray) -> float:
    logs = log_policy(scores)
    return float(-(np.exp(logs) * logs).sum(axis=1).mean())
