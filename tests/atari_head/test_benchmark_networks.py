"""The whole way: from the data set's files through the networks to the original's numbers."""

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from fl_saliency.agents.policy import PolicyAgent
from fl_saliency.atari_head.benchmark import BenchmarkSettings, TrialScores, score_trials
from fl_saliency.atari_head.reader import find_trials
from fl_saliency.base import FloatArray, UInt8Array
from fl_saliency.envs.protocol import resolve_protocol
from fl_saliency.networks.policy import build_policy, named_variables, set_arrays
from tests.atari_head.gaze_fakes import GOLDEN, TRIALS, golden_metrics
from tests.golden.weights import golden_weights

FRAGMENT = Path(__file__).parents[3] / "shared" / "atari_head" / "fragment600"
CASES = [
    tuple(path.name.split(".")[1:4])
    for path in sorted(GOLDEN.glob("saliency.*.json"))
    if ".cnn." not in path.name  # it has no attention: the original scores NaN everywhere
]


class Remembering(PolicyAgent):
    """Asks the network once about each batch: raw and processed scores need the same answers."""

    def attention(self, obs: UInt8Array) -> FloatArray:
        return self._answer(obs.tobytes(), len(obs))

    @lru_cache(maxsize=4)  # noqa: B019 (lives as long as the tests of one network)
    def _answer(self, obs: bytes, batch: int) -> FloatArray:
        return super().attention(np.frombuffer(obs, np.uint8).reshape(batch, 84, 84, 4))


@lru_cache(maxsize=1)
def agent_of(game: str, network: str) -> tuple[PolicyAgent, BenchmarkSettings]:
    protocol = resolve_protocol(f"{game}NoFrameskip-v4")
    model = build_policy(network, protocol.num_actions)
    shapes = [(item.name, item.shape) for item in named_variables(model)]
    set_arrays(model, golden_weights(shapes))
    agent = Remembering(model, np.random.default_rng(0))
    return agent, BenchmarkSettings(protocol=protocol)


@pytest.mark.parametrize(("game", "network", "stage"), CASES)
def test_scores_equal_the_original(game: str, network: str, stage: str) -> None:
    agent, how = agent_of(game, network)
    settings = BenchmarkSettings(
        protocol=how.protocol, processed=stage == "prc", alignment="original"
    )
    results = score_trials(agent, find_trials(TRIALS, game), settings)
    scores = {r.ref.number: r.metrics for r in results if isinstance(r, TrialScores)}
    golden = golden_metrics(game, network, stage)
    assert list(scores) == list(golden)
    for number, expected in golden.items():
        found = scores[number]
        assert found.nss == pytest.approx(expected["nss"], abs=1e-5, nan_ok=True)
        assert found.kldiv == pytest.approx(expected["kldiv"], abs=1e-5, nan_ok=True)
        assert found.sauc == pytest.approx(expected["sauc"], abs=2e-3, nan_ok=True)


@pytest.mark.skipif(not FRAGMENT.is_dir(), reason="the fragment of real gaze is not here")
def test_a_persons_gaze_is_scored() -> None:
    agent, settings = agent_of("MsPacman", "cnn_sparse_fls")
    refs = [ref for ref in find_trials(FRAGMENT, "MsPacman") if not ref.absent]
    (result,) = score_trials(agent, refs, settings)
    assert isinstance(result, TrialScores)
    assert result.frame_numbers[[0, -1]].tolist() == [4354, 4950]
    for values in (result.metrics.nss, result.metrics.kldiv, result.metrics.sauc):
        assert values.shape == (150,)
        assert np.isfinite(values).all()
