"""All checks over the same states, kept as they are computed, so that the job can go on."""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fl_saliency.agents.policy import PolicyAgent
from fl_saliency.base import FloatArray
from fl_saliency.experiments.maps import CHUNK, MapJob
from fl_saliency.experiments.sanity import BASELINES
from fl_saliency.experiments.sanity.agreement import AgreementFinding, agreement
from fl_saliency.experiments.sanity.cautions import cautions
from fl_saliency.experiments.sanity.cells import AttentionCells, attention_cells
from fl_saliency.experiments.sanity.curves import (
    CurveFinding,
    blurred,
    curve_findings,
    curves,
    pixel_order,
    raised_states,
)
from fl_saliency.experiments.sanity.parts import (
    EFFECTS,
    PartsFinding,
    blur_effects,
    effects,
    part_masks,
)
from fl_saliency.experiments.sanity.randomisation import Randomised, Stage, StageFinding, stages
from fl_saliency.experiments.sanity.similarity import similarities
from fl_saliency.experiments.sanity.store import Store
from fl_saliency.playback.states import States
from fl_saliency.saliency.methods import SaliencyMethod, make_methods
from fl_saliency.saliency.options import MAP_SHAPE
from fl_saliency.saliency.probing import score_all
from fl_saliency.seeding import stream

__all__ = ["CELLS", "RANDOM_ORDERS", "Checks", "Findings"]

CELLS = "attention cells"
"""The attention map of the network itself, cell by cell."""
RANDOM_ORDERS = 4
"""Orders of pixels of which the random curve is the mean."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Findings:
    """What the checks found, methods and baselines alike."""

    states: int
    methods: tuple[str, ...]
    """Without the baselines."""
    stages: tuple[StageFinding, ...]
    curves: Mapping[str, Mapping[str, CurveFinding]]
    """`deletion_logit`, ... -> method -> its curve."""
    raised: int
    """States in which blurring the whole picture raises the chosen logit."""
    parts: Mapping[str, Mapping[str, PartsFinding]]
    """`logit` or `kl` -> method, and `CELLS` where they can be removed -> what its parts do."""
    agreement: AgreementFinding
    examples: Mapping[str, Mapping[str, FloatArray]]
    """`trained`, or a stage's name -> method -> its map of the example state, [84, 84]."""
    example: int
    """The state of the examples: the middle one."""

    @property
    def names(self) -> tuple[str, ...]:
        """Methods, then baselines."""
        return (*self.methods, *BASELINES)


class Checks:
    """The checks of `methods` and the baselines for one agent over some states."""

    def __init__(
        self,
        agent: PolicyAgent,
        methods: Sequence[str],
        *,
        seed: int,
        progress: Callable[[str, int], object] = lambda what, states: None,
    ) -> None:
        """Raises InputError for a method that `agent` cannot serve.

        `seed` is of all chance: re-drawn weights, ties, random orders, resamples. `progress` is
        told what is done and how many states have come to it: `work(states)` in all.
        """
        self._agent = agent
        self._methods = tuple(methods)
        self._made = make_methods([*methods, *BASELINES], agent)
        self._seed = seed
        self._progress = progress
        self._stages = stages(list(agent.layers))

    def work(self, states: int) -> int:
        """What `progress` adds up to: each method's maps, in each stage too, curves and parts."""
        return states * len(self._made) * (3 + len(self._stages))

    def run(self, states: States, job: MapJob) -> Findings:
        """Go on with, or begin, `job`."""
        work = _Work(self, states, job)
        trained = work.trained()
        staged = work.staged(trained)
        outcomes = {name: work.curves(name, trained[name]) for name in trained}
        parts = {name: work.parts(name, trained[name]) for name in trained}
        if (cells := attention_cells(self._agent.model)) is not None:
            parts[CELLS] = work.cells(cells)
        seed, example = self._seed, work.example
        return Findings(
            states=len(states),
            methods=self._methods,
            stages=tuple(
                StageFinding.of(s, _measures(staged[s.name]), seed=seed) for s in self._stages
            ),
            curves=curve_findings(outcomes, seed=seed),
            raised=int(raised_states(outcomes).sum()),
            parts={
                effect: {n: PartsFinding.of(found, effect, seed=seed) for n, found in parts.items()}
                for effect in EFFECTS
            },
            agreement=agreement(trained, BASELINES, seed=seed),
            examples={
                "trained": {name: maps[example] for name, maps in trained.items()},
                **{s: {n: f["example"] for n, f in found.items()} for s, found in staged.items()},
            },
            example=example,
        )

    def cautions(self, states: States, config: Mapping[str, Any]) -> list[str]:
        """Why this agent, of a run with `config`, or these states may make them meaningless."""
        obs = states.observations
        scores, others = (score_all(self._agent.scores, pixels) for pixels in (obs, blurred(obs)))
        return cautions(states, scores, others, config)


Staged = Mapping[str, Mapping[str, FloatArray]]
"""Method -> measure of similarity -> values [S], and `example` -> a map."""


def _measures(found: Staged) -> Staged:
    return {n: {k: v for k, v in arrays.items() if k != "example"} for n, arrays in found.items()}


class _Work:
    """The arrays of a job, read from its folder or computed."""

    def __init__(self, checks: Checks, states: States, job: MapJob) -> None:
        self._checks = checks
        self._states = states
        self._job = job
        self._store = Store(job.folder)
        self.example = len(states) // 2

    def trained(self) -> dict[str, FloatArray]:
        """Method -> its maps of the trained network, [S, 84, 84]."""
        return {
            method.name: self._job.maps(
                method, self._states, progress=lambda n: self._checks._progress("maps", n)
            ).maps
            for method in self._checks._made
        }

    def staged(self, trained: Mapping[str, FloatArray]) -> dict[str, Staged]:
        """Stage -> what became of each method's maps there."""
        randomised = Randomised(self._checks._agent, self._checks._seed)
        made = make_methods([method.name for method in self._checks._made], randomised.agent)
        found: dict[str, Staged] = {}
        for stage in self._checks._stages:
            randomised.redraw(stage.layers)
            found[stage.name] = {
                method.name: self._stage(stage, method, trained[method.name]) for method in made
            }
        return found

    def _stage(
        self, stage: Stage, method: SaliencyMethod, trained: FloatArray
    ) -> dict[str, FloatArray]:
        name = f"{stage.name}.{method.name}"
        what = f"{stage.kind} {stage.layer}"

        def compute() -> dict[str, FloatArray]:
            found = self._job.maps(
                replace(method, name=name),
                self._states,
                progress=lambda n: self._checks._progress(what, n),
            )
            return similarities(trained, found.maps) | {"example": found.maps[self.example]}

        arrays = self._kept(name, what, compute)
        self._job.discard(name)  # memory and disk stay small
        return arrays

    def _kept(
        self, name: str, what: str, compute: Callable[[], Mapping[str, FloatArray]]
    ) -> dict[str, FloatArray]:
        """Arrays from the store; `progress` is told of those that are there already."""
        computed = False

        def tell() -> Mapping[str, FloatArray]:
            nonlocal computed
            computed = True
            return compute()

        arrays = self._store.arrays(name, tell)
        if not computed:
            self._checks._progress(what, len(self._states))
        return arrays

    def _rng(self, name: str) -> np.random.Generator:
        # From the name, so that a method's figures do not hang on which others are asked for.
        return stream("metrics", self._checks._seed, zlib.crc32(name.encode()))

    def curves(self, name: str, maps: FloatArray) -> dict[str, FloatArray]:
        """Insertion and deletion in the order of a method's maps, of chance for `random`."""

        def compute() -> dict[str, FloatArray]:
            rng = self._rng(f"curves {name}")
            flat = np.zeros((len(maps), *MAP_SHAPE), np.float32)
            orders = [flat] * RANDOM_ORDERS if name == "random" else [maps]
            found = [
                curves(
                    self._checks._agent,
                    self._states.observations,
                    self._states.actions,
                    pixel_order(order, rng),
                )
                for order in orders
            ]
            self._checks._progress("insertion, deletion", len(maps))
            return {key: np.mean([one[key] for one in found], axis=0) for key in found[0]}

        return self._kept(f"curves.{name}", "insertion, deletion", compute)

    def parts(self, name: str, maps: FloatArray) -> dict[str, FloatArray]:
        """What blurring the parts of a method's maps changes."""

        def compute() -> dict[str, FloatArray]:
            masks = part_masks(maps, self._rng(f"parts {name}"))
            agent, states = self._checks._agent, self._states
            found = blur_effects(agent, states.observations, states.actions, masks)
            self._checks._progress("parts", len(maps))
            return found

        return self._kept(f"parts.{name}", "parts", compute)

    def cells(self, cells: AttentionCells) -> dict[str, FloatArray]:
        """What setting cells of the attention map to 0 changes."""

        def compute() -> dict[str, FloatArray]:
            agent, states, rng = self._checks._agent, self._states, self._rng("cells")
            found: dict[str, list[FloatArray]] = {}
            for batch in states.batches(CHUNK):
                obs, actions = states.observations[batch], states.actions[batch]
                masks = part_masks(agent.attention(obs), rng)
                after = {part: cells.scores(obs, mask) for part, mask in masks.items()}
                for key, values in effects(agent.scores(obs), after, actions).items():
                    found.setdefault(key, []).append(values)
            return {key: np.concatenate(values) for key, values in found.items()}

        return self._store.arrays("cells", compute)
