"""What saliency methods can be told."""

from dataclasses import dataclass

from fl_saliency.errors import InputError
from fl_saliency.saliency import perturbation
from fl_saliency.saliency.perturbation import Channels
from fl_saliency.seeding import check_seed

__all__ = ["MAP_SHAPE", "MethodOptions"]

MAP_SHAPE = (84, 84)
"""Rows and columns of the input, and so of every map."""


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """What methods can be told, each for those that its text names."""

    target: str = "action"
    """What the maps explain: action (the chosen one), action:N, value, policy, or LAYER:N."""
    channels: Channels | None = None
    """How a stack's frames are combined; default together for blurs, max for gradients."""
    stride: int = perturbation.STRIDE
    """Pixels between the centres of blurs and boxes (perturbation, sarfa, occlusion)."""
    sigma: float = perturbation.SIGMA
    """Width of a blur's disc, in pixels of the 84x84 input (perturbation, sarfa)."""
    blur_sigma: float = perturbation.BLUR_SIGMA
    """How strong a blur is, in pixels (perturbation, sarfa)."""
    box: int = 9
    """Side of a box, an odd number of pixels (occlusion)."""
    fill: int | None = None
    """Grey level of a box; default: the median of the frame (occlusion)."""
    samples: int = 25
    """Noisy copies (smoothgrad)."""
    noise: float = 0.15
    """Standard deviation of their noise, as a part of the observation's range (smoothgrad)."""
    ig_steps: int = 32
    """Steps from black to the observation (integrated_gradients)."""
    masks: int = 1000
    """Random masks (rise)."""
    layer: str | None = None
    """The layer looked into; default: the trunk's last convolution (gradcam, activation)."""
    seed: int = 0
    """Of random noise, masks and maps (smoothgrad, rise, random)."""

    def check(self) -> None:
        """Raise InputError for a number out of range, naming the option."""
        for name in ("stride", "box", "samples", "ig_steps", "masks"):
            if (value := getattr(self, name)) < 1:
                raise InputError(f"--{name.replace('_', '-')} {value}: expected 1 or more")
        for name in ("sigma", "blur_sigma"):
            if not 0 < (value := getattr(self, name)) <= max(MAP_SHAPE):
                option = name.replace("_", "-")
                raise InputError(
                    f"--{option} {value}: expected above 0, up to {max(MAP_SHAPE)} pixels"
                )
        if self.stride > max(MAP_SHAPE):
            raise InputError(f"--stride {self.stride}: expected at most {max(MAP_SHAPE)} pixels")
        if self.box % 2 == 0 or self.box > max(MAP_SHAPE):
            raise InputError(f"--box {self.box}: expected an odd number up to {max(MAP_SHAPE)}")
        if self.fill is not None and not 0 <= self.fill <= 255:
            raise InputError(f"--fill {self.fill}: expected a grey level, 0 to 255")
        if not 0 < self.noise <= 1:
            raise InputError(f"--noise {self.noise}: expected above 0, up to 1")
        if self.masks < 2:
            raise InputError(f"--masks {self.masks}: expected 2 or more")
        check_seed("--seed", self.seed)
