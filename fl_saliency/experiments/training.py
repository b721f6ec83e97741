"""A training run, from settings to a run directory: logs as it goes, model and curve at its end."""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tqdm import tqdm

from fl_saliency.agents.ppo2.train import DivergedError, PPO2Trainer, Update
from fl_saliency.base import check_output_dir, prepare_output_dir
from fl_saliency.checkpoints.baselines import write_model
from fl_saliency.envs.protocol import Protocol
from fl_saliency.envs.vector import AtariVectorEnv
from fl_saliency.experiments.configs import TrainConfig, environment_record
from fl_saliency.experiments.plots import plot_curve
from fl_saliency.experiments.runs import RunDir, run_path, write_config
from fl_saliency.logs.monitor import MonitorWriter
from fl_saliency.logs.writers import Logger
from fl_saliency.networks.policy import get_arrays
from fl_saliency.networks.registry import get_network, import_extra

__all__ = ["save_model", "train"]


def train(config: TrainConfig, announce: Callable[[str], None] = lambda text: None) -> RunDir:
    """Train as `config` says; returns the finished run directory.

    Everything is checked before the first file is written (InputError); `announce` is then told
    the protocol in one line. A run that is interrupted, or fails for another reason than its loss,
    leaves its logs, its curve and a model.pkl of the last finished update.
    """
    config.check()
    import_extra(config.extra_import)
    get_network(config.network)
    protocol = config.protocol(config.env_name)
    path = config.output_dir or run_path(
        Path("runs"), config.env_name, config.network, config.train_seed
    )
    check_output_dir(path)
    started = time.time()
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
        run = RunDir(prepare_output_dir(path))
        announce(protocol.summary())
        _write_config(run, config, protocol)
        with _saving(run, trainer):
            env.reset()
            _log_updates(run, config, trainer, started)
    return run


def _write_config(run: RunDir, config: TrainConfig, protocol: Protocol) -> None:
    settings = {**config.as_dict(), "protocol": protocol.as_dict(), **environment_record()}
    write_config(run.path, settings)


@contextmanager
def _saving(run: RunDir, trainer: PPO2Trainer) -> Iterator[None]:
    """Save model and curve however the run ends, unless no update was finished or it diverged."""
    try:
        yield
    except DivergedError:
        plot_curve(run.path, run.curve)
        raise
    except BaseException:
        if trainer.finished_updates:
            _save(run, trainer)
        raise
    _save(run, trainer)


def _save(run: RunDir, trainer: PPO2Trainer) -> None:
    save_model(run.model, trainer)
    plot_curve(run.path, run.curve)


def _log_updates(run: RunDir, config: TrainConfig, trainer: PPO2Trainer, started: float) -> None:
    run.logs.mkdir(exist_ok=True)
    steps = trainer.num_updates * config.batch_size
    monitors = MonitorWriter(
        run.logs, env_id=config.env_name, num_envs=config.num_envs, t_start=started
    )
    bar: tqdm[Any] = tqdm(
        total=steps, unit="step", unit_scale=True, disable=None if config.progress else True
    )
    with monitors, Logger(run.logs, run.tensorboard) as logger, bar:
        for update in trainer.updates():
            for episode in update.episodes:
                monitors.write(episode)
            logger.write(update.row, update.index)
            _show(bar, update, config.batch_size)


def _show(bar: "tqdm[Any]", update: Update, batch_size: int) -> None:
    mean = update.row["eprewmean"]
    shown = "-" if math.isnan(mean) else f"{mean:.1f}"
    bar.set_postfix_str(f"mean return {shown}", refresh=False)
    bar.update(batch_size)


def save_model(path: Path, trainer: PPO2Trainer) -> None:
    """Write model.pkl in Baselines' format: weights and the optimizer's state."""
    adam = trainer.learner.adam
    first, second = trainer.learner.optimizer_arrays()
    write_model(
        path,
        trainable=get_arrays(trainer.model),
        adam_m=first,
        adam_v=second,
        beta1_power=float(adam.beta1_power.numpy()),
        beta2_power=float(adam.beta2_power.numpy()),
    )
