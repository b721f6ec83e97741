"""A game up to one decision, and from there twice: as it was, and with something changed."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from fl_saliency.base import Agent, FloatArray, IntArray, UInt8Array
from fl_saliency.envs.protocol import Protocol
from fl_saliency.errors import InputError
from fl_saliency.experiments.intervention.edits import Edits
from fl_saliency.experiments.intervention.game import WatchedGame
from fl_saliency.experiments.intervention.settings import ActionRule
from fl_saliency.metrics.policy import log_policy

__all__ = ["GAME_ENDS", "Branch", "BranchStep", "Branches", "play_both"]

GAME_ENDS = frozenset({"game_over", "truncated", "stalled"})


@dataclass(frozen=True, kw_only=True)
class BranchStep:
    """One decision of a branch."""

    observation: UInt8Array
    """What the agent saw, uint8 [84, 84, 4], newest frame last."""
    screen: UInt8Array
    """The screen behind the newest frame, as the agent saw it, RGB uint8 [H, W, 3]."""
    scores: FloatArray
    """Logits, float32 [actions]."""
    value: float
    """V(observation)."""
    action: int
    """What was played."""
    reward: float
    """What that gave, raw."""
    lives: int
    """Lives left at this decision."""
    end: str | None
    """What that ended: see `WatchedGame.step`."""

    @property
    def policy(self) -> FloatArray:
        """Probability of each action, float64 [actions]."""
        return np.exp(log_policy(self.scores))


@dataclass(frozen=True, kw_only=True)
class Branch:
    """What happened from the decision on; it is shorter than asked for if the game ended."""

    steps: tuple[BranchStep, ...]

    @property
    def observations(self) -> UInt8Array:
        """uint8 [T, 84, 84, 4]."""
        return np.stack([step.observation for step in self.steps])

    @property
    def screens(self) -> UInt8Array:
        """RGB uint8 [T, H, W, 3]."""
        return np.stack([step.screen for step in self.steps])

    @property
    def actions(self) -> IntArray:
        """int64 [T]."""
        return np.array([step.action for step in self.steps], np.int64)


@dataclass(frozen=True, kw_only=True)
class Branches:
    """The two futures of one moment."""

    original: Branch
    intervened: Branch
    memory: dict[int, tuple[int, int]]
    """Bytes that were changed -> (before, after)."""


def play_both(
    agent: Agent,
    protocol: Protocol,
    edits: Edits,
    *,
    seed: int,
    at: int,
    steps: int,
    rule: ActionRule = "sampled",
    keep: bool = False,
    played: Callable[[int], object] = lambda decision: None,
) -> Branches:
    """Play the first game of `seed` up to decision `at`, then `steps` decisions of each branch.

    The original is what `play` gives with one env and an agent fresh from `seed`. Memory is changed
    once, before the action of decision `at`; the picture at that decision, and with `keep` at
    all that follow. `played` is told of each decision on the way. Raises InputError if the game
    ends before, or if a byte cannot be changed so; takes `agent.rng` for its own.
    """
    game = WatchedGame(protocol, seed)
    actions = _approach(agent, game, at, seed, played)
    # Played again, not copied: in some games a snapshot of the emulator goes on differently.
    changed = WatchedGame(protocol, seed)
    changed.replay(actions)
    memory = changed.change_memory(edits)
    start = agent.rng

    def sample(index: int, batch: UInt8Array) -> int:
        return int(agent.step(batch).actions[0])

    def likeliest(index: int, batch: UInt8Array) -> int:
        return int(agent.scores(batch)[0].argmax())

    def repeat(index: int, batch: UInt8Array) -> int:
        return original.steps[index].action

    def view(index: int) -> tuple[UInt8Array, UInt8Array]:
        is_edited = edits.change_picture and (keep or index == 0)
        return changed.edited(edits) if is_edited else changed.view()

    choose = likeliest if rule == "greedy" else sample
    agent.rng = deepcopy(start)  # each branch draws the same numbers
    original = _follow(agent, game, steps, lambda index: game.view(), choose)
    if rule == "same":
        steps, choose = len(original.steps), repeat
    agent.rng = deepcopy(start)
    intervened = _follow(agent, changed, steps, view, choose)
    return Branches(original=original, intervened=intervened, memory=memory)


def _approach(
    agent: Agent, game: WatchedGame, at: int, seed: int, played: Callable[[int], object]
) -> list[int]:
    """Play up to decision `at`; the actions."""
    actions: list[int] = []
    for decision in range(at):
        action = int(agent.step(game.view()[0][None]).actions[0])
        actions.append(action)
        end = game.step(action)[1]
        if end in GAME_ENDS:
            raise InputError(
                f"--at {at}: the game of --eval-seed {seed} ends at decision {decision} ({end}); "
                f"expected at most {decision}"
            )
        played(decision)
    return actions


def _follow(
    agent: Agent,
    game: WatchedGame,
    steps: int,
    view: Callable[[int], tuple[UInt8Array, UInt8Array]],
    choose: Callable[[int, UInt8Array], int],
) -> Branch:
    """Play on for up to `steps` decisions: `view` gives what is seen, `choose` what is done."""
    found: list[BranchStep] = []
    for index in range(steps):
        observation, screen = view(index)
        batch, lives = observation[None], game.lives
        scores, value = agent.scores(batch)[0], float(agent.value(batch)[0])
        action = choose(index, batch)
        reward, end = game.step(action)
        found.append(
            BranchStep(
                observation=observation,
                screen=screen,
                scores=scores,
                value=value,
                action=action,
                reward=reward,
                lives=lives,
                end=end,
            )
        )
        if end in GAME_ENDS:
            break
    return Branch(steps=tuple(found))
