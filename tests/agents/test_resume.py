"""A trainer that is restored goes on bit for bit as one that never stopped."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from fl_saliency.agents.ppo2.config import PPO2Config
from fl_saliency.agents.ppo2.state import TrainerState
from fl_saliency.agents.ppo2.train import DivergedError, PPO2Trainer
from fl_saliency.checkpoints.snapshots import Snapshot
from fl_saliency.envs.protocol import resolve_protocol
from fl_saliency.envs.vector import AtariVectorEnv
from fl_saliency.errors import FileFormatError

CONFIG = PPO2Config(num_envs=2, num_steps=32)
UPDATES = 6


def trainer(env: AtariVectorEnv, network: str = "cnn_daqn") -> PPO2Trainer:
    return PPO2Trainer(network, env, CONFIG, num_timesteps=64 * UPDATES, seed=3)


@pytest.fixture
def env() -> Iterator[AtariVectorEnv]:
    protocol = resolve_protocol("BreakoutNoFrameskip-v4", repeat_action_probability=0.25)
    with AtariVectorEnv(protocol, 2, 5, workers=0) as made:
        yield made


def flat(state: TrainerState) -> dict[str, np.ndarray]:
    arrays = {
        f"{group}/{name}": array
        for group in ("weights", "adam_m", "adam_v")
        for name, array in getattr(state, group).items()
    }
    games = {f"game {i}": game.actions for i, game in enumerate(state.games)}
    return arrays | games | {"powers": state.adam_powers}


def assert_equal(first: TrainerState, second: TrainerState) -> None:
    one, other = flat(first), flat(second)
    assert one.keys() == other.keys()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name], err_msg=name)
    assert first.update == second.update
    assert first.random == second.random
    assert [replace(e, time=0) for e in first.recent] == [replace(e, time=0) for e in second.recent]


def test_a_restored_run_ends_as_one_that_never_stopped(env: AtariVectorEnv) -> None:
    whole = trainer(env)
    whole.start()
    updates, kept, copies = [], {}, {}
    kept[0] = whole.state
    copies[0] = {name: array.copy() for name, array in flat(whole.state).items()}
    for update in whole.updates():
        updates.append(update)
        kept[update.index] = whole.state
        copies[update.index] = {name: array.copy() for name, array in flat(whole.state).items()}
    for index, copy in copies.items():  # later updates have not reached into an earlier state
        for name, array in copy.items():
            np.testing.assert_array_equal(flat(kept[index])[name], array, err_msg=name)

    again = trainer(env)
    for index in (3, 0):
        snapshot = kept[index].to_snapshot({"logs": {}})
        again.restore(TrainerState.from_snapshot(snapshot, num_actions=4))
        rest = list(again.updates())
        assert [update.index for update in rest] == list(range(index + 1, UPDATES + 1))
        assert_equal(again.state, whole.state)
        for one, other in zip(updates[index:], rest, strict=True):
            for key in one.row.keys() - {"fps", "time_elapsed"}:
                np.testing.assert_equal(one.row[key], other.row[key], err_msg=key)
    assert again.learner.compilations == 1


def test_the_learning_rate_goes_on_where_it_was(env: AtariVectorEnv) -> None:
    made = trainer(env)
    assert made.learning_rate(4) == pytest.approx(2.5e-4 * 0.5)
    made.start()
    list(islice(made.updates(), 3))
    assert made.state.update == 3


def test_a_state_of_another_run_is_refused_and_changes_nothing(env: AtariVectorEnv) -> None:
    made = trainer(env)
    made.start()
    state = made.state
    name = next(iter(state.weights))
    wrong = [
        (
            replace(state, weights={**state.weights, "ppo2_model/pi/x/w:0": state.adam_powers}),
            "x/w",
        ),
        (replace(state, adam_v={k: v for k, v in state.adam_v.items() if k != name}), name),
        (replace(state, weights={**state.weights, name: np.zeros(3, np.float32)}), name),
        (replace(state, games=state.games[:1]), "1 envs, expected 2"),
        (replace(state, update=UPDATES + 1), "update 7, the run has 6"),
        (replace(state, random={"policy": state.random["policy"]}), "'minibatches'"),
        (replace(state, random={**state.random, "policy": {"bit_generator": "X"}}), "'policy'"),
    ]
    for other, message in wrong:
        with pytest.raises(FileFormatError, match=message):
            made.restore(other)
        assert made.state is state


@pytest.mark.parametrize(
    "change",
    [
        {"games": None},
        {"games": [{"episode": -1, "hidden": 0}, {"episode": 0, "hidden": 0}]},
        {"games": [{"episode": 0, "hidden": "x"}, {"episode": 0, "hidden": 0}]},
        {"recent": [{"env": 0}]},
        {"seconds": "long"},
    ],
)
def test_a_state_that_is_none_is_one_error(change: dict[str, object], env: AtariVectorEnv) -> None:
    made = trainer(env)
    made.start()
    snapshot = made.state.to_snapshot({})
    forged = Snapshot(index=0, arrays=snapshot.arrays, state={**snapshot.state, **change})
    with pytest.raises(FileFormatError, match="not of a training run"):
        TrainerState.from_snapshot(forged, num_actions=4)
    arrays = {**snapshot.arrays, "games/0/actions": np.array([4], np.uint8)}
    with pytest.raises(FileFormatError, match="not of a training run"):
        TrainerState.from_snapshot(
            Snapshot(index=0, arrays=arrays, state=snapshot.state), num_actions=4
        )


def test_weights_that_are_no_numbers_stop_the_run_before_they_are_its_state(
    env: AtariVectorEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = trainer(env)
    made.start()
    steps = made.updates()
    next(steps)
    good = made.state
    update = made.learner.update

    def spoil(*arguments: object) -> dict[str, np.float32]:
        losses = update(*arguments)  # type: ignore[arg-type]
        made.model.trainable_variables[0].assign(made.model.trainable_variables[0] * np.nan)
        return losses

    monkeypatch.setattr(made.learner, "update", spoil)
    with pytest.raises(DivergedError, match="weights not finite at update 2"):
        next(steps)
    assert made.state is good
    assert good.is_finite()
