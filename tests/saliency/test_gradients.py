"""Gradient methods against captum on the same weights, and against closed forms."""

import json
from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np
import pytest

from fl_saliency.agents.policy import PolicyAgent
from fl_saliency.base import FloatArray, IntArray, UInt8Array
from fl_saliency.errors import InputError
from fl_saliency.networks.blocks import dense, scale_pixels
from fl_saliency.networks.policy import build_policy, named_variables, set_arrays
from fl_saliency.networks.registry import _TABLE, register
from fl_saliency.saliency.gradients import (
    grad_cam,
    integrated_gradients,
    join_channels,
    plain_gradients,
    smooth_gradients,
)
from fl_saliency.saliency.occlusion import occlusion_differences
from tests.golden.weights import golden_weights

GOLDEN = Path(__file__).parents[1] / "golden"
CAPTUM = np.load(GOLDEN / "captum" / "captum.npz")
ACTION, STEPS, BOX, STRIDE = 2, 16, 9, 5
LATENT = 512


@pytest.fixture(scope="module")
def nature() -> PolicyAgent:
    """The Nature network with the golden weights, as in golden/captum/make.py."""
    networks = json.loads((GOLDEN / "networks.json").read_text())["networks"]
    variables = networks["cnn"]["trainable_variables_n4"]
    model = build_policy("cnn", 4)
    set_arrays(model, golden_weights([(v["name"], tuple(v["shape"])) for v in variables]))
    return PolicyAgent(model, np.random.default_rng(0))


@pytest.fixture(scope="module")
def obs() -> UInt8Array:
    return np.random.RandomState(7).randint(0, 256, size=(1, 84, 84, 4)).astype(np.uint8)


class GradientFn:
    """Gradients by pixels in 0..1 of one action's logit; counts its calls' rows."""

    def __init__(self, agent: PolicyAgent, action: int = ACTION) -> None:
        self.agent, self.action = agent, action

    def __call__(self, pixels: FloatArray, rows: IntArray) -> FloatArray:
        index = np.full(len(rows), self.action)
        levels = (pixels * 255).astype(np.float32)
        return self.agent.derivatives(levels, "scores", index).gradients * 255


def close(found: FloatArray, expected: FloatArray, share: float = 1e-5) -> None:
    assert np.abs(found - expected).max() <= share * np.abs(expected).max()


def test_the_network_is_the_one_that_captum_saw(nature: PolicyAgent, obs: UInt8Array) -> None:
    close(nature.scores(obs), CAPTUM["logits"])


def test_gradients_equal_captums(nature: PolicyAgent, obs: UInt8Array) -> None:
    found = plain_gradients(GradientFn(nature), obs / np.float32(255))
    close(found[0][..., [0, 3]], CAPTUM["gradient"])


def test_integrated_gradients_equal_captums(nature: PolicyAgent, obs: UInt8Array) -> None:
    found = integrated_gradients(GradientFn(nature), obs / np.float32(255), steps=STEPS)
    close(found[0][..., [0, 3]], CAPTUM["integrated"])
    assert float(found.sum()) == pytest.approx(float(CAPTUM["integrated_sum"]), rel=1e-4)


def test_grad_cam_equals_captums(nature: PolicyAgent, obs: UInt8Array) -> None:
    found = nature.derivatives(obs.astype(np.float32), "scores", np.array([ACTION]), by="c3")
    close(grad_cam(found.points, found.gradients)[0], CAPTUM["gradcam"])


def test_occlusion_equals_captums_where_boxes_coincide(
    nature: PolicyAgent, obs: UInt8Array
) -> None:
    # captum's first box begins at pixel 0, ours is centred there; it averages where boxes overlap.
    found = occlusion_differences(nature.scores, obs, size=BOX, stride=1, fill=0)[0, ..., ACTION]
    reach, starts = BOX // 2, range(0, 84 - BOX + 1, STRIDE)
    total, count = np.zeros((84, 84)), np.zeros((84, 84))
    for row in starts:
        for column in starts:
            total[row : row + BOX, column : column + BOX] += found[row + reach, column + reach]
            count[row : row + BOX, column : column + BOX] += 1
    inside = slice(0, starts[-1] + BOX)
    shown = (total / np.maximum(count, 1))[inside, inside]
    # Beyond the last whole box captum adds a smaller one; its share is left out here.
    sure = slice(0, starts[-1])
    close(shown[sure, sure], CAPTUM["occlusion"][sure, sure], share=1e-4)


def test_integrated_gradients_add_up_to_the_change_of_the_logit(
    nature: PolicyAgent, obs: UInt8Array
) -> None:
    found = integrated_gradients(GradientFn(nature), obs / np.float32(255), steps=300)
    change = nature.scores(obs) - nature.scores(np.zeros_like(obs))
    assert float(found.sum()) == pytest.approx(float(change[0, ACTION]), rel=5e-3)


@pytest.fixture
def linear() -> Iterator[PolicyAgent]:
    """A network whose logits are linear in the pixels."""

    @register("linear_for_a_test", geometry=None, source="a test")
    def build(pixels: object) -> tuple[object, None]:
        flat = keras.layers.Flatten()(scale_pixels(pixels))
        return dense(flat, "fc1", LATENT), None

    model = build_policy("linear_for_a_test", 3)
    rng = np.random.default_rng(3)
    set_arrays(
        model,
        {
            item.name: rng.standard_normal(item.shape).astype(np.float32) * 0.02
            for item in named_variables(model)
        },
    )
    yield PolicyAgent(model, np.random.default_rng(0))
    del _TABLE["linear_for_a_test"]


def test_on_a_linear_network_gradient_methods_have_closed_forms(linear: PolicyAgent) -> None:
    kernel, head = (np.asarray(linear.model.get_layer(n).kernel) for n in ("fc1", "pi"))
    weights = (kernel @ head)[:, 1].reshape(84, 84, 4)
    pixels = np.random.default_rng(5).random((2, 84, 84, 4), dtype=np.float32)
    fn = GradientFn(linear, action=1)
    noise = np.random.default_rng(0)
    for found in (plain_gradients(fn, pixels), smooth_gradients(fn, pixels, rng=noise, samples=3)):
        close(found, np.broadcast_to(weights, pixels.shape), share=1e-4)
    close(integrated_gradients(fn, pixels, steps=2), weights * pixels, share=1e-4)


def test_results_do_not_depend_on_batches(nature: PolicyAgent) -> None:
    pixels = np.random.default_rng(1).random((3, 84, 84, 4), dtype=np.float32)
    fn = GradientFn(nature)
    whole, parts = (
        [
            plain_gradients(fn, pixels, batch=batch),
            integrated_gradients(fn, pixels, steps=3, batch=batch),
            smooth_gradients(fn, pixels, rng=np.random.default_rng(9), samples=3, batch=batch),
        ]
        for batch in (64, 2)
    )
    for one, other in zip(whole, parts, strict=True):
        close(one, other)


def test_a_saturated_policy_still_has_a_map(nature: PolicyAgent, obs: UInt8Array) -> None:
    """The gradient of its softmax would be 0 everywhere; logits are explained instead."""
    arrays = {item.name: np.asarray(item.variable) for item in named_variables(nature.model)}
    model = build_policy("cnn", 4)
    arrays["ppo2_model/pi/w:0"] = arrays["ppo2_model/pi/w:0"] * 1e4
    set_arrays(model, arrays)
    sure = PolicyAgent(model, np.random.default_rng(0))
    scores = sure.scores(obs)[0].astype(np.float64)
    chances = np.exp(scores - scores.max())
    assert (chances / chances.sum()).max() == 1.0
    assert np.abs(plain_gradients(GradientFn(sure), obs / np.float32(255))).max() > 0


def test_what_does_not_depend_on_a_layer_is_an_error(nature: PolicyAgent, obs: UInt8Array) -> None:
    with pytest.raises(InputError, match="'c1' does not depend on layer 'c3'"):
        nature.derivatives(obs.astype(np.float32), "c1", np.array([0]), by="c3")


@pytest.mark.parametrize(
    ("output", "index", "message"),
    [
        ("scores", 4, "scores 4: expected 0 to 3"),
        ("value", 1, "value 1: expected 0 to 0"),
        ("c3", -1, "c3 -1: expected 0 to 63"),
        ("scroes", 0, "unknown output 'scroes'; did you mean 'scores'"),
    ],
)
def test_an_output_that_is_not_there_is_an_error(
    nature: PolicyAgent, obs: UInt8Array, output: str, index: int, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        nature.derivatives(obs.astype(np.float32), output, np.array([index]))


def test_channels_are_joined_by_magnitude() -> None:
    signed = np.array([3.0, -4.0]).reshape(1, 1, 1, 2)
    assert join_channels(signed, "together").item() == 1
    assert join_channels(signed, "mean").item() == 3.5
    assert join_channels(signed, "max").item() == 4
    with pytest.raises(InputError, match="unknown channels 'min'"):
        join_channels(signed, "min")


def test_grad_cam_by_hand() -> None:
    activations = np.array([[1.0, 2.0], [3.0, 4.0]]).reshape(1, 2, 1, 2)
    gradients = np.array([[1.0, -1.0], [3.0, -1.0]]).reshape(1, 2, 1, 2)
    # weights: 2 and -1; cells: 2 - 2 = 0 and 6 - 4 = 2
    assert grad_cam(activations, gradients).ravel().tolist() == [0, 2]
