"""Evaluation of a trained agent: raw whole-game scores with a fixed quota per env, and a video."""

import contextlib
import pickle
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from fl_saliency.base import EpisodeRecord, atomic_path, write_json
from fl_saliency.envs.games import game_info
from fl_saliency.envs.protocol import Protocol, mismatches
from fl_saliency.envs.vector import AtariVectorEnv
from fl_saliency.errors import InputError, JobError
from fl_saliency.experiments.configs import PARTIAL, RESULT_FILES, EvaluationConfig, config_notes
from fl_saliency.experiments.load import LoadedRun, load_run
from fl_saliency.experiments.plots import plot_returns
from fl_saliency.experiments.progress import EvaluationProgress
from fl_saliency.networks.registry import import_extra
from fl_saliency.playback.play import PlayStep, play
from fl_saliency.render.perception import PerceptionRecorder

__all__ = ["PARTIAL", "RESULT_FILES", "Evaluation", "evaluate", "results_dict"]

NEWEST = -1


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """What an evaluation found and wrote."""

    episodes: list[EpisodeRecord]
    files: list[Path]


def evaluate(
    config: EvaluationConfig, announce: Callable[[str], None] = lambda text: None
) -> Evaluation:
    """Play and write results.json, eval.pkl, results.png and, if asked for, the videos.

    Everything is checked before the first file is written (InputError); `announce` is then told
    the protocol in one line. What an evaluation of the same settings left unfinished goes on, and
    gives the same results as if it had never stopped.
    """
    config.check()
    place = config.place
    place.check()
    import_extra(config.extra_import)
    run = load_run(config.experiment_dir, seed=config.eval_seed)
    protocol, differences = _protocol(config, run)
    with place.hold(), contextlib.ExitStack() as stack:
        progress = EvaluationProgress(place.unfinished, _job(config, run, protocol))
        progress.find(protocol.num_actions)
        stack.callback(progress.tidy)
        announce(protocol.summary())
        for note in config_notes(config.experiment_dir, run.config):
            announce(note)
        env = stack.enter_context(_env(config, protocol))
        _go_on(config, run, env, progress, announce)
        recorder = _recorder(config, run, protocol, place.path, progress)
        if recorder is not None:
            stack.enter_context(recorder)
        episodes, failure = _play(config, run, env, recorder, progress)
        if recorder is not None and failure is None:
            progress.save(env, run.agent, recorder)  # the video can be made again, if that fails
        # The scores first: they stay even if no video can be made of the frames.
        results = _results(config, run, protocol, differences, episodes)
        files = _write(place.path, results, episodes)
        if recorder is not None and failure is None:
            files += recorder.close(progress=config.progress).files
        progress.remove()
        if failure is not None:
            raise failure
    return Evaluation(episodes=episodes, files=files)


def _env(config: EvaluationConfig, protocol: Protocol) -> AtariVectorEnv:
    return AtariVectorEnv(
        protocol,
        config.num_env,
        config.eval_seed,
        workers=config.env_workers,
        screens=config.shows_raw,
        max_episode_frames=config.max_eplen,
    )


def _go_on(
    config: EvaluationConfig,
    run: LoadedRun,
    env: AtariVectorEnv,
    progress: EvaluationProgress,
    announce: Callable[[str], None],
) -> None:
    """Bring env and agent to where an unfinished evaluation was, if there is one."""
    if progress.games is None:
        return
    done, total = len(progress.episodes), config.num_env * config.evals_per_env
    announce(f"goes on with an unfinished evaluation: {done} of {total} games are finished")
    progress.restore(env, run.agent)


def _job(config: EvaluationConfig, run: LoadedRun, protocol: Protocol) -> dict[str, Any]:
    """What two evaluations must have in common for one to go on with the other's games."""
    return {
        "model_sha256": run.model_sha256,
        "network": run.config["network"],
        "protocol": protocol.as_dict(),
        "num_env": config.num_env,
        "evals_per_env": config.evals_per_env,
        "eval_seed": config.eval_seed,
        "max_eplen": config.max_eplen,
        "raw_obs": config.shows_raw,
        "processed_obs": config.processed_obs,
    }


def _protocol(config: EvaluationConfig, run: LoadedRun) -> tuple[Protocol, list[str]]:
    """The protocol to play, and how it differs from the trained one (an error unless allowed)."""
    used = replace(run.protocol, **config.overrides())
    differences = mismatches(run.protocol, used)
    if differences and not config.allow_protocol_mismatch:
        raise InputError(
            f"the protocol differs from the trained one ({'; '.join(differences)}); "
            "add --allow-protocol-mismatch to label and keep the results"
        )
    if used.num_actions != run.protocol.num_actions:
        raise InputError(
            f"the model has {run.protocol.num_actions} actions, this protocol {used.num_actions}"
        )
    return used, differences


def _recorder(
    config: EvaluationConfig,
    run: LoadedRun,
    protocol: Protocol,
    directory: Path,
    progress: EvaluationProgress,
) -> PerceptionRecorder | None:
    if not (config.shows_raw or config.processed_obs):
        return None
    return PerceptionRecorder(
        directory,
        raw=config.shows_raw,
        processed=config.processed_obs,
        geometry=run.agent.geometry,
        num_envs=config.num_env,
        screen_shape=game_info(protocol.game).screen,
        metadata={"title": f"{protocol.env_id} {run.config['network']}"},
        kept=progress.frames_file(),
        state=progress.recording,
    )


def _play(
    config: EvaluationConfig,
    run: LoadedRun,
    env: AtariVectorEnv,
    recorder: PerceptionRecorder | None,
    progress: EvaluationProgress,
) -> tuple[list[EpisodeRecord], JobError | None]:
    """The games, env by env, and why the recording failed, if it did: the games go on."""
    failure: JobError | None = None
    episodes = progress.episodes
    finished = progress.finished(config.num_env) if progress.games is not None else None
    with tqdm(
        total=config.num_env * config.evals_per_env,
        initial=len(episodes),
        unit="game",
        disable=None if config.progress else True,
    ) as bar:
        for event in play(run.agent, env, config.evals_per_env, finished=finished):
            if isinstance(event, EpisodeRecord):
                progress.add(event)
                mean = np.mean([episode.reward for episode in episodes])
                bar.set_postfix_str(f"mean return {mean:.1f}", refresh=False)
                bar.update()
            elif isinstance(event, PlayStep):
                if recorder is not None and failure is None:
                    failure = _record(recorder, event)
            elif failure is None and progress.is_due:
                progress.save(env, run.agent, recorder)
    return sorted(episodes, key=lambda episode: (episode.env, episode.episode)), failure


def _record(recorder: PerceptionRecorder, step: PlayStep) -> JobError | None:
    newest = step.observations[..., NEWEST]
    try:
        recorder.add(step.screens, newest, step.attention, step.active)
    except JobError as error:
        recorder.abort()
        return error
    return None


def results_dict(episodes: list[EpisodeRecord], num_env: int) -> dict[str, Any]:
    """results.json's figures, a list entry per game, env by env; the original's keys come first."""
    rewards = [episode.reward for episode in episodes]
    return {
        "rewards": rewards,
        "lengths": [float(episode.length) for episode in episodes],
        "elapsed_time": [episode.time for episode in episodes],
        "done_per_env": [sum(e.env == env for e in episodes) for env in range(num_env)],
        "env": [episode.env for episode in episodes],
        "seed": [episode.seed for episode in episodes],
        "frames": [episode.frames for episode in episodes],
        "end": [episode.end for episode in episodes],
        "n_episodes": len(episodes),
        "n_finished": sum(episode.end == "game_over" for episode in episodes),
        "mean_reward": float(np.mean(rewards)) if rewards else None,
        "std_reward": float(np.std(rewards)) if rewards else None,
    }


def _results(
    config: EvaluationConfig,
    run: LoadedRun,
    protocol: Protocol,
    differences: list[str],
    episodes: list[EpisodeRecord],
) -> dict[str, Any]:
    return {
        **results_dict(episodes, config.num_env),
        "env_name": protocol.env_id,
        "network": run.config["network"],
        "train_seed": run.config.get("train_seed"),
        "eval_seed": config.eval_seed,
        "max_eplen": config.max_eplen,
        "protocol": protocol.as_dict(),
        "protocol_matches_training": not differences,
        "protocol_differences": differences,
    }


def _write(directory: Path, results: dict[str, Any], episodes: list[EpisodeRecord]) -> list[Path]:
    paths = [directory / name for name in RESULT_FILES[:3]]
    columns = ("rewards", "lengths", "elapsed_time", "done_per_env", "env", "seed", "frames")
    write_json(paths[0], results)
    with atomic_path(paths[1]) as partial:
        arrays = {name: np.asarray(results[name]) for name in columns} | {"end": results["end"]}
        partial.write_bytes(pickle.dumps(arrays, protocol=4))
    title = f"{results['env_name']}  {results['network']}  seed {results['eval_seed']}"
    plot_returns([episode.reward for episode in episodes], paths[2], title=title)
    return paths
