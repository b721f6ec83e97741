"""The table of saliency methods: one row holds all that belongs to one.

A row makes, for one agent and one target, a function from observations to maps over the input.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fl_saliency.base import Agent, FloatArray, IntArray, UInt8Array
from fl_saliency.errors import InputError, unknown_choice
from fl_saliency.saliency import makers
from fl_saliency.saliency.makers import Cells, Draw, Maker, NotServedError
from fl_saliency.saliency.options import MethodOptions
from fl_saliency.saliency.targets import KINDS, Kind, Target, parse_target

__all__ = [
    "BASELINES",
    "ONE_SIDED",
    "MethodSpec",
    "SaliencyMethod",
    "check_methods",
    "get_method",
    "make_methods",
    "method_names",
]


@dataclass(frozen=True, kw_only=True)
class SaliencyMethod:
    """A method made for one agent and target."""

    name: str
    target: str
    """What it explains; `none` for a map that the target plays no part in."""
    cells: Cells
    """Where the method computes: float32 [B, h, w] >= 0, as coarse as it is."""
    draw: Draw
    """Cells [B, h, w] -> maps over the input, float32 [B, 84, 84]."""

    def maps(self, obs: UInt8Array, actions: IntArray) -> FloatArray:
        """Maps of obs uint8 [B, 84, 84, 4], in which `actions` int [B] were chosen.

        float32 [B, 84, 84] >= 0, of no fixed scale: larger means that more hangs on the pixel.
        """
        return self.draw(self.cells(obs, actions))


@dataclass(frozen=True, kw_only=True)
class MethodSpec:
    """One row of the table."""

    name: str
    summary: str
    """What a map shows, in a few words."""
    source: str
    make: Maker
    targets: tuple[Kind, ...] = KINDS
    """What it can explain."""
    uses_target: bool = True
    """Whether the target plays a part at all."""
    one_sided: bool = False
    """Whether it marks only what holds the output up, and leaves out what holds it down."""


_NUMBERS: tuple[Kind, ...] = ("action", "value", "unit")
"""Targets that are one number, which has a gradient."""

BASELINES = ("uniform", "random", "centre", "frame_difference")
"""Methods that know nothing of the network."""

_ROWS = (
    MethodSpec(
        name="attention",
        summary="the network's own attention map",
        source="Nikulin et al. 2019, arXiv 1908.02511",
        make=makers.attention,
        uses_target=False,
    ),
    MethodSpec(
        name="activation",
        summary="mean magnitude of the features of the last convolution, as they are pooled",
        source="Nikulin et al. 2019, arXiv 1908.02511",
        make=makers.activation,
        uses_target=False,
    ),
    MethodSpec(
        name="perturbation",
        summary="how much the output changes when a spot is blurred",
        source="Greydanus et al. 2018, arXiv 1711.00138",
        make=makers.blurring,
    ),
    MethodSpec(
        name="sarfa",
        summary="how much a blur lowers the action's probability, and nothing else",
        source="Puri et al. 2020, arXiv 1912.12191",
        make=makers.sarfa,
        one_sided=True,
        targets=("action",),
    ),
    MethodSpec(
        name="occlusion",
        summary="how much the output changes when a box is painted over",
        source="Zeiler and Fergus 2014, arXiv 1311.2901",
        make=makers.occlusion,
    ),
    MethodSpec(
        name="gradient",
        summary="magnitude of the output's gradient by the pixels",
        source="Simonyan et al. 2013, arXiv 1312.6034",
        make=makers.gradient,
        targets=_NUMBERS,
    ),
    MethodSpec(
        name="grad_input",
        summary="magnitude of gradient times input",
        source="Shrikumar et al. 2016, arXiv 1605.01713",
        make=makers.grad_input,
        targets=_NUMBERS,
    ),
    MethodSpec(
        name="smoothgrad",
        summary="magnitude of the mean gradient over noisy copies",
        source="Smilkov et al. 2017, arXiv 1706.03825",
        make=makers.smoothgrad,
        targets=_NUMBERS,
    ),
    MethodSpec(
        name="integrated_gradients",
        summary="what each pixel adds to the output on the way from black",
        source="Sundararajan et al. 2017, arXiv 1703.01365",
        make=makers.integrated_gradients,
        targets=_NUMBERS,
    ),
    MethodSpec(
        name="gradcam",
        summary="features of the last convolution, weighted by their mean gradients",
        source="Selvaraju et al. 2017, arXiv 1610.02391",
        make=makers.grad_cam,
        one_sided=True,
        targets=_NUMBERS,
    ),
    MethodSpec(
        name="rise",
        summary="the mean of random masks, weighted by the output under them",
        source="Petsiuk et al. 2018, arXiv 1806.07421",
        make=makers.rise,
        one_sided=True,
        targets=_NUMBERS,
    ),
    MethodSpec(
        name="uniform",
        summary="baseline: the same everywhere",
        source="baseline",
        make=makers.uniform,
        uses_target=False,
    ),
    MethodSpec(
        name="random",
        summary="baseline: noise, new in every state",
        source="baseline",
        make=makers.random_noise,
        uses_target=False,
    ),
    MethodSpec(
        name="centre",
        summary="baseline: a Gaussian around the middle",
        source="baseline",
        make=makers.centre,
        uses_target=False,
    ),
    MethodSpec(
        name="frame_difference",
        summary="baseline: what moved since the last frame",
        source="baseline",
        make=makers.frame_difference,
        uses_target=False,
    ),
)
_TABLE = {row.name: row for row in _ROWS}
ONE_SIDED = tuple(row.name for row in _ROWS if row.one_sided)
"""Methods that mark only what holds the output up."""


def method_names() -> list[str]:
    """All methods, in the order of the table."""
    return list(_TABLE)


def get_method(name: str) -> MethodSpec:
    """The row of `name`, or an InputError that names the nearest."""
    if name not in _TABLE:
        raise unknown_choice("saliency method", name, _TABLE)
    return _TABLE[name]


def check_methods(names: Sequence[str], *, further: Sequence[str] = ()) -> None:
    """InputError for no method, an unknown one (it names the nearest), or one that is named twice.

    `further` are names that a command knows beside those of the table.
    """
    known = [*_TABLE, *further]
    if not names:
        raise InputError(f"no saliency method given; choose from: {', '.join(known)}")
    for place, name in enumerate(names):
        if name not in known:
            raise unknown_choice("saliency method", name, known)
        if name in names[:place]:
            raise InputError(f"saliency method {name!r} is given twice")


def make_methods(
    names: Sequence[str], agent: Agent, options: MethodOptions | None = None
) -> list[SaliencyMethod]:
    """The methods `names` for `agent`; InputError for what it, or the target, cannot serve."""
    options = options or MethodOptions()
    options.check()
    check_methods(names)
    target = parse_target(options.target, agent)
    return [_make(get_method(name), agent, target, options) for name in names]


def _make(row: MethodSpec, agent: Agent, target: Target, options: MethodOptions) -> SaliencyMethod:
    if row.uses_target and target.kind not in row.targets:
        able = [other.name for other in _ROWS if target.kind in other.targets and other.uses_target]
        raise InputError(
            f"method {row.name!r} cannot explain target {target.text!r}, only "
            f"{' or '.join(row.targets)}; methods that can: {', '.join(able)}"
        )
    try:
        cells, draw = row.make(agent, target, options)
    except NotServedError as error:
        able = list(_serving(agent, target, options))
        raise InputError(
            f"method {row.name!r}: {error}; methods that can serve it: {', '.join(able)}"
        ) from error
    shown = target.text if row.uses_target else "none"
    return SaliencyMethod(name=row.name, target=shown, cells=cells, draw=draw)


def _serving(agent: Agent, target: Target, options: MethodOptions) -> Iterator[str]:
    """The methods, baselines aside, that `agent` can serve."""
    for row in _ROWS:
        try:
            row.make(agent, target, options)
        except NotServedError:
            continue
        if row.name not in BASELINES and target.kind in row.targets:
            yield row.name
