"""The job behind `fls benchmark`: check, load, score every trial, write, print."""

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tqdm import tqdm

from fl_saliency.atari_head.benchmark import (
    BenchmarkSettings,
    SkippedTrial,
    TrialScores,
    agent_methods,
    num_steps,
    score_trials,
)
from fl_saliency.atari_head.progress import TrialStore
from fl_saliency.atari_head.reader import Trial, TrialRef, find_trials
from fl_saliency.atari_head.report import (
    COMPARISON_FILES,
    RESULT_FILES,
    benchmark_summary,
    write_report,
)
from fl_saliency.atari_head.settings import check_saliency
from fl_saliency.atari_head.tables import to_tables
from fl_saliency.base import Agent, file_sha256
from fl_saliency.cli.benchmark import BenchmarkConfig
from fl_saliency.cli.common import printable, progress_bar, start_tensorflow
from fl_saliency.errors import InputError, JobError
from fl_saliency.experiments.configs import config_notes
from fl_saliency.experiments.runs import RunDir, read_config
from fl_saliency.folders import ResultsPlace
from fl_saliency.seeding import check_seed

__all__ = ["PARTIAL", "run_benchmark"]

PARTIAL = "saliency.partial"
"""Folder of an unfinished benchmark."""


def run_benchmark(config: BenchmarkConfig, *, prog: str) -> int:
    """Score and write; 1 if a trial was broken, else 0. Inputs are checked before anything else."""
    check_seed("--eval-seed", config.eval_seed)
    check_saliency(config.saliency)
    config.method.check()
    of_run = read_config(config.experiment_dir)
    refs = _chosen(find_trials(config.atari_head_dir, of_run["env_name"]), config)
    place = ResultsPlace(
        config.output_dir or config.experiment_dir,
        run=config.experiment_dir,
        names=(*RESULT_FILES, *COMPARISON_FILES),
        partial=PARTIAL,
        overwrite=config.overwrite,
    )
    place.check()
    agent, settings, provenance = _load(config)
    for note in config_notes(config.experiment_dir, of_run):
        print(note)
    with place.hold():
        store = TrialStore(place.unfinished, _job(config, settings, provenance), refs)
        print(f"protocol of the model: {settings.protocol.summary()}", flush=True)
        results = _score(config, agent, refs, settings, store)
        scores = [result for result in results if isinstance(result, TrialScores)]
        skipped = [result for result in results if isinstance(result, SkippedTrial)]
        _report_skipped(skipped, config.atari_head_dir, prog)
        if not scores:
            raise JobError(f"none of the {len(refs)} trials could be scored; nothing was written")
        summary = benchmark_summary(scores, skipped, settings, provenance)
        files = write_report(place.path, scores, summary, settings)
        store.remove()
    _print_results(summary, settings)
    for path in files:
        print(path)
    return 1 if any(not trial.absent for trial in skipped) else 0


def _job(
    config: BenchmarkConfig, settings: BenchmarkSettings, provenance: dict[str, Any]
) -> dict[str, Any]:
    """What two benchmarks must have in common to share scores."""
    return {
        **provenance,
        "model_sha256": file_sha256(RunDir(config.experiment_dir).model),
        "protocol": settings.protocol.as_dict(),
        "processed": settings.processed,
        "alignment": settings.alignment,
        "seed": settings.seed,
        "methods": settings.methods,
        "options": asdict(settings.options),
    }


def _score(
    config: BenchmarkConfig,
    agent: Agent,
    refs: Sequence[TrialRef],
    settings: BenchmarkSettings,
    store: TrialStore,
) -> list[TrialScores | SkippedTrial]:
    """Score every trial, or take its scores from an unfinished job; each is saved at once."""
    finished = store.find()
    if finished:
        print(f"goes on with an unfinished benchmark: {len(finished)} trials are scored")
    results = []
    with _bars(config.progress, len(refs), settings) as progress:
        for result in score_trials(agent, refs, settings, progress=progress, finished=finished):
            if isinstance(result, TrialScores) and result.ref.number not in finished:
                store.add(result)
            results.append(result)
    return results


def _chosen(refs: Sequence[TrialRef], config: BenchmarkConfig) -> list[TrialRef]:
    """The trials that --trials names, or all; InputError for one that is not there."""
    present = {ref.number for ref in refs if not ref.absent}
    for number in config.trials:
        if number not in present:
            known = ", ".join(map(str, sorted(present)))
            raise InputError(
                f"--trials {number}: no such trial of {refs[0].game} in {config.atari_head_dir}; "
                f"choose from: {known}"
            )
    return [ref for ref in refs if not config.trials or ref.number in config.trials]


def _load(config: BenchmarkConfig) -> tuple[Agent, BenchmarkSettings, dict[str, Any]]:
    """The agent, the settings, and what results say of it; InputError for a method it lacks."""
    start_tensorflow()
    from fl_saliency.experiments.load import load_run
    from fl_saliency.networks.registry import get_network, import_extra

    import_extra(config.extra_import)
    run = load_run(config.experiment_dir, seed=config.eval_seed)
    network = run.config["network"]
    settings = BenchmarkSettings(
        protocol=run.protocol,
        processed=config.processed_obs,
        alignment=config.gaze_alignment,
        saliency=config.saliency,
        baselines=config.baselines,
        options=config.method,
    )
    agent_methods(run.agent, settings)
    provenance = {
        "network": network,
        "network_note": get_network(network).note or None,
        "env_name": run.config["env_name"],
        "train_seed": run.config.get("train_seed"),
        "eval_seed": config.eval_seed,
    }
    return run.agent, settings, provenance


@contextmanager
def _bars(
    wanted: bool, trials: int, settings: BenchmarkSettings
) -> Iterator[Callable[[Trial], Callable[[int], object]]]:
    """A progress bar for each trial that begins, on stderr and on a terminal only."""
    bars: list[tqdm[Any]] = []

    def begin(trial: Trial) -> Callable[[int], object]:
        if bars:
            bars[-1].close()
        what = f"trial {trial.ref.number} ({len(bars) + 1} of {trials})"
        bar = progress_bar(wanted, what, "step", num_steps(trial, settings))
        bars.append(bar)
        return bar.update

    try:
        yield begin
    finally:
        if bars:
            bars[-1].close()


def _report_skipped(skipped: Sequence[SkippedTrial], directory: Path, prog: str) -> None:
    for trial in skipped:
        if not trial.absent:
            print(f"{prog}: skipped: {printable(trial.reason)}", file=sys.stderr)
    if absent := [str(trial.ref.number) for trial in skipped if trial.absent]:
        print(
            f"{prog}: note: listed in meta_data.csv, but not in {directory}: {', '.join(absent)}",
            file=sys.stderr,
        )


def _print_results(summary: Mapping[str, Any], settings: BenchmarkSettings) -> None:
    """The figures, NSS never without shuffled AUC."""
    if not settings.is_plain:
        sources = sorted({trial["mean_gaze"] for trial in summary["trials"]})
        print(f"\n{to_tables(summary['methods'])}\n\nmean_gaze is {' or '.join(sources)}\n")
        return
    for trial in summary["trials"]:
        print(f"trial {trial['trial_number']}: {_figures(trial)}")
    print(f"all frames: {_figures(summary['overall'])}")


def _figures(block: dict[str, Any]) -> str:
    parts = []
    for name, figures in block["metrics"].items():
        mean = "undefined" if figures["mean"] is None else f"{figures['mean']:.4f}"
        parts.append(f"{name} {mean} (n {figures['n']} of {block['decisions']})")
    return ", ".join(parts)
