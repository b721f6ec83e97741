"""What attention costs: `cnn_sparse_fls` over `cnn`, in training and in evaluation."""

from functools import partial

from benchmarks.harness import Settings, Table, in_turn, median, ours

NETWORKS = ("cnn", "cnn_sparse_fls")


def run(settings: Settings) -> list[Table]:
    """Table `attention_cost`."""
    updates, steps = settings.pick(6, 3), settings.pick(4000, 1000)
    jobs = [
        ("training, float32", "train", "--updates", updates),
        ("training, bfloat16", "train", "--updates", updates, "--precision", "bfloat16"),
        ("evaluation, 16 envs", "evaluation", "--steps", steps),
    ]
    if settings.quick:
        jobs = jobs[:1]
    rows, figures, notes = [], {}, []
    for title, module, *arguments in jobs:
        contenders = {
            f"{network}, {title}": partial(ours, module, "--network", network, *arguments)
            for network in NETWORKS
        }
        runs, skipped = in_turn(contenders, settings.rounds)
        plain, attentive = (median(runs[name], "steps_per_s") for name in contenders)
        rows.append([title, plain, attentive, round(attentive / plain, 2)])
        figures |= runs
        notes += skipped
    return [
        Table(
            name="attention_cost",
            title="Steps/s with and without attention",
            columns=["", *NETWORKS, "ratio"],
            rows=rows,
            notes=notes,
            figures=figures,
        )
    ]
