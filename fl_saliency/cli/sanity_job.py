"""The job behind `fls sanity`: record states, make the checks, draw, write."""

import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fl_saliency.base import Agent, atomic_path, write_json
from fl_saliency.cli.common import progress_bar, start_tensorflow
from fl_saliency.cli.sanity import METHODS, RESULT_FILES, SanityConfig
from fl_saliency.envs.vector import AtariVectorEnv
from fl_saliency.experiments.configs import config_notes
from fl_saliency.experiments.runs import read_config
from fl_saliency.playback.states import Moment, States, moments_of_play

if TYPE_CHECKING:  # they import TensorFlow
    from fl_saliency.experiments.load import LoadedRun
    from fl_saliency.experiments.maps import MapJob
    from fl_saliency.experiments.sanity.checks import Findings

__all__ = ["run_sanity"]


def run_sanity(config: SanityConfig) -> int:
    """Check and write; whatever is wrong is said before the first file is written."""
    config.check()
    directory, place = config.directory, config.place
    of_run = read_config(directory)
    place.check()
    start_tensorflow()
    from fl_saliency.experiments.load import load_run
    from fl_saliency.experiments.maps import MapJob
    from fl_saliency.experiments.sanity.checks import Checks
    from fl_saliency.networks.registry import import_extra

    import_extra(config.extra_import)
    run = load_run(directory, seed=config.eval_seed)
    methods = _methods(config, run.agent)
    with progress_bar(config.progress, "checks", "map") as bar:

        def tell(what: str, states: int) -> None:
            bar.set_postfix_str(what, refresh=False)
            bar.update(states)

        checks = Checks(run.agent, methods, seed=config.seed, progress=tell)
        for note in config_notes(directory, of_run):
            print(note)
        print(f"protocol of the model: {run.protocol.summary()}", flush=True)
        with place.hold():
            job = MapJob(place.unfinished, _job(config, run, methods))
            states = _states(config, run, job)
            bar.reset(checks.work(len(states)))
            findings = checks.run(states, job)
            cautions = checks.cautions(states, run.config)
            provenance = _provenance(config, run, states, findings)
            files = _write(findings, states, provenance, cautions, place.path)
            job.remove()
    for line in _told(findings, cautions):
        print(line)
    for path in files:
        print(path)
    return 0


def _methods(config: SanityConfig, agent: Agent) -> tuple[str, ...]:
    if config.methods is not None:
        return config.methods
    return tuple(name for name in METHODS if name != "attention" or agent.geometry is not None)


def _job(config: SanityConfig, run: "LoadedRun", methods: Sequence[str]) -> dict[str, Any]:
    """What two jobs must have in common for one to go on with the other's figures."""
    return {
        **run.identity,
        "methods": list(methods),
        "states": config.states,
        "every": config.every,
        "seed": config.seed,
        "eval_seed": config.eval_seed,
    }


def _states(config: SanityConfig, run: "LoadedRun", job: "MapJob") -> States:
    """Every so manieth state of play."""

    def moments() -> Iterator[Moment]:
        with (
            AtariVectorEnv(run.protocol, 1, config.eval_seed, workers=0, screens=True) as env,
            progress_bar(config.progress, "playing", "state", config.states) as bar,
        ):
            played = moments_of_play(run.agent, env)
            # Not the very first one: nothing has happened there.
            for moment in islice(played, config.every, None, config.every):
                bar.update()
                yield moment

    return job.states(moments, config.states)


def _write(
    findings: "Findings",
    states: States,
    provenance: Mapping[str, Any],
    cautions: Sequence[str],
    folder: Path,
) -> list[Path]:
    """The plots, the page and, last, sanity.json: where it is, all is."""
    from fl_saliency.experiments.sanity.page import sanity_page
    from fl_saliency.experiments.sanity.report import sanity_record

    pictures = _pictures(findings, states)
    page = sanity_page(findings, pictures, provenance, cautions).encode("utf-8")
    paths = {name: folder / name for name in RESULT_FILES}
    for name, content in {**pictures, "sanity.html": page}.items():
        with atomic_path(paths[name]) as partial:
            partial.write_bytes(content)
    write_json(paths["sanity.json"], sanity_record(findings, provenance, cautions))
    return list(paths.values())


def _provenance(
    config: SanityConfig, run: "LoadedRun", states: States, findings: "Findings"
) -> dict[str, Any]:
    return {
        **_job(config, run, findings.methods),
        "train_seed": run.config.get("train_seed"),
        "num_timesteps": run.config.get("num_timesteps"),
        "games": states.num_games,
    }


def _pictures(findings: "Findings", states: States) -> Mapping[str, bytes]:
    """The plots as PNG files, by name."""
    from fl_saliency.experiments.sanity import examples, figures

    screen = np.asarray(states.screens[findings.example])
    frame = np.asarray(states.observations[findings.example, ..., -1])
    drawn = {
        "examples.png": examples.examples_figure(findings, screen, frame),
        "randomisation.png": figures.randomisation_figure(findings),
        "insertion_deletion.png": figures.insertion_deletion_figure(findings),
        "zeroing.png": figures.zeroing_figure(findings),
        "agreement.png": figures.agreement_figure(findings),
    }
    pictures = {}
    for name, figure in drawn.items():
        memory = io.BytesIO()
        figure.savefig(memory, format="png", dpi=100)
        pictures[name] = memory.getvalue()
    return pictures


def _told(findings: "Findings", cautions: Sequence[str]) -> list[str]:
    """A line a verdict, in columns, then the cautions."""
    from fl_saliency.experiments.sanity.verdicts import verdicts

    found = verdicts(findings)
    check, method = (max(len(getattr(one, key)) for one in found) for key in ("check", "method"))
    lines = [
        f"{one.check:<{check}}  {one.method:<{method}}  {one.outcome:<9}  {one.because}"
        for one in found
    ]
    return [*lines, *(f"caution: {text}" for text in cautions)]
