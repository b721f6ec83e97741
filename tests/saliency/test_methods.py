"""What every method of the table promises, and what each finds where the answer is known."""

import re

import numpy as np
import pytest

from fl_saliency.agents.policy import PolicyAgent
from fl_saliency.base import IntArray, UInt8Array
from fl_saliency.errors import InputError
from fl_saliency.networks.policy import build_policy
from fl_saliency.networks.registry import get_network, network_names
from fl_saliency.saliency.methods import BASELINES, get_method, make_methods, method_names
from fl_saliency.saliency.options import MethodOptions
from fl_saliency.saliency.targets import parse_target
from tests.saliency.stubs import RegionAgent

LIGHT = MethodOptions(stride=21, samples=2, ig_steps=2, masks=20)
FINE = MethodOptions(samples=4, ig_steps=4, masks=2000)
INSIDE = [name for name in method_names() if name not in ("attention", "activation", "gradcam")]
LOCAL = [name for name in INSIDE if name not in BASELINES]


@pytest.fixture(scope="module")
def agent() -> PolicyAgent:
    return PolicyAgent(build_policy("cnn_sparse_fls_pool", 4, seed=1), np.random.default_rng(0))


@pytest.fixture(scope="module")
def obs() -> UInt8Array:
    return np.random.default_rng(0).integers(0, 256, (3, 84, 84, 4), dtype=np.uint8)


@pytest.fixture
def actions() -> IntArray:
    return np.array([0, 3, 2])


@pytest.mark.parametrize("name", method_names())
def test_every_method_gives_finite_maps_that_depend_on_no_batch(
    name: str, agent: PolicyAgent, obs: UInt8Array, actions: IntArray
) -> None:
    (method,) = make_methods([name], agent, LIGHT)
    maps = method.maps(obs, actions)
    assert maps.shape == (3, 84, 84)
    assert maps.dtype == np.float32
    assert np.isfinite(maps).all()
    assert maps.min() >= 0
    assert maps.max() > 0
    assert method.name == name
    assert method.target == ("action" if get_method(name).uses_target else "none")
    alone = np.concatenate([method.maps(obs[i : i + 1], actions[i : i + 1]) for i in range(3)])
    np.testing.assert_allclose(alone, maps, rtol=1e-3, atol=1e-4 * maps.max())


@pytest.mark.parametrize("name", method_names())
@pytest.mark.parametrize("target", ["action:2", "value", "policy", "c2:5", "fc1:7"])
def test_a_method_serves_a_target_or_says_which_it_serves(
    name: str, target: str, agent: PolicyAgent, obs: UInt8Array
) -> None:
    row = get_method(name)
    options = MethodOptions(target=target, stride=42, samples=1, ig_steps=1, masks=4)
    kind = parse_target(target, agent).kind
    if row.uses_target and kind not in row.targets:
        with pytest.raises(InputError, match=f"method '{name}' cannot explain target '{target}'"):
            make_methods([name], agent, options)
    elif name == "gradcam" and target.startswith("c2"):  # a layer before the one looked into
        with pytest.raises(InputError, match="'c2' does not depend on layer 'c3'"):
            make_methods([name], agent, options)
    else:
        (method,) = make_methods([name], agent, options)
        assert method.maps(obs[:1], np.array([0])).shape == (1, 84, 84)


@pytest.mark.parametrize("network", network_names())
def test_every_network_is_served_by_all_but_what_it_lacks(network: str) -> None:
    agent = PolicyAgent(build_policy(network, 4, seed=0), np.random.default_rng(0))
    names = [n for n in method_names() if n != "attention" or agent.geometry is not None]
    assert len(make_methods(names, agent)) == len(names)
    assert agent.feature_layer == "c3"
    expected = get_network("cnn_dense_fls" if "dense" in network else "cnn_daqn").geometry
    assert agent.layer_geometry("c3") == expected


def test_attention_of_a_network_without_one_names_the_methods_that_can() -> None:
    plain = PolicyAgent(build_policy("cnn", 4, seed=0), np.random.default_rng(0))
    with pytest.raises(InputError) as caught:
        make_methods(["attention"], plain)
    assert "network 'cnn' has no built-in attention" in str(caught.value)
    for name in ("perturbation", "gradcam", "integrated_gradients"):
        assert name in str(caught.value)
    assert "uniform" not in str(caught.value)


@pytest.mark.parametrize("name", LOCAL)
def test_a_method_finds_the_region_that_an_action_hangs_on(name: str) -> None:
    obs = np.random.default_rng(1).integers(0, 256, (1, 84, 84, 4), dtype=np.uint8)
    if name == "sarfa":  # which looks at what lowers the action: its region must stand out
        obs[:, 4:36, 4:36] //= 8
        obs[:, 12:28, 12:28] = 255
    (method,) = make_methods([name], RegionAgent(), FINE)
    saliency = method.maps(obs, np.array([0]))[0]
    inside, elsewhere = saliency[12:28, 12:28].mean(), saliency[45:75, 45:75].mean()
    assert inside > 5 * elsewhere


@pytest.mark.parametrize("name", [n for n in LOCAL if n != "sarfa"])
def test_an_action_that_nothing_moves_has_no_map(name: str) -> None:
    obs = np.random.default_rng(1).integers(0, 256, (1, 84, 84, 4), dtype=np.uint8)
    options = MethodOptions(stride=12, samples=2, ig_steps=2, masks=10)
    (method,) = make_methods([name], RegionAgent(), options)
    assert method.maps(obs, np.array([3])).max() == 0


def test_sarfa_ignores_what_moves_another_action_only() -> None:
    """Region 0 moves action 0 alone: blurs there lower its chance; region 1's raise or keep it."""
    obs = np.zeros((1, 84, 84, 4), np.uint8)
    obs[:, 18:22, 18:22] = 255
    obs[:, 58:62, 58:62] = 255
    (method,) = make_methods(["sarfa"], RegionAgent())
    saliency = method.maps(obs, np.array([0]))[0]
    assert saliency[12:28, 12:28].max() > 10 * saliency[52:68, 52:68].max()


def test_the_seed_decides_random_maps_and_the_state_does_too(
    agent: PolicyAgent, obs: UInt8Array, actions: IntArray
) -> None:
    maps = [
        make_methods(["random"], agent, MethodOptions(seed=seed))[0].maps(obs, actions)
        for seed in (0, 0, 1)
    ]
    assert np.array_equal(maps[0], maps[1])
    assert not np.array_equal(maps[0], maps[2])
    assert not np.array_equal(maps[0][0], maps[0][1])


def test_activation_of_a_pooled_network_is_what_is_pooled(
    agent: PolicyAgent, obs: UInt8Array, actions: IntArray
) -> None:
    (method,) = make_methods(["activation"], agent)
    features = agent.activations(obs, "c3") * agent.attention(obs)[..., None]
    np.testing.assert_allclose(method.cells(obs, actions), features.mean(axis=3), rtol=1e-5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("valu", "unknown target 'valu'; did you mean 'value'"),
        ("action:4", "target 'action:4': expected action:N with N from 0 to 3"),
        ("action:-1", "target 'action:-1': expected action:N"),
        ("c3", "target 'c3': expected c3:N with N from 0 to 63"),
        ("c3:64", "expected c3:N with N from 0 to 63"),
        ("value:1", "target 'value:1': expected 'value' alone"),
        ("action:²", "expected action:N"),
        ("", "unknown target ''"),
    ],
)
def test_a_wrong_target_is_told_with_what_is_near(
    text: str, message: str, agent: PolicyAgent
) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        make_methods(["gradient"], agent, MethodOptions(target=text))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["gradcm"], "unknown saliency method 'gradcm'; did you mean 'gradcam'"),
        (["rise", "rise"], "saliency method 'rise' is given twice"),
        ([], "no saliency method given"),
    ],
)
def test_wrong_methods_are_told(names: list[str], message: str, agent: PolicyAgent) -> None:
    with pytest.raises(InputError, match=message):
        make_methods(names, agent)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"stride": 0}, "--stride 0: expected 1 or more"),
        ({"stride": 85}, "--stride 85: expected at most 84"),
        ({"sigma": 0.0}, "--sigma 0.0: expected above 0"),
        ({"sigma": float("nan")}, "--sigma nan"),
        ({"blur_sigma": -1.0}, "--blur-sigma -1.0"),
        ({"box": 4}, "--box 4: expected an odd number"),
        ({"fill": 256}, "--fill 256: expected a grey level"),
        ({"noise": 2.0}, "--noise 2.0"),
        ({"ig_steps": 0}, "--ig-steps 0: expected 1 or more"),
        ({"samples": 0}, "--samples 0"),
        ({"masks": 1}, "--masks 1: expected 2 or more"),
        ({"seed": -1}, "--seed -1"),
        ({"layer": "fc1"}, "unknown layer 'fc1'"),
    ],
)
def test_wrong_options_are_told(
    options: dict[str, object], message: str, agent: PolicyAgent
) -> None:
    with pytest.raises(InputError, match=message):
        make_methods(["gradcam"], agent, MethodOptions(**options))  # type: ignore[arg-type]
