"""The job behind `fls intervene`: load, play both branches, compare, write."""

import io
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from fl_saliency.base import atomic_path, write_json
from fl_saliency.envs.games import game_info
from fl_saliency.experiments.configs import config_notes
from fl_saliency.experiments.intervention.branches import Branch, Branches, play_both
from fl_saliency.experiments.intervention.changes import (
    Maps,
    StepChange,
    compare,
    first_difference,
)
from fl_saliency.experiments.intervention.filmstrip import Film, filmstrip
from fl_saliency.experiments.intervention.game import check_pooling
from fl_saliency.experiments.intervention.settings import RESULT_FILES, InterventionSettings
from fl_saliency.experiments.load import LoadedRun, load_run
from fl_saliency.networks.registry import import_extra
from fl_saliency.saliency.methods import SaliencyMethod, make_methods
from fl_saliency.saliency.options import MethodOptions

__all__ = ["Intervention", "intervene"]

_BATCH = 64
"""Observations that a saliency method is given at a time."""


@dataclass(frozen=True, kw_only=True)
class Intervention:
    """What an intervention found and wrote."""

    branches: Branches
    changes: list[StepChange]
    action_names: tuple[str, ...]
    files: list[Path]

    def summary(self, at: int) -> list[str]:
        """What happened in each branch from decision `at` on, and the first change, a line each."""
        both = {"original": self.branches.original, "intervened": self.branches.intervened}
        return [*(self._told(name, both[name]) for name in both), self._first_change(at)]

    def _told(self, name: str, branch: Branch) -> str:
        played = " ".join(self.action_names[step.action] for step in branch.steps)
        ends = [step.end for step in branch.steps if step.end]
        end = f", {ends[-1]}" if ends else ""
        return f"{name}: {played}: reward {sum(s.reward for s in branch.steps):g}{end}"

    def _first_change(self, at: int) -> str:
        first = first_difference(self.changes)
        if first is None:
            return "the agent sees no difference at any of these decisions"
        change = self.changes[first]
        parts = [f"KL {change.kl:.4g} nats", f"value {change.value_change:+.4g}"]
        for name, one in change.maps.items():
            r = "undefined" if one.one_minus_r is None else f"{one.one_minus_r:.2g}"
            parts.append(f"{name} 1 - r {r}")
        return f"first difference seen at decision {at + first}: {', '.join(parts)}"


def intervene(
    settings: InterventionSettings, announce: Callable[[str], None] = lambda text: None
) -> Intervention:
    """Play and write intervention.json, .npz and .png.

    Whatever is wrong is an InputError before the first file is written; `announce` is told the
    protocol in one line.
    """
    settings.check()
    place = settings.place
    place.check()
    import_extra(settings.extra_import)
    run = load_run(settings.experiment_dir, seed=settings.eval_seed)
    methods = _methods(settings, run)
    settings.edits.check(game_info(run.protocol.game).screen)
    if settings.edits.change_picture:
        check_pooling(run.protocol)
    announce(run.protocol.summary())
    for note in config_notes(settings.experiment_dir, run.config):
        announce(note)
    branches = _play(settings, run)
    maps = (_maps(methods, branches.original), _maps(methods, branches.intervened))
    changes = compare(branches, *maps)
    film = _film(settings, run, branches, maps, changes)
    record = _record(settings, run, branches, changes)
    picture = _png(film)
    with place.hold():
        files = _write(place.path, film, record, picture)
    names = run.protocol.action_meanings
    return Intervention(branches=branches, changes=changes, action_names=names, files=files)


def _methods(settings: InterventionSettings, run: LoadedRun) -> list[SaliencyMethod]:
    if not settings.methods:
        return []
    return make_methods(settings.methods, run.agent, MethodOptions(target=settings.target))


def _play(settings: InterventionSettings, run: LoadedRun) -> Branches:
    with tqdm(
        desc="playing",
        total=settings.at,
        unit="decision",
        disable=None if settings.progress else True,
        leave=False,
    ) as bar:
        return play_both(
            run.agent,
            run.protocol,
            settings.edits,
            seed=settings.eval_seed,
            at=settings.at,
            steps=settings.steps,
            rule=settings.actions,
            keep=settings.keep,
            played=lambda decision: bar.update(),
        )


def _maps(methods: Sequence[SaliencyMethod], branch: Branch) -> Maps:
    """Every method's maps of a branch, float32 [T, 84, 84]."""
    starts = range(0, len(branch.steps), _BATCH)
    parts = [slice(start, start + _BATCH) for start in starts]
    obs, actions = branch.observations, branch.actions
    return {
        method.name: np.concatenate([method.maps(obs[part], actions[part]) for part in parts])
        for method in methods
    }


def _film(
    settings: InterventionSettings,
    run: LoadedRun,
    branches: Branches,
    maps: tuple[Maps, Maps],
    changes: list[StepChange],
) -> Film:
    edits = [f"byte {byte}: {old} -> {new}" for byte, (old, new) in branches.memory.items()]
    edits += [f"mask {region}" for region in settings.edits.masks]
    edits += [f"move {move}" for move in settings.edits.moves]
    kept = ", kept" if settings.keep else ""
    title = (
        f"{run.protocol.env_id}  {run.config['network']}  seed {settings.eval_seed}, "
        f"decision {settings.at}, actions {settings.actions}\nedit: {'; '.join(edits)}{kept}"
    )
    return Film(
        title=title,
        at=settings.at,
        edits=settings.edits,
        keep=settings.keep,
        branches=branches,
        maps=maps,
        changes=changes,
        action_names=run.protocol.action_meanings,
    )


def _record(
    settings: InterventionSettings, run: LoadedRun, branches: Branches, changes: list[StepChange]
) -> dict[str, Any]:
    """intervention.json."""
    first = first_difference(changes)
    numbered = [{"decision": settings.at + i, **asdict(one)} for i, one in enumerate(changes)]
    return {
        "env_name": run.protocol.env_id,
        "network": run.config["network"],
        "train_seed": run.config.get("train_seed"),
        "model_sha256": run.model_sha256,
        **settings.as_dict(),
        "memory": [
            {"byte": byte, "before": before, "after": after}
            for byte, (before, after) in branches.memory.items()
        ],
        "action_names": list(run.protocol.action_meanings),
        "at_branching": numbered[0],
        "first_difference": None if first is None else numbered[first],
        "changes": numbered,
        "branches": {
            "original": _steps(branches.original, settings.at, run.protocol.action_meanings),
            "intervened": _steps(branches.intervened, settings.at, run.protocol.action_meanings),
        },
        "protocol": run.protocol.as_dict(),
    }


def _steps(branch: Branch, at: int, names: Sequence[str]) -> list[dict[str, Any]]:
    return [
        {
            "decision": at + index,
            "action": step.action,
            "action_name": names[step.action],
            "policy": step.policy,
            "value": step.value,
            "reward": step.reward,
            "lives": step.lives,
            "end": step.end,
        }
        for index, step in enumerate(branch.steps)
    ]


def _png(film: Film) -> bytes:
    """The picture as a PNG file, drawn before results that are there are given up."""
    memory = io.BytesIO()
    filmstrip(film).savefig(memory, format="png", dpi=120)
    return memory.getvalue()


def _write(directory: Path, film: Film, record: dict[str, Any], picture: bytes) -> list[Path]:
    """intervention.json comes last: where it is, the rest is too."""
    paths = [directory / name for name in RESULT_FILES]
    with atomic_path(paths[2]) as partial:
        partial.write_bytes(picture)
    with atomic_path(paths[1]) as partial:
        np.savez_compressed(partial, **_arrays(film))
    write_json(paths[0], record)
    return paths


def _arrays(film: Film) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for name, branch, maps in zip(("original", "intervened"), film.both, film.maps, strict=True):
        arrays[f"{name}_observations"] = branch.observations
        arrays[f"{name}_screens"] = branch.screens
        arrays |= {f"{name}_maps_{method}": grid for method, grid in maps.items()}
    return arrays
