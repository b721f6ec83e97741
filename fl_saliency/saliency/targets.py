"""What a saliency map is about: an action's score, the value, the whole policy, or a unit."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from fl_saliency.base import Agent, FloatArray, IntArray, UInt8Array
from fl_saliency.errors import InputError, unknown_choice
from fl_saliency.saliency.probing import ScoreFn

__all__ = ["KINDS", "Kind", "Target", "parse_target"]

Kind: TypeAlias = Literal["action", "value", "policy", "unit"]
KINDS: tuple[Kind, ...] = ("action", "value", "policy", "unit")


@dataclass(frozen=True, kw_only=True)
class Target:
    """What of an agent's outputs a map explains; `parse_target` makes one."""

    text: str
    """As the user writes it: `action`, `action:2`, `value`, `policy`, `c3:12`."""
    kind: Kind
    output: str
    """`scores`, `value`, or a layer's name."""
    index: int | None = None
    """Action or channel; None: the action chosen in each state, or all of the policy."""

    def score_fn(self, agent: Agent) -> ScoreFn:
        """What changes are measured on: [N, actions] for actions and the policy, else [N]."""
        if self.kind == "value":
            return agent.value
        if self.kind == "unit":
            return lambda obs: self._unit(agent, obs)
        return agent.scores

    def number_fn(self, agent: Agent, action: int) -> ScoreFn:
        """One number for each observation, [N], the chosen action being `action`."""
        if self.kind in ("value", "unit"):
            return self.score_fn(agent)
        chosen = action if self.index is None else self.index
        return lambda obs: agent.scores(obs)[:, chosen]

    def actions(self, chosen: IntArray) -> IntArray | None:
        """The actions int [B] whose scores count, given those `chosen`; None: no single ones."""
        if self.kind != "action":
            return None
        return chosen if self.index is None else np.full_like(chosen, self.index)

    def indices(self, chosen: IntArray) -> IntArray:
        """The index int [B] into `output`, for gradients of a single number."""
        if self.kind == "action" and self.index is None:
            return chosen
        return np.full(len(chosen), self.index or 0)

    def _unit(self, agent: Agent, obs: UInt8Array) -> FloatArray:
        found = agent.activations(obs, self.output)[..., self.index]
        return found if found.ndim == 1 else np.asarray(found.mean(axis=(1, 2)))


def parse_target(text: str, agent: Agent) -> Target:
    """`text` as a Target of `agent`: action (the chosen one), action:N, value, policy, LAYER:N.

    Raises InputError for anything else, naming the nearest that there is.
    """
    name, colon, number = text.partition(":")
    if name not in ("action", "value", "policy") and name not in agent.layers:
        raise unknown_choice("target", name, ["action", "value", "policy", *agent.layers])
    if name in ("value", "policy"):
        if colon:
            raise InputError(f"target {text!r}: expected {name!r} alone")
        output = "value" if name == "value" else "scores"
        return Target(text=text, kind=name, output=output)  # type: ignore[arg-type]
    if name == "action" and not colon:
        return Target(text=text, kind="action", output="scores")
    size = agent.num_actions if name == "action" else agent.layers[name][-1]
    if not (number.isascii() and number.isdigit() and int(number) < size):
        raise InputError(f"target {text!r}: expected {name}:N with N from 0 to {size - 1}")
    if name == "action":
        return Target(text=text, kind="action", output="scores", index=int(number))
    return Target(text=text, kind="unit", output=name, index=int(number))
