"""How frames become observations and what an episode is: one frozen, validated `Protocol`.

The defaults are those of OpenAI Baselines' Atari wrappers (Mnih et al. 2015, Machado et al. 2018).
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from fl_saliency.envs.games import game_info, game_of, playable_games
from fl_saliency.errors import InputError, unknown_choice

__all__ = ["Protocol", "mismatches", "resolve_protocol"]

MAX_POOLS = ("rgb", "grey")

# ALE's v5 games differ from Baselines' in these, and in nothing else.
_V5_DEFAULTS: dict[str, Any] = {
    "repeat_action_probability": 0.25,
    "noop_max": 0,
    "max_frames": 108_000,
}


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """How frames become observations and what an episode is.

    Every field is checked; a wrong one raises `InputError`, which names it.
    """

    env_id: str
    """The id that the user named, `BreakoutNoFrameskip-v4` or `ALE/Breakout-v5`."""
    game: str
    """The game's ROM name in ale-py, `breakout`."""
    frame_skip: int = 4
    """Emulator frames that one action lasts."""
    max_pool: str = "rgb"
    """Maximum of a skip's last two frames: over `rgb`, then grey (Baselines); or `grey` first."""
    noop_max: int = 30
    """A game starts with 1 to this many no-op frames; 0 for none."""
    fire_reset: bool = True
    """Press FIRE, then action 2, at each start of a game or life, in games that have FIRE."""
    episodic_life: bool = True
    """A lost life ends the learner's episode; the game goes on."""
    clip_rewards: bool = True
    """The learner sees the sign of a reward; scores stay raw."""
    repeat_action_probability: float = 0.0
    """Probability, per emulator frame, that the action before is played instead."""
    full_action_set: bool = False
    """All 18 actions instead of the game's minimal set."""
    max_frames: int = 400_000
    """Emulator frames after which a game is cut, no-ops included."""
    stall_frames: int = 18_000
    """Emulator frames without a changed screen or a reward after which a game counts as stalled.

    Five minutes: far above any pause of a game, and below the 65,536 idle frames after which a
    console goes into its attract mode, where Breakout takes no more input and never ends.
    """
    stack: int = 4
    """Frames in one observation."""
    size: int = 84
    """Height and width of an observation in pixels."""

    def __post_init__(self) -> None:
        _check_types(self)
        if self.game not in playable_games().values():
            raise unknown_choice("game", self.game, playable_games().values())
        if game_of(self.env_id)[0] != self.game:
            raise InputError(
                f"protocol: env_id {self.env_id!r} and game {self.game!r} name two games"
            )
        if self.max_pool not in MAX_POOLS:
            raise unknown_choice("max_pool", self.max_pool, MAX_POOLS)
        _check_ranges(self)

    @property
    def action_meanings(self) -> tuple[str, ...]:
        """What each action presses: `("NOOP", "FIRE", "RIGHT", "LEFT")` in Breakout."""
        info = game_info(self.game)
        return info.all_actions if self.full_action_set else info.minimal_actions

    @property
    def num_actions(self) -> int:
        """Number of actions."""
        return len(self.action_meanings)

    @property
    def observation_shape(self) -> tuple[int, int, int]:
        """Shape of one observation, (size, size, stack)."""
        return self.size, self.size, self.stack

    def as_dict(self) -> dict[str, Any]:
        """All fields as JSON types."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Protocol":
        """The protocol of `as_dict()`; raises InputError for unknown, missing or wrong entries."""
        known = {field.name for field in fields(cls)}
        for name in values:
            if name not in known:
                raise unknown_choice("protocol field", str(name), known)
        for name in ("env_id", "game"):
            if name not in values:
                raise InputError(f"protocol: {name} is missing")
        return cls(**values)

    def summary(self) -> str:
        """One printable line that says it all."""
        actions = "all" if self.full_action_set else "minimal"
        parts = [
            f"skip {self.frame_skip} (max of the last 2 in {self.max_pool})",
            f"no-ops 1 to {self.noop_max}" if self.noop_max else "no no-ops",
            "fire reset" if self.fire_reset else "no fire reset",
            "a life is an episode" if self.episodic_life else "a game is an episode",
            "rewards by sign" if self.clip_rewards else "raw rewards",
            f"sticky {self.repeat_action_probability:g}",
            f"{self.num_actions} actions ({actions} set)",
            f"cut at {self.max_frames} frames, stalled after {self.stall_frames}",
            f"{self.size}x{self.size} grey, stack {self.stack}",
        ]
        return f"{self.env_id}: {', '.join(parts)}"


def _check_types(protocol: Protocol) -> None:
    for field in fields(protocol):
        value = getattr(protocol, field.name)
        # A bool is an int to isinstance, and JSON writes 0.0 as 0.
        kinds = (int, float) if field.type is float else (field.type,)
        if type(value) not in kinds:
            wanted = getattr(field.type, "__name__", field.type)
            raise InputError(f"protocol: {field.name} {value!r}: expected {wanted}")


_RANGES = {
    "frame_skip": (1, 1000),
    "noop_max": (0, 10_000),
    "stall_frames": (1, 2**31 - 1),
    "stack": (1, 64),
    "size": (1, 1024),
}
"""Lowest and highest values: above, a step would take minutes, an observation all memory."""


def _check_ranges(protocol: Protocol) -> None:
    for name, (least, most) in _RANGES.items():
        value = getattr(protocol, name)
        if value < least:
            raise InputError(f"protocol: {name} {value}: expected {least} or more")
        if value > most:
            raise InputError(f"protocol: {name} {value}: expected at most {most}")
    if protocol.max_frames <= protocol.noop_max:
        raise InputError(
            f"protocol: max_frames {protocol.max_frames}: expected more than noop_max, "
            f"{protocol.noop_max}"
        )
    if protocol.max_frames >= 2**31:
        raise InputError(f"protocol: max_frames {protocol.max_frames}: expected less than {2**31}")
    if not 0.0 <= protocol.repeat_action_probability < 1.0:
        raise InputError(
            f"protocol: repeat_action_probability {protocol.repeat_action_probability}: "
            "expected 0 or more and less than 1"
        )


def resolve_protocol(env_id: str, **overrides: Any) -> Protocol:
    """The protocol of `env_id`, with the fields in `overrides` replaced.

    `<Game>NoFrameskip-v4` has Baselines' defaults, the defaults of `Protocol`.
    `ALE/<Game>-v5` has those with actions repeated with probability 0.25, no no-op starts and
    a cut at 108,000 frames. Its own skip of 4 is not applied besides `frame_skip`: the
    emulator is driven frame by frame. Either has the minimal action set.

    Raises InputError for an unknown id (naming the nearest), for ids of a game that skip frames by
    themselves (naming the id to use), and for a wrong field.
    """
    game, kind = game_of(env_id)
    defaults = _V5_DEFAULTS if kind == "v5" else {}
    return Protocol.from_dict({**defaults, **overrides, "env_id": env_id, "game": game})


def mismatches(trained: Protocol, used: Protocol) -> list[str]:
    """What differs between two protocols, one line each; the ids' spelling does not count."""
    lines = []
    for field in fields(Protocol):
        before, now = getattr(trained, field.name), getattr(used, field.name)
        if before != now and field.name != "env_id":
            lines.append(f"{field.name}: trained with {before!r}, used with {now!r}")
    return lines
