"""The job behind `fls saliency`: record states, compute each method's maps, draw, write."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fl_saliency.atari_head.progress import trial_files
from fl_saliency.atari_head.reader import TrialRef, find_trials, open_trial
from fl_saliency.atari_head.replay import play_back
from fl_saliency.base import Agent, FloatArray, atomic_path, write_json
from fl_saliency.cli.common import progress_bar, start_tensorflow
from fl_saliency.cli.saliency import RESULT_FILES, SaliencyConfig
from fl_saliency.envs.protocol import Protocol
from fl_saliency.envs.vector import AtariVectorEnv
from fl_saliency.errors import InputError
from fl_saliency.experiments.configs import config_notes
from fl_saliency.experiments.maps import MapJob, Maps, outputs
from fl_saliency.experiments.overlays import Overlays
from fl_saliency.experiments.runs import read_config
from fl_saliency.playback.states import Moment, States, moments_of_play
from fl_saliency.render.video import require_encoder
from fl_saliency.saliency.methods import SaliencyMethod, make_methods
from fl_saliency.seeding import check_seed

if TYPE_CHECKING:  # it imports TensorFlow
    from fl_saliency.experiments.load import LoadedRun

__all__ = ["run_saliency"]


def run_saliency(config: SaliencyConfig) -> int:
    """Compute, draw and write; everything is checked before the first file is written."""
    config.check()
    check_seed("--eval-seed", config.eval_seed)
    of_run = read_config(config.experiment_dir)
    place = config.place
    place.check()
    start_tensorflow()
    from fl_saliency.experiments.load import load_run
    from fl_saliency.networks.registry import import_extra

    import_extra(config.extra_import)
    run = load_run(config.experiment_dir, seed=config.eval_seed)
    methods = make_methods(config.methods, run.agent, config.options)
    require_encoder("libx264")
    for note in config_notes(config.experiment_dir, of_run):
        print(note)
    trial = _trial(config, run)
    with place.hold(), ExitStack() as stack:
        moments = stack.enter_context(_source(config, run, trial))
        print(f"protocol of the model: {run.protocol.summary()}", flush=True)
        job = MapJob(place.unfinished, _job(config, run, trial))
        states = job.states(moments, config.steps)
        maps = [_maps(config, job, method, states) for method in methods]
        files = _write(config, run, states, maps, place.path)
        # Last: where it is, all is.
        write_json(files[0], _summary(config, run, trial, states, maps))
        job.remove()
    for item in maps:
        print(f"{item.name}: {len(states)} states in {item.seconds:.1f} s")
    for path in files:
        print(path)
    return 0


def _trial(config: SaliencyConfig, run: "LoadedRun") -> TrialRef | None:
    """The recorded trial that is to be replayed, if one is; InputError if it is not there."""
    if config.atari_head_dir is None:
        return None
    refs = find_trials(config.atari_head_dir, run.config["env_name"])
    present = {ref.number: ref for ref in refs if not ref.absent}
    if config.trial not in present:
        known = ", ".join(map(str, present))
        raise InputError(f"--trial {config.trial}: no such trial; choose from: {known}")
    return present[config.trial]


def _job(config: SaliencyConfig, run: "LoadedRun", trial: TrialRef | None) -> dict[str, Any]:
    """What two jobs must have in common for one to go on with the other's maps."""
    return {
        **run.identity,
        "options": asdict(config.options),
        "steps": config.steps,
        "eval_seed": config.eval_seed,
        "atari_head_dir": config.atari_head_dir,
        "trial": config.trial,
        "trial_files": None if trial is None else trial_files(trial),
    }


@contextmanager
def _source(
    config: SaliencyConfig, run: "LoadedRun", ref: TrialRef | None
) -> Iterator[Callable[[], Iterable[Moment]]]:
    """What gives the moments: games of the agent, or a recorded trial."""
    if ref is not None:
        with open_trial(ref) as trial:
            yield lambda: _moments_of_trial(run.agent, trial.frames(), run.protocol)
    else:
        with AtariVectorEnv(run.protocol, 1, config.eval_seed, workers=0, screens=True) as env:
            yield lambda: moments_of_play(run.agent, env)


def _moments_of_trial(agent: Agent, frames: Any, protocol: Protocol) -> Iterator[Moment]:
    for decision in play_back(frames, protocol):
        yield Moment(
            observation=decision.observation,
            screen=decision.screen,
            action=int(agent.scores(decision.observation[None]).argmax()),
            score=float("nan"),
            game=0,
        )


def _maps(config: SaliencyConfig, job: MapJob, method: SaliencyMethod, states: States) -> Maps:
    with progress_bar(config.progress, method.name, "state", len(states)) as bar:
        return job.maps(method, states, progress=bar.update)


def _write(
    config: SaliencyConfig, run: "LoadedRun", states: States, maps: Sequence[Maps], folder: Path
) -> list[Path]:
    scores, values = outputs(run.agent, states)
    paths = [folder / name for name in RESULT_FILES]
    video = folder / config.video_name
    overlays = Overlays(states, maps, _captions(run, states, values), config.style)
    title = (
        f"{run.config['env_name']}, {run.config['network']}: saliency of {config.options.target}"
    )
    with progress_bar(config.progress, "video", "frame", len(states)) as bar:
        overlays.video(video, progress=bar.update)
    overlays.stills(paths[3], title)
    with atomic_path(paths[2]) as partial:
        np.savez_compressed(
            partial,
            actions=states.actions,
            values=values,
            scores=scores,
            game_scores=states.scores,
            games=states.games,
        )
    with atomic_path(paths[1]) as partial:
        np.savez(partial, **{item.name: item.maps for item in maps})  # type: ignore[arg-type]
    return [*paths, video]


def _captions(run: "LoadedRun", states: States, values: FloatArray) -> Callable[[int], str]:
    names = run.protocol.action_meanings

    def caption(state: int) -> str:
        parts = [names[int(states.actions[state])], f"value {values[state]:.2f}"]
        if np.isfinite(states.scores[state]):
            parts.append(f"score {states.scores[state]:.0f}")
        return "  ".join(parts)

    return caption


def _summary(
    config: SaliencyConfig,
    run: "LoadedRun",
    trial: TrialRef | None,
    states: States,
    maps: Sequence[Maps],
) -> dict[str, Any]:
    return {
        **_job(config, run, trial),
        "train_seed": run.config.get("train_seed"),
        "states": len(states),
        "games": states.num_games,
        "stage": "the network's 84x84 input; its maps are enlarged to the screen for pictures",
        "action": "chosen by the agent" if config.trial is None else "the agent's greedy one",
        "style": asdict(config.style),
        "methods": [
            {
                "name": item.name,
                "target": item.target,
                "seconds": item.seconds,
                "largest": float(np.max(item.maps)),
                "constant_maps": int((np.ptp(item.maps, axis=(1, 2)) == 0).sum()),
            }
            for item in maps
        ],
    }
