"""Makes docs/images/saliency/*.png: every saliency method on the same states of one agent.

python scripts/method_pictures.py RUN [--states 60 150 260] [--output-dir docs/images/saliency]
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fl_saliency.base import UInt8Array, atomic_path
from fl_saliency.cli.common import start_tensorflow
from fl_saliency.envs.vector import AtariVectorEnv
from fl_saliency.experiments.maps import Maps
from fl_saliency.experiments.overlays import Overlays
from fl_saliency.playback.states import States, moments_of_play
from fl_saliency.render.heat import OverlayStyle
from fl_saliency.saliency.methods import SaliencyMethod, make_methods, method_names
from fl_saliency.saliency.options import MethodOptions

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    """Make the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--states", type=int, nargs="+", default=[60, 150, 260])
    parser.add_argument("--output-dir", type=Path, default=ROOT / "docs" / "images" / "saliency")
    parser.add_argument("--eval-seed", type=int, default=1000)
    words = parser.parse_args()
    start_tensorflow()
    from fl_saliency.experiments.load import load_run

    run = load_run(words.run, seed=words.eval_seed)
    words.output_dir.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        AtariVectorEnv(run.protocol, 1, words.eval_seed, workers=0, screens=True) as env,
    ):
        moments = moments_of_play(run.agent, env)
        states = States.record(Path(folder), moments, max(words.states) + 1)
        chosen = [states.take([state]) for state in words.states]
        for method in make_methods(method_names(), run.agent, MethodOptions()):
            pictures = [_pair(state, method) for state in chosen]
            _save(words.output_dir / f"{method.name}.png", pictures, words.states)
            print(f"{method.name}.png")
    return 0


def _pair(state: States, method: SaliencyMethod) -> UInt8Array:
    """The screen of a state, and the same under its map, which has a scale of its own."""
    maps = method.maps(state.observations, state.actions)
    item = Maps(name=method.name, target=method.target, maps=maps, seconds=0.0)
    overlays = Overlays(state, [item], lambda _: "", OverlayStyle(intensity=230))
    return np.concatenate([state.screens[0], overlays.picture(0, item)], axis=1)


def _save(path: Path, pictures: list[UInt8Array], states: list[int]) -> None:
    figure = Figure(figsize=(3.3 * len(pictures), 2.4), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, picture, state in zip(
        figure.subplots(1, len(pictures), squeeze=False)[0], pictures, states, strict=True
    ):
        axes.imshow(picture, interpolation="nearest")
        axes.set_title(f"state {state}", fontsize="small")
        axes.set_axis_off()
    with atomic_path(path) as partial:
        figure.savefig(partial, format="png", dpi=90)


if __name__ == "__main__":
    sys.exit(main())
