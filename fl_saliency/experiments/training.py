"""A training run, from settings to a run directory: logs as it goes, model and curve at its end."""

import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from fl_saliency.agents.ppo2.state import TrainerState
from fl_saliency.agents.ppo2.train import DivergedError, PPO2Trainer, Update
from fl_saliency.checkpoints.baselines import read_model, write_model
from fl_saliency.checkpoints.snapshots import (
    find_snapshots,
    read_newest,
    remove_leftovers,
    write_snapshot,
)
from fl_saliency.envs.protocol import Protocol, mismatches
from fl_saliency.envs.vector import AtariVectorEnv
from fl_saliency.errors import FileFormatError, InputError, JobError
from fl_saliency.experiments.configs import TrainConfig, environment_record
from fl_saliency.experiments.load import trained_protocol
from fl_saliency.experiments.plots import plot_curve
from fl_saliency.experiments.runs import RunDir, check_run_directory, read_config, write_config
from fl_saliency.folders import hold
from fl_saliency.logs.monitor import MonitorWriter
from fl_saliency.logs.positions import cut_back, log_sizes, sync_logs
from fl_saliency.logs.writers import Logger
from fl_saliency.networks.registry import get_network, import_extra

__all__ = ["save_model", "train"]

Announce = Callable[[str], None]


def train(config: TrainConfig, announce: Announce = lambda text: None) -> RunDir:
    """Train as `config` says; returns the finished run directory.

    Everything is checked before the first file is written (InputError); `announce` is then told
    the protocol in one line, and after what the run goes on if `config.resume` found something. A
    run that is interrupted, or fails for another reason than its loss, leaves its logs, its curve,
    a model.pkl and a checkpoint of the last finished update.
    """
    config.check()
    import_extra(config.extra_import)
    get_network(config.network)
    protocol = config.protocol(config.env_name)
    run = RunDir(config.run_directory)
    check_run_directory(run.path, resume=config.resume)
    with AtariVectorEnv(
        protocol, config.num_envs, config.train_seed, workers=config.env_workers
    ) as env:
        trainer = PPO2Trainer(
            config.network,
            env,
            config,
            num_timesteps=config.num_timesteps,
            seed=config.train_seed,
            precision=config.precision,
        )
        with hold(run.path):
            # Again, now that nobody else can write there.
            check_run_directory(run.path, resume=config.resume)
            announce(protocol.summary())
            point = _begin(run, config, protocol, trainer, announce)
            if point.state.update < trainer.num_updates:
                _train(run, config, trainer, point)
            elif not _is_saved(run, point):  # it was killed in its last moment
                _save(run, point)
    return run


@dataclass(frozen=True, kw_only=True)
class _Point:
    """A moment to which a run can be brought back."""

    state: TrainerState
    logs: Mapping[str, int]
    """How far the log files had got."""


def _is_saved(run: RunDir, point: _Point) -> bool:
    """Whether model and curve are there, and the model is of this moment."""
    try:
        model = read_model(run.model)
    except FileFormatError:
        return False
    found = dict(zip(model.names or (), model.arrays, strict=False))
    weights = point.state.weights
    return run.curve.exists() and all(
        name in found and np.array_equal(found[name], weights[name]) for name in weights
    )


def _begin(
    run: RunDir, config: TrainConfig, protocol: Protocol, trainer: PPO2Trainer, announce: Announce
) -> _Point:
    """Bring `trainer` and the logs to where the run begins or goes on."""
    remove_leftovers(run.checkpoints)
    if config.resume and find_snapshots(run.checkpoints):
        return _resume(run, protocol, trainer, announce)
    if config.resume:
        announce(f"{run.path}: no run to go on with; it begins")
    settings = {**config.as_dict(), "protocol": protocol.as_dict(), **environment_record()}
    write_config(run.path, settings)
    trainer.start()
    point = _Point(state=trainer.state, logs={})
    _checkpoint(run, point)
    return point


def _resume(run: RunDir, protocol: Protocol, trainer: PPO2Trainer, announce: Announce) -> _Point:
    stored = trained_protocol(run.config, read_config(run.path))
    if differences := mismatches(stored, protocol):
        raise InputError(f"{run.path}: its protocol differs: {'; '.join(differences)}")
    snapshot, damaged = read_newest(run.checkpoints)
    for line in damaged:
        announce(f"passed over: {line}")
    if snapshot is None:
        raise FileFormatError(f"{run.checkpoints}: none of its checkpoints is whole")
    state = TrainerState.from_snapshot(snapshot, num_actions=protocol.num_actions)
    logs = snapshot.state.get("logs")
    if not isinstance(logs, dict):
        raise FileFormatError(f"{run.checkpoints}: checkpoint {snapshot.index} knows of no logs")
    point = _Point(state=state, logs=logs)
    done = f"update {state.update} of {trainer.num_updates}"
    if state.update >= trainer.num_updates:
        announce(f"{run.path}: finished already, with {done}")
        return point
    steps = max((len(game.actions) for game in state.games), default=0)
    announce(
        f"{run.path}: goes on after {done}; "
        f"the open games (of up to {steps} steps) are played again up to there"
    )
    trainer.restore(state)
    cut_back(run.path, point.logs)
    return point


def _checkpoint(run: RunDir, point: _Point) -> None:
    _require(run)
    sync_logs(run.path)
    write_snapshot(run.checkpoints, point.state.to_snapshot({"logs": dict(point.logs)}))


def _require(run: RunDir) -> None:
    if not run.path.is_dir():
        raise JobError(f"{run.path}: the run directory is gone")


def _save(run: RunDir, point: _Point) -> None:
    _checkpoint(run, point)
    save_model(run.model, point.state)
    plot_curve(run.path, run.curve)


def _train(run: RunDir, config: TrainConfig, trainer: PPO2Trainer, point: _Point) -> None:
    """Train from `point` to the end; save however that comes, unless the run diverged."""
    try:
        for point in _logged_updates(run, config, trainer):  # noqa: B007 (the last is saved)
            pass
    except DivergedError as error:
        plot_curve(run.path, run.curve)
        raise DivergedError(
            f"{error}; no model.pkl was written, the last checkpoint is "
            f"{find_snapshots(run.checkpoints)[0]}"
        ) from error
    except BaseException:
        if point.state.update:
            _save(run, point)
        raise
    _save(run, point)


def _logged_updates(run: RunDir, config: TrainConfig, trainer: PPO2Trainer) -> Iterator[_Point]:
    """The moments after each update, whose rows are in the logs; writes checkpoints meanwhile."""
    done, size = trainer.state.update, config.batch_size
    monitors = MonitorWriter(
        run.logs, env_id=config.env_name, num_envs=config.num_envs, t_start=time.time()
    )
    bar: tqdm[Any] = tqdm(
        total=trainer.num_updates * size,
        initial=done * size,
        unit="step",
        unit_scale=True,
        disable=None if config.progress else True,
    )
    saved = time.monotonic()
    with monitors, Logger(run.logs, run.tensorboard, first_step=done + 1) as logger, bar:
        for update in trainer.updates():
            _require(run)
            for episode in update.episodes:
                monitors.write(episode)
            logger.write(update.row, update.index)
            point = _Point(state=trainer.state, logs=log_sizes(run.path))
            yield point
            _show(bar, update, size)
            if time.monotonic() - saved >= 60 * config.checkpoint_minutes:
                _checkpoint(run, point)
                saved = time.monotonic()


def _show(bar: "tqdm[Any]", update: Update, batch_size: int) -> None:
    mean = update.row["eprewmean"]
    shown = "-" if math.isnan(mean) else f"{mean:.1f}"
    bar.set_postfix_str(f"mean return {shown}", refresh=False)
    bar.update(batch_size)


def save_model(path: Path, state: TrainerState) -> None:
    """Write model.pkl in Baselines' format: weights and the optimizer's state."""
    write_model(
        path,
        trainable=state.weights,
        adam_m=state.adam_m,
        adam_v=state.adam_v,
        beta1_power=float(state.adam_powers[0]),
        beta2_power=float(state.adam_powers[1]),
    )
