"""Training speed: this project's PPO2 beside its peers.

All train on Breakout with 8 envs, 128 steps, 4 minibatches and 4 epochs: whole training runs, logs
included, the first update (which compiles) left out. What is compared is timesteps per second.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from benchmarks.environments import peer
from benchmarks.harness import Settings, Table, in_turn, median, ours

SB3 = ("SB3 PPO, DummyVecEnv", "SB3 PPO, SubprocVecEnv")
CLEANRL, ORIGINAL = "CleanRL's ppo_atari_envpool settings", "OpenAI Baselines PPO2, TensorFlow 1"
MORE_ENVS = 32

Run = Callable[[], Mapping[str, Any]]


def contenders(settings: Settings) -> dict[str, Run]:
    """Name -> what measures it."""
    updates = settings.pick(6, 3)

    def of_ours(network: str, precision: str, envs: int = 8) -> Run:
        few = max(3, updates * 8 // envs)
        arguments = ("--network", network, "--precision", precision)
        return partial(ours, "train", *arguments, "--num-envs", envs, "--updates", few)

    def of_peer(name: str, script: str, *arguments: str) -> Run:
        return partial(peer, settings, name, script, *arguments, "--updates", updates)

    found = {
        "cnn, float32": of_ours("cnn", "float32"),
        SB3[0]: of_peer("sb3", "sb3_train.py", "--vector", "dummy"),
        SB3[1]: of_peer("sb3", "sb3_train.py", "--vector", "subproc"),
        CLEANRL: of_peer("cleanrl", "cleanrl_train.py"),
        "cnn, bfloat16": of_ours("cnn", "bfloat16"),
        "cnn_sparse_fls, float32": of_ours("cnn_sparse_fls", "float32"),
        "cnn_sparse_fls, bfloat16": of_ours("cnn_sparse_fls", "bfloat16"),
        ORIGINAL: of_peer("baselines", "baselines_train.py"),
    }
    if not settings.quick:
        found[f"cnn, float32, {MORE_ENVS} envs"] = of_ours("cnn", "float32", MORE_ENVS)
        found[f"cnn, bfloat16, {MORE_ENVS} envs"] = of_ours("cnn", "bfloat16", MORE_ENVS)
    else:
        for name in (SB3[1], ORIGINAL, "cnn_sparse_fls, bfloat16"):
            del found[name]
    return found


def run(settings: Settings) -> list[Table]:
    """Table `train`."""
    runs, notes = in_turn(contenders(settings), settings.rounds)
    medians = {name: median(found, "steps_per_s") for name, found in runs.items()}
    best_sb3 = max((medians[name] for name in SB3 if name in medians), default=None)
    against = {
        "SB3's better": best_sb3,
        "CleanRL's": medians.get(CLEANRL),
        "the original": medians.get(ORIGINAL),
    }
    rows = []
    for name, value in sorted(medians.items(), key=lambda pair: -pair[1]):
        ratios = [None if other is None else round(value / other, 2) for other in against.values()]
        memory = [run["peak_mib"] for run in runs[name]]
        rows.append([name, value, *ratios, max(memory)])
    table = Table(
        name="train",
        title=f"Training on Breakout, 8 envs unless said; medians of {settings.rounds} rounds",
        columns=["", "steps/s", *(f"over {name}" for name in against), "peak memory, MiB"],
        rows=rows,
        notes=[*notes, _versions(runs)],
        figures=runs,
    )
    return [table]


def _versions(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    lines = [
        f"{name}: {', '.join(f'{k} {v}' for k, v in found[0]['versions'].items())}"
        for name, found in runs.items()
        if name in (*SB3[:1], CLEANRL, ORIGINAL)
    ]
    return f"Peers' versions: {'; '.join(lines)}." if lines else ""
