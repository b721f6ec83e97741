"""Makes captum.npz: captum's attributions of the Nature network, in PyTorch, on fixed weights.

Run in an environment with torch and captum, from the checkout:
PYTHONPATH=. python tests/golden/captum/make.py
"""

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from captum.attr import (
    IntegratedGradients,
    LayerGradCam,
    Occlusion,
    Saliency,
)
from torch import nn

from tests.golden.weights import golden_weights

HERE = Path(__file__).parent
NETWORKS = json.loads((HERE.parent / "networks.json").read_text())["networks"]
ACTION, STEPS, BOX, STRIDE = 2, 16, 9, 5


class Net(nn.Module):
    """obs in 0..1, float32 [B, 4, 84, 84] -> logits [B, 4]."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        super().__init__()
        self.c1 = _conv(weights, "c1", 4)
        self.c2 = _conv(weights, "c2", 2)
        self.c3 = _conv(weights, "c3", 1)
        self.relu3 = nn.ReLU()  # a module, as Grad-CAM looks at what one gives
        self.fc1 = _dense(weights, "pi/fc1")
        self.pi = _dense(weights, "pi")

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.c2(torch.relu(self.c1(obs))))
        x = self.relu3(self.c3(x))
        flat = x.permute(0, 2, 3, 1).flatten(1)  # h, w, c, as the weights expect
        return self.pi(torch.relu(self.fc1(flat)))


def _conv(weights: dict[str, np.ndarray], name: str, stride: int) -> nn.Conv2d:
    kernel = weights[f"ppo2_model/pi/{name}/w:0"]
    layer = nn.Conv2d(kernel.shape[2], kernel.shape[3], kernel.shape[0], stride)
    layer.weight.data = torch.from_numpy(kernel.transpose(3, 2, 0, 1).copy())
    layer.bias.data = torch.from_numpy(weights[f"ppo2_model/pi/{name}/b:0"].reshape(-1))
    return layer


def _dense(weights: dict[str, np.ndarray], name: str) -> nn.Linear:
    kernel = weights[f"ppo2_model/{name}/w:0"]
    layer = nn.Linear(*kernel.shape)
    layer.weight.data = torch.from_numpy(kernel.T.copy())
    layer.bias.data = torch.from_numpy(weights[f"ppo2_model/{name}/b:0"])
    return layer


def main() -> None:
    variables = NETWORKS["cnn"]["trainable_variables_n4"]
    net = Net(golden_weights([(v["name"], tuple(v["shape"])) for v in variables])).eval()
    obs = np.random.RandomState(7).randint(0, 256, size=(1, 84, 84, 4)).astype(np.uint8)
    pixels = torch.from_numpy(obs.transpose(0, 3, 1, 2) / np.float32(255)).requires_grad_()
    logits = net(pixels)

    def hwc(found: torch.Tensor) -> np.ndarray:
        return found.detach().numpy()[0].transpose(1, 2, 0).astype(np.float32)

    gradient = hwc(Saliency(net).attribute(pixels, target=ACTION, abs=False))
    integrated = hwc(
        IntegratedGradients(net).attribute(
            pixels, target=ACTION, n_steps=STEPS, method="riemann_middle"
        )
    )
    gradcam = (
        LayerGradCam(net, net.relu3)
        .attribute(pixels, target=ACTION, relu_attributions=True)
        .detach()
        .numpy()[0, 0]
    )
    occlusion = hwc(
        Occlusion(net).attribute(
            pixels,
            target=ACTION,
            sliding_window_shapes=(4, BOX, BOX),
            strides=(4, STRIDE, STRIDE),
            baselines=0.0,
        )
    )
    np.savez_compressed(
        HERE / "captum.npz",
        logits=logits.detach().numpy(),
        gradient=gradient[..., [0, 3]],
        integrated=integrated[..., [0, 3]],
        integrated_sum=integrated.sum(),
        gradcam=gradcam,
        occlusion=occlusion[..., 0],
        versions=np.array([f"captum {version('captum')}", f"torch {version('torch')}"]),
    )


if __name__ == "__main__":
    main()
