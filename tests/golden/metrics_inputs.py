"""The inputs of the metrics goldens, from their seeds (NumPy only)."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

Map = npt.NDArray[np.generic]
Shape = tuple[int, int]

RAW: Shape = (210, 160)
PROCESSED: Shape = (84, 84)

CASES = [  # name, shape, kind of map, fixations, dtype of the map, kind of fixations
    ("uniform_raw_1", RAW, "uniform", 1, "float64", "uniform"),
    ("uniform_raw_7", RAW, "uniform", 7, "float64", "uniform"),
    ("uniform_raw_40", RAW, "uniform", 40, "float64", "uniform"),
    ("coarse_raw_20", RAW, "coarse7", 20, "float64", "uniform"),
    ("exp_raw_25", RAW, "exponential", 25, "float64", "uniform"),
    ("gauss_raw_15", RAW, "gauss", 15, "float64", "uniform"),
    ("uniform_prc_3", PROCESSED, "uniform", 3, "float64", "uniform"),
    ("coarse_prc_20_f32", PROCESSED, "coarse7", 20, "float32", "uniform"),
    ("exp_prc_40_f32", PROCESSED, "exponential", 40, "float32", "uniform"),
    ("gauss_prc_10_f32", PROCESSED, "gauss", 10, "float32", "uniform"),
    ("uniform_raw_20_f32", RAW, "uniform", 20, "float32", "uniform"),
    ("halfzero_raw_12", RAW, "halfzero", 12, "float64", "uniform"),
    ("halfzero_prc_lefthalf_5", PROCESSED, "halfzero", 5, "float64", "lefthalf"),
    ("dup_raw_9", RAW, "uniform", 9, "float64", "dup"),
    ("dup_prc_4", PROCESSED, "coarse7", 4, "float64", "dup"),
    ("constant_raw_10", RAW, "constant", 10, "float64", "uniform"),
    ("zero_raw_10", RAW, "zero", 10, "float64", "uniform"),
    ("nofix_raw", RAW, "uniform", 0, "float64", "uniform"),
    ("nofix_prc", PROCESSED, "gauss", 0, "float32", "uniform"),
    ("nearconst9_prc_8", PROCESSED, "nearconst9", 8, "float64", "uniform"),
    ("nearconst6_prc_8", PROCESSED, "nearconst6", 8, "float64", "uniform"),
]


def fixation_counts(shape: Shape, ys: Map, xs: Map) -> Map:
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, (ys, xs), 1)
    return counts


def _coarse7(rng: np.random.RandomState, shape: Shape) -> Map:
    """7x7 uniform values enlarged by nearest index: many ties."""
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    return rng.rand(7, 7)[(rows * 7) // shape[0], (columns * 7) // shape[1]]


def _gauss(rng: np.random.RandomState, shape: Shape) -> Map:
    rows, columns = np.mgrid[: shape[0], : shape[1]]
    y, x, spread = rng.rand() * shape[0], rng.rand() * shape[1], 5 + 30 * rng.rand()
    return np.exp(-((rows - y) ** 2 + (columns - x) ** 2) / (2 * spread * spread)) + 0.01


def _halfzero(rng: np.random.RandomState, shape: Shape) -> Map:
    values = rng.rand(*shape)
    values[:, : shape[1] // 2] = 0.0
    return values


KINDS: dict[str, Callable[[np.random.RandomState, Shape], Map]] = {
    "uniform": lambda rng, shape: rng.rand(*shape),
    "coarse7": _coarse7,
    "exponential": lambda rng, shape: rng.exponential(size=shape),
    "gauss": _gauss,
    "halfzero": _halfzero,
    "constant": lambda _, shape: np.full(shape, 0.5),
    "zero": lambda _, shape: np.zeros(shape),
    "nearconst9": lambda rng, shape: 0.5 + 1e-9 * rng.rand(*shape),
    "nearconst6": lambda rng, shape: 0.5 + 1e-6 * rng.rand(*shape),
}


def make_case(
    seed: int, shape: Shape, kind: str, nfix: int, dtype: str = "float64", fixkind: str = "uniform"
) -> tuple[Map, Map, Map]:
    """A map, fixation counts, and the counts of ten other frames of 15 fixations each."""
    height, width = shape
    rng = np.random.RandomState(seed)
    saliency = KINDS[kind](rng, shape).astype(dtype)
    ys, xs = rng.randint(0, height, nfix), rng.randint(0, width, nfix)
    if fixkind == "dup":
        ys, xs = np.full(nfix, ys[0]), np.full(nfix, xs[0])
    elif fixkind == "lefthalf":
        xs = xs % (width // 2)
    rng = np.random.RandomState(seed + 100000)
    other_ys, other_xs = rng.randint(0, height, 150), rng.randint(0, width, 150)
    others = fixation_counts(shape, other_ys, other_xs)
    return saliency, fixation_counts(shape, ys, xs), others


def sequence(seed: int, shape: Shape, n: int = 12) -> tuple[list[Map], list[Map]]:
    """Maps and counts of n frames: 0 and 5 without gaze, 3 with a NaN, 8 constant, 10 all zeros."""
    nfix = np.random.RandomState(seed + 999).randint(1, 41, size=n)
    special = {8: "constant", 10: "zero"}
    maps, counts = [], []
    for k in range(n):
        kind = special.get(k, ["uniform", "coarse7", "exponential", "gauss"][k % 4])
        saliency, fixations, _ = make_case(seed + k, shape, kind, 0 if k in (0, 5) else nfix[k])
        if k == 3:
            saliency[0, 0] = np.nan
        maps.append(saliency)
        counts.append(fixations)
    return maps, counts
