"""Where the time goes, and how close update and envs are to what the machine can do."""

from functools import partial

from benchmarks.harness import Settings, Table, in_turn, median, ours


def run(settings: Settings) -> list[Table]:
    """Tables `parts`, `roofline` and `env`."""
    return [*updates(settings), env(settings)]


def updates(settings: Settings) -> list[Table]:
    """Where a timestep's time goes, and FLOP/s of the float32 updates in it."""
    jobs = {
        (network, precision): ("--network", network, "--precision", precision)
        for network in ("cnn", "cnn_sparse_fls")
        for precision in (("float32",) if settings.quick else ("float32", "bfloat16"))
    }
    count = settings.pick(4, 2)
    runs, notes = in_turn(
        {
            ", ".join(name): partial(ours, "parts", *arguments, "--updates", count)
            for name, arguments in jobs.items()
        },
        settings.rounds,
    )
    columns = ("env_us", "inference_us", "update_us", "other_us")
    parts = Table(
        name="parts",
        title="Where a timestep's time goes, microseconds",
        columns=["", *(name.removesuffix("_us") for name in columns)],
        rows=[[name, *(median(found, key) for key in columns)] for name, found in runs.items()],
        notes=notes,
        figures=runs,
    )
    rows = []
    for name, found in runs.items():
        speed, best = (median(found, key) for key in ("update_gflops", "product_gflops"))
        if name.endswith("float32"):
            rows.append([name, speed, best, round(speed / best, 2)])
    roofline = Table(
        name="roofline",
        title="The update's arithmetic over the best float32 matrix product (2048 x 2048)",
        columns=["", "update, GFLOP/s", "product, GFLOP/s", "ratio"],
        rows=rows,
    )
    return [parts, roofline]


def env(settings: Settings) -> Table:
    """Env steps/s."""
    games = {
        game: partial(ours, "env", "--game", game, "--seconds", settings.pick(20, 5))
        for game in (("Breakout",) if settings.quick else ("Breakout", "MsPacman"))
    }
    runs, notes = in_turn(games, settings.rounds)
    keys = ("env_steps_per_s", "emulated_steps_per_s", "bare_env_steps_per_s")
    return Table(
        name="env",
        title="Env steps/s inside the rollout over ale-py's bare vector env, 8 envs, 2 threads",
        columns=["", "ours", "ours, hidden steps too", "bare", "ratio", "hidden steps too"],
        rows=[
            [
                game,
                *(median(found, key) for key in keys),
                *(round(median(found, key), 2) for key in ("env_ratio", "emulated_ratio")),
            ]
            for game, found in runs.items()
        ],
        notes=notes,
        figures=runs,
    )
