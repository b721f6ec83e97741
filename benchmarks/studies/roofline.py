"""How close the update is to the machine's best matrix product, and the envs to bare ones."""

from functools import partial

from benchmarks.harness import Settings, Table, in_turn, median, ours


def run(settings: Settings) -> list[Table]:
    """Tables `roofline` and `env`."""
    return [update(settings), env(settings)]


def update(settings: Settings) -> Table:
    """FLOP/s of whole updates."""
    updates = settings.pick(6, 2)
    networks = {
        network: partial(ours, "parts", "--network", network, "--updates", updates)
        for network in ("cnn", "cnn_sparse_fls")
    }
    runs, notes = in_turn(networks, settings.rounds)
    return Table(
        name="roofline",
        title="The update's arithmetic over the best float32 matrix product (2048 x 2048)",
        columns=["", "update, GFLOP/s", "product, GFLOP/s", "ratio"],
        rows=[
            [
                name,
                *(median(found, key) for key in ("update_gflops", "product_gflops")),
                round(median(found, "update_gflops") / median(found, "product_gflops"), 2),
            ]
            for name, found in runs.items()
        ],
        notes=notes,
        figures=runs,
    )


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
