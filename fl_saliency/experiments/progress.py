"""What an unfinished evaluation has reached, saved so that it can go on as if never stopped."""

import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from fl_saliency.base import Agent, EpisodeRecord, IntArray, strict_json
from fl_saliency.checkpoints.snapshots import (
    Snapshot,
    find_snapshots,
    read_newest,
    remove_leftovers,
    write_snapshot,
)
from fl_saliency.envs.emulator import GameState
from fl_saliency.envs.snapshots import games_from_arrays, games_to_arrays
from fl_saliency.envs.vector import AtariVectorEnv
from fl_saliency.errors import FileFormatError
from fl_saliency.folders import check_same_job
from fl_saliency.render.perception import PerceptionRecorder, RecordingState

__all__ = ["EvaluationProgress"]

AFTER_A_GAME = 1.0
"""Seconds between two saves if a game has ended: no finished game is lost for longer."""
AT_LEAST = 60.0
"""Seconds between two saves if none has: games can take half an hour."""


class EvaluationProgress:
    """The finished games of an evaluation and, once saved or found, the open ones."""

    def __init__(self, folder: Path, job: Mapping[str, Any]) -> None:
        """Nothing reached yet of `job`, what two evaluations must share for one to go on."""
        self._folder = folder
        self._job = strict_json(dict(job))
        self._saves = 0
        self._saved = time.monotonic()
        self._began = time.monotonic()
        self._seconds = 0.0
        self._new_games = False
        self.episodes: list[EpisodeRecord] = []
        self.games: list[GameState] | None = None
        """Where each env was, for a job that goes on."""
        self.recording: RecordingState | None = None
        self._random: Mapping[str, Any] = {}

    def find(self, num_actions: int) -> None:
        """Read what was saved, if anything was; InputError if that was of another job."""
        remove_leftovers(self._folder)
        snapshot, damaged = read_newest(self._folder)
        if snapshot is None and damaged:
            raise FileFormatError(f"{damaged[0]}; add --overwrite to begin anew")
        if snapshot is None:
            return
        check_same_job(self._folder, snapshot.state.get("job"), self._job)
        self._read(snapshot, num_actions)

    def _read(self, snapshot: Snapshot, num_actions: int) -> None:
        state = snapshot.state
        try:
            self.games = games_from_arrays(snapshot.arrays, state["games"], num_actions)
            self.episodes = [EpisodeRecord(**episode) for episode in state["episodes"]]
            self.recording = state["recording"]
            self._random = state["random"]
            self._seconds = float(state["seconds"])
        except (KeyError, TypeError, ValueError) as error:
            raise FileFormatError(f"{self._folder}: not an unfinished evaluation") from error
        self._saves = snapshot.index

    def restore(self, env: AtariVectorEnv, agent: Agent) -> None:
        """Bring `env` and `agent` to where the unfinished evaluation was."""
        env.set_states(self.games or [])
        agent.rng.bit_generator.state = self._random

    def finished(self, num_env: int) -> IntArray:
        """Games that each env has finished, int64 [N]."""
        return np.bincount([episode.env for episode in self.episodes], minlength=num_env)

    def frames_file(self) -> Path:
        """Where recorded frames wait for the video."""
        self._folder.mkdir(exist_ok=True)
        return self._folder / "frames"

    def add(self, episode: EpisodeRecord) -> None:
        """Take note of a finished game; its time counts from the beginning of the whole job."""
        self.episodes.append(replace(episode, time=episode.time + self._seconds))
        self._new_games = True

    @property
    def is_due(self) -> bool:
        """Whether it is time to save."""
        return time.monotonic() - self._saved >= (AFTER_A_GAME if self._new_games else AT_LEAST)

    def save(self, env: AtariVectorEnv, agent: Agent, recorder: PerceptionRecorder | None) -> None:
        """Save what was reached; env and agent must be between two steps."""
        arrays, games = games_to_arrays(env.get_states())
        state = {
            "job": self._job,
            "games": games,
            "episodes": [asdict(episode) for episode in self.episodes],
            "recording": None if recorder is None else recorder.sync(),
            "random": agent.rng.bit_generator.state,
            "seconds": self._seconds + time.monotonic() - self._began,
        }
        self._saves += 1
        write_snapshot(self._folder, Snapshot(index=self._saves, arrays=arrays, state=state))
        self._saved, self._new_games = time.monotonic(), False

    def remove(self) -> None:
        """The job is done: nothing of this is needed any more."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def tidy(self) -> None:
        """Leave nothing behind if nothing was saved."""
        if not find_snapshots(self._folder):
            self.remove()
