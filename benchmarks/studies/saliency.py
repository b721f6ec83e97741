"""What every saliency method costs, in milliseconds a state, and so for 1000 states."""

import time
from functools import partial
from typing import Any

import numpy as np

from benchmarks.harness import Settings, Table, in_turn, median
from benchmarks.studies.perturbation import observations
from fl_saliency.agents.policy import PolicyAgent
from fl_saliency.experiments.maps import CHUNK
from fl_saliency.networks.policy import build_policy
from fl_saliency.saliency.methods import BASELINES, SaliencyMethod, make_methods, method_names

NETWORKS = ("cnn", "cnn_sparse_fls")


def _methods(network: str) -> list[SaliencyMethod]:
    agent = PolicyAgent(build_policy(network, 4, seed=0), np.random.default_rng(0))
    names = [name for name in method_names() if name not in BASELINES]
    if agent.geometry is None:
        names.remove("attention")
    return make_methods(names, agent)


def _timed(method: SaliencyMethod, obs: Any) -> dict[str, Any]:
    actions = np.arange(len(obs)) % 4
    started = time.perf_counter()
    for start in range(0, len(obs), CHUNK):
        method.maps(obs[start : start + CHUNK], actions[start : start + CHUNK])
    return {"ms a state": 1000 * (time.perf_counter() - started) / len(obs)}


def run(settings: Settings) -> list[Table]:
    obs = observations(settings.pick(2 * CHUNK, CHUNK))
    costs: dict[str, dict[str, float]] = {}
    figures: dict[str, Any] = {"states": len(obs)}
    for network in NETWORKS:
        methods = {method.name: method for method in _methods(network)}
        for method in methods.values():
            method.maps(obs[:2], np.zeros(2, int))  # compile
        runs, _ = in_turn(
            {name: partial(_timed, method, obs) for name, method in methods.items()},
            settings.rounds,
        )
        costs[network] = {name: median(found, "ms a state") for name, found in runs.items()}
        figures[network] = {
            name: [each["ms a state"] for each in found] for name, found in runs.items()
        }
    rows = [
        [name, *(costs[network].get(name) for network in NETWORKS)] for name in costs[NETWORKS[1]]
    ]
    table = Table(
        name="saliency",
        title="Saliency methods on Breakout, default options: milliseconds a state, which are also "
        "seconds for 1000 states",
        columns=["", *(f"`{network}`" for network in NETWORKS)],
        rows=rows,
        notes=[f"{CHUNK} states at a time, untrained policies, {len(obs)} states."],
        figures=figures,
    )
    return [table]
