"""Sanity checks on agents whose truth is known: what must pass, and what must fail."""

import io
from collections.abc import Iterator
from pathlib import Path

import keras
import numpy as np
import pytest

from fl_saliency.agents.policy import PolicyAgent
from fl_saliency.base import AttentionGeometry
from fl_saliency.errors import InputError
from fl_saliency.experiments.maps import MapJob
from fl_saliency.experiments.sanity import figures
from fl_saliency.experiments.sanity.bootstrap import Interval
from fl_saliency.experiments.sanity.cautions import cautions
from fl_saliency.experiments.sanity.cells import attention_cells
from fl_saliency.experiments.sanity.checks import CELLS, Checks, Findings
from fl_saliency.experiments.sanity.curves import (
    area,
    blurred,
    curve_findings,
    curves,
    pixel_order,
    raised_states,
    shares,
)
from fl_saliency.experiments.sanity.examples import examples_figure
from fl_saliency.experiments.sanity.page import PICTURES, sanity_page
from fl_saliency.experiments.sanity.parts import EFFECTS, PartsFinding, blur_effects, part_masks
from fl_saliency.experiments.sanity.randomisation import Randomised, redrawn, stages
from fl_saliency.experiments.sanity.verdicts import judge, verdicts
from fl_saliency.networks import blocks, registry
from fl_saliency.networks.policy import build_policy, get_arrays, layer_of, set_arrays
from fl_saliency.networks.registry import NetworkSpec, get_network, network_names
from fl_saliency.playback.states import States
from tests.experiments.html_page import Page
from tests.saliency.stubs import RegionAgent

RNG = np.random.default_rng(0)
OBS = RNG.integers(0, 256, (4, 84, 84, 4), dtype=np.uint8)
ACTIONS = np.array([0, 1, 0, 1])


@pytest.fixture(scope="module", autouse=True)
def tiny() -> Iterator[None]:
    """The network `tiny`: a small one with attention, quick to draw and to run."""

    def build(obs: blocks.Tensor) -> tuple[blocks.Tensor, blocks.Tensor]:
        features = blocks.trunk(blocks.scale_pixels(obs), [(8, 12, 12, "valid")])
        attention = blocks.fls_map(features, size=1)
        return blocks.dense(keras.layers.Flatten()(features * attention), "fc1", 16), attention

    geometry = AttentionGeometry(receptive_field=12, stride=12, padding=0)
    spec = NetworkSpec(name="tiny", build=build, geometry=geometry, source="this test")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry._TABLE, "tiny", spec)
        yield


def network(name: str = "tiny", seed: int = 1) -> PolicyAgent:
    """A network with weights of chance: making them orthogonal takes seconds for a large one."""
    model, rng = build_policy(name, 4), np.random.default_rng(seed)
    arrays = {
        key: rng.normal(0, 0.1, array.shape).astype(np.float32)
        for key, array in get_arrays(model).items()
    }
    set_arrays(model, arrays)
    return PolicyAgent(model, np.random.default_rng(0))


def states(count: int = 4) -> States:
    return States(
        observations=OBS[:count],
        screens=np.zeros((count, 210, 160, 3), np.uint8),
        actions=ACTIONS[:count],
        scores=np.zeros(count),
        games=np.zeros(count, np.int64),
    )


# --- insertion and deletion ---


def bright_regions() -> np.ndarray:
    """Observations in which what RegionAgent looks at stands out."""
    obs = np.zeros((4, 84, 84, 4), np.uint8)
    obs[:, 16:24, 16:24] = 255
    obs[:, 56:64, 56:64] = 255
    return obs


def true_maps(actions: np.ndarray) -> np.ndarray:
    """Ones where the action's logit comes from."""
    maps = np.zeros((len(actions), 84, 84), np.float32)
    for row, action in enumerate(actions):
        maps[(row, *RegionAgent.regions[action])] = 1
    return maps


def outcomes(maps: np.ndarray, seed: int = 0) -> dict[str, np.ndarray]:
    order = pixel_order(maps, np.random.default_rng(seed))
    return curves(RegionAgent(), bright_regions(), ACTIONS, order)


def test_the_true_order_beats_chance_and_the_centre() -> None:
    found = {
        "true": outcomes(true_maps(ACTIONS)),
        "false": outcomes(1 - true_maps(ACTIONS)),
        "random": outcomes(np.zeros((4, 84, 84))),
        "centre": outcomes(np.repeat(_distance_to_centre(), 4, axis=0)),
    }
    for name, methods in curve_findings(found, seed=0).items():
        assert methods["true"].over_random.low > 0.1, name
        assert methods["true"].over_centre.low > 0, name
        assert methods["false"].over_random.high < 0, name
        assert methods["random"].over_random.mean == 0, name


def _distance_to_centre() -> np.ndarray:
    rows, columns = np.indices((84, 84)) - 41.5
    return -(rows**2 + columns**2)[None]


def test_curves_run_from_the_whole_picture_to_the_blurred_one_and_back() -> None:
    agent, obs = RegionAgent(), bright_regions()
    found = outcomes(RNG.random((4, 84, 84)))
    whole, gone = (agent.scores(p)[np.arange(4), ACTIONS] for p in (obs, blurred(obs)))
    np.testing.assert_allclose(found["deletion_logit"][:, 0], whole)
    np.testing.assert_allclose(found["deletion_logit"][:, -1], gone)
    np.testing.assert_allclose(found["insertion_logit"][:, [0, -1]], np.stack([gone, whole], 1))
    assert ((found["insertion_probability"] > 0) & (found["insertion_probability"] < 1)).all()


def test_scaled_logits_go_from_1_to_0_on_average() -> None:
    found = outcomes(true_maps(ACTIONS))
    findings = curve_findings({"random": found, "centre": found}, seed=0)
    curve = findings["deletion_logit"]["random"]
    assert (curve.mean[0], curve.mean[-1]) == pytest.approx((1, 0))
    assert findings["insertion_logit"]["random"].mean[-1] == pytest.approx(1)
    assert findings["deletion_probability"]["random"].mean[-1] == 0


def test_what_marks_only_support_is_not_judged_where_the_picture_speaks_against() -> None:
    """Blurring everything lowers the chosen logit in one state, and raises it in the other."""
    down = np.linspace(1, 0, 21)
    logits = np.stack([down, -down])
    found = {
        f"{kind}_{number}": logits[:, ::step]
        for kind, step in (("deletion", 1), ("insertion", -1))
        for number in ("logit", "probability")
    }
    methods = ("random", "centre", "rise", "perturbation")
    findings = curve_findings(dict.fromkeys(methods, found), seed=0)
    for kind in ("deletion_logit", "insertion_logit"):
        rise, other = (findings[kind][name].over_random for name in ("rise", "perturbation"))
        assert (rise.n, rise.undefined) == (1, 1)
        assert (other.n, other.undefined) == (2, 0)
    assert findings["deletion_logit"]["rise"].mean == pytest.approx(down.tolist())
    assert raised_states({"random": found}).tolist() == [False, True]


def test_an_agent_that_does_not_look_has_flat_curves() -> None:
    order = pixel_order(RNG.random((2, 84, 84)), RNG)
    found = curves(RegionAgent(), bright_regions()[:2], np.array([2, 3]), order)
    findings = curve_findings({"random": found, "centre": found}, seed=0)
    assert findings["deletion_logit"]["random"].area.mean == 0


def test_pixels_go_in_steps_of_equal_size() -> None:
    counts = shares(84 * 84)
    assert (counts[0], counts[-1], len(counts)) == (0, 84 * 84, 21)
    assert np.ptp(np.diff(counts)) <= 1


def test_area_of_hand_values() -> None:
    np.testing.assert_allclose(area(np.array([[1.0, 0.5, 0.0], [1.0, 0.0, 0.0]])), [0.5, 0.25])


def test_pixels_go_by_value_and_ties_by_chance() -> None:
    maps = np.zeros((2, 84, 84), np.float32)
    maps[:, 40, 41], maps[:, 3, 2] = 2, 1
    order = pixel_order(maps, np.random.default_rng(0))
    assert (order[:, :2] == [40 * 84 + 41, 3 * 84 + 2]).all()
    assert (np.sort(order, axis=1) == np.arange(84 * 84)).all()
    assert (order[0, 2:] != order[1, 2:]).mean() > 0.9
    # No corner goes first.
    assert abs(order[0, 2:500].mean() - 84 * 84 / 2) < 400


# --- high against low ---


def test_what_is_looked_at_matters_more_than_what_is_not() -> None:
    maps = true_maps(ACTIONS) + RNG.random((4, 84, 84)).astype(np.float32) / 10
    found = blur_effects(RegionAgent(), bright_regions(), ACTIONS, part_masks(maps, RNG))
    for effect in EFFECTS:
        parts = PartsFinding.of(found, effect, seed=0)
        assert parts.over_low.low > 0
        assert parts.over_random.low > 0
        assert parts.low.mean < parts.high.mean / 10


def test_parts_have_the_same_size_and_do_not_meet() -> None:
    masks = part_masks(RNG.random((3, 7, 7)), RNG)
    assert {int(mask.sum()) for mask in masks.values()} == {15}
    assert not (masks["high"] & masks["low"]).any()


# --- attention cells ---


@pytest.mark.parametrize("name", [name for name in network_names() if "dense" not in name])
def test_attention_cells_are_removed_from_what_the_network_computes(name: str) -> None:
    agent = network(name)
    cells = attention_cells(agent.model)
    row = get_network(name)
    if row.geometry is None or row.pooling == "max" or name.endswith("x3"):  # maps to look at
        assert cells is None
        return
    none = np.zeros(agent.attention(OBS).shape, np.bool_)
    np.testing.assert_allclose(cells.scores(OBS, none), agent.scores(OBS), rtol=1e-4, atol=1e-6)
    # Without any attention, nothing of the picture comes through.
    dark = cells.scores(OBS, ~none)
    assert np.ptp(dark, axis=0).max() == 0
    some = none.copy()
    some[:, 3, 3] = True
    assert not np.allclose(cells.scores(OBS, some), agent.scores(OBS), rtol=1e-3)


# --- parameter randomisation ---


def test_the_cascade_goes_from_the_output_down() -> None:
    found = stages(["c1", "c2", "h1", "h2", "fc1", "pi", "vf"])
    cascade = [stage for stage in found if stage.kind == "cascading"]
    assert [stage.layer for stage in cascade] == ["pi", "vf", "fc1", "h2", "h1", "c2", "c1"]
    assert cascade[2].layers == ("pi", "vf", "fc1")
    alone = [stage for stage in found if stage.kind == "independent"]
    assert [stage.layers for stage in alone] == [(stage.layer,) for stage in cascade]


@pytest.mark.parametrize("name", ["cnn", "cnn_sparse_fls_x3"])
def test_every_variable_belongs_to_a_layer(name: str) -> None:
    agent = network(name)
    assert {layer_of(variable) for variable in get_arrays(agent.model)} == set(agent.layers)


def test_only_the_layers_of_a_stage_are_redrawn_and_the_trained_network_stays() -> None:
    agent = network()
    before = get_arrays(agent.model)
    randomised = Randomised(agent, 0)
    randomised.redraw(("fc1", "h2"))
    for name, array in get_arrays(randomised.agent.model).items():
        changed = not np.array_equal(array, before[name])
        assert changed == (layer_of(name) in ("fc1", "h2")), name
    assert (randomised.agent.attention(OBS) != agent.attention(OBS)).all()
    randomised.redraw(())
    np.testing.assert_array_equal(randomised.agent.scores(OBS), agent.scores(OBS))
    assert redrawn(before, before, ()) == before


def test_the_new_weights_are_not_those_that_a_training_with_the_seed_begins_with() -> None:
    untrained = build_policy("tiny", 4, seed=0)
    agent = PolicyAgent(untrained, np.random.default_rng(0))
    randomised = Randomised(agent, 0)
    randomised.redraw(tuple(agent.layers))
    drawn, name = get_arrays(randomised.agent.model), "ppo2_model/pi/c1/w:0"
    assert not np.array_equal(drawn[name], get_arrays(untrained)[name])


# --- all checks ---


@pytest.fixture(scope="module")
def findings(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    return check(tmp_path_factory.mktemp("job"))


def check(folder: Path, methods: tuple[str, ...] = ("attention", "gradient")) -> Findings:
    job = MapJob(folder, {})
    return Checks(network(), methods, seed=0).run(states(), job)


def spearman(findings: Findings, kind: str, layer: str, method: str) -> float:
    (found,) = [f for f in findings.stages if (f.stage.kind, f.stage.layer) == (kind, layer)]
    return found.methods[method]["spearman"].mean


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let four states be enough for a verdict."""
    monkeypatch.setattr("fl_saliency.experiments.sanity.verdicts.ENOUGH", 2)


def test_what_ignores_the_network_fails_randomisation(findings: Findings, few: None) -> None:
    for stage in findings.stages:
        for baseline in ("centre", "random"):
            assert stage.methods[baseline]["spearman"].mean == pytest.approx(1)
            assert stage.methods[baseline]["ssim"].mean == pytest.approx(1)
    outcome = {(v.check, v.method): v.outcome for v in verdicts(findings)}
    assert outcome["randomisation", "centre"] == outcome["randomisation", "random"] == "fails"


def test_a_gradient_of_a_real_network_changes_with_every_layer_it_depends_on(
    findings: Findings, few: None
) -> None:
    assert spearman(findings, "cascading", "c1", "gradient") < 0.3
    assert spearman(findings, "independent", "c1", "gradient") < 0.9
    assert spearman(findings, "independent", "pi", "gradient") < 0.99
    assert spearman(findings, "independent", "vf", "gradient") == pytest.approx(1)
    outcome = {(v.check, v.method): v.outcome for v in verdicts(findings)}
    assert outcome["randomisation", "gradient"] == "passes"


def test_attention_does_not_depend_on_what_comes_after_it(findings: Findings) -> None:
    for layer in ("pi", "vf", "fc1"):
        assert spearman(findings, "cascading", layer, "attention") == pytest.approx(1)
    assert spearman(findings, "independent", "h2", "attention") < 0.99


def test_every_check_has_every_method(findings: Findings) -> None:
    names = {"attention", "gradient", "centre", "random"}
    assert set(findings.names) == names
    assert set(findings.agreement.names) == names
    assert all(set(found) == names for found in findings.curves.values())
    assert all(set(found) == {*names, CELLS} for found in findings.parts.values())
    assert {stage.stage.kind for stage in findings.stages} == {"cascading", "independent"}
    assert findings.examples["cascading-c1"]["gradient"].shape == (84, 84)


def test_an_interrupted_job_ends_as_one_that_was_not(findings: Findings, tmp_path: Path) -> None:
    told: list[str] = []

    def stop(what: str, number: int) -> None:
        told.append(what)
        if len(told) == 30:
            raise KeyboardInterrupt

    agent, methods, job = network(), ("attention", "gradient"), MapJob(tmp_path, {})
    with pytest.raises(KeyboardInterrupt):
        Checks(agent, methods, seed=0, progress=stop).run(states(), job)
    kept = set(tmp_path.glob("*.npz"))
    assert kept
    times = {path: path.stat().st_mtime_ns for path in kept}
    again = check(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in kept} == times
    assert again.stages == findings.stages
    assert again.curves == findings.curves
    assert again.parts == findings.parts
    assert again.agreement == findings.agreement


def test_a_torn_file_of_an_unfinished_job_is_computed_again(
    findings: Findings, tmp_path: Path
) -> None:
    (tmp_path / "parts.attention.npz").write_bytes(b"PK\x03\x04 torn")
    assert check(tmp_path).parts == findings.parts


def test_a_method_has_the_same_figures_whatever_is_checked_beside_it(
    findings: Findings, tmp_path: Path
) -> None:
    alone = check(tmp_path, ("gradient",))
    assert (
        alone.curves["deletion_logit"]["gradient"] == findings.curves["deletion_logit"]["gradient"]
    )
    assert alone.parts["kl"]["gradient"] == findings.parts["kl"]["gradient"]


def test_progress_adds_up(tmp_path: Path) -> None:
    told: list[int] = []
    checks = Checks(
        network(), ["gradient"], seed=0, progress=lambda what, number: told.append(number)
    )
    for _ in range(2):  # begun, and gone on with when all is there
        told.clear()
        found = checks.run(states(2), MapJob(tmp_path, {}))
        assert sum(told) == checks.work(2)
        assert found.states == 2


def test_attention_is_refused_where_there_is_none() -> None:
    with pytest.raises(InputError, match="has no built-in attention"):
        Checks(network("cnn"), ["attention"], seed=0)


def test_constant_maps_are_undefined_and_counted(tmp_path: Path) -> None:
    found = check(tmp_path, ("uniform",))
    last = found.stages[0].methods["uniform"]["spearman"]
    assert (last.mean, last.n, last.undefined) == (None, 0, 4)
    outcome = {(v.check, v.method): v for v in verdicts(found)}
    assert outcome["randomisation", "uniform"].outcome == "undecided"
    assert outcome["randomisation", "uniform"].because.startswith("Spearman undefined")


def test_every_figure_can_be_drawn_where_nothing_is_defined(tmp_path: Path) -> None:
    found = check(tmp_path, ("uniform",))
    screen, frame = np.zeros((210, 160, 3), np.uint8), np.zeros((84, 84), np.uint8)
    for figure in (
        figures.randomisation_figure(found),
        figures.insertion_deletion_figure(found),
        figures.zeroing_figure(found),
        figures.agreement_figure(found),
        examples_figure(found, screen, frame),
    ):
        figure.savefig(io.BytesIO(), format="png")


# --- the page ---


def page_of(findings: Findings, name: str) -> Page:
    pictures = {picture.file: b"" for picture in PICTURES}
    provenance = {"env_name": name, "network": name, "games": 1, name: [name]}
    return Page(sanity_page(findings, pictures, provenance, [name]))


def test_names_from_outside_are_escaped_on_the_page(findings: Findings) -> None:
    hostile = '<script>alert("x")</script>&amp;\''
    page = page_of(findings, hostile)
    assert page.open == []
    assert not page.all("script")
    assert page.tags == page_of(findings, "harmless").tags
    # Title, heading, caution, the key of the table and its value are as they came.
    assert sum(hostile in text for text in page.texts) >= 5


def test_the_page_has_a_verdict_for_each_method_and_check(findings: Findings) -> None:
    text = " ".join(page_of(findings, "x").texts)
    for verdict in verdicts(findings):
        assert all(part in text for part in verdict.because.split("; "))
    assert "centre (baseline)" in text


# --- verdicts and cautions ---


def made(low: float | None, high: float | None, undefined: int = 0, n: int = 20) -> Interval:
    return Interval(mean=None if low is None else low, low=low, high=high, n=n, undefined=undefined)


@pytest.mark.parametrize(
    ("found", "above", "below"),
    [
        (made(0.6, 0.7), "passes", "fails"),
        (made(0.1, 0.4), "fails", "passes"),
        (made(0.4, 0.6), "undecided", "undecided"),
        (made(0.5, 0.5), "undecided", "undecided"),
        (made(None, None), "undecided", "undecided"),
        (made(0.6, 0.7, undefined=21), "undecided", "undecided"),
        (made(0.6, 0.7, n=15), "undecided", "undecided"),
    ],
)
def test_a_verdict_needs_the_whole_interval(found: Interval, above: str, below: str) -> None:
    assert judge(found, 0.5, above=True) == above
    assert judge(found, 0.5, above=False) == below


def test_an_agent_that_learned_nothing_is_pointed_out() -> None:
    scores = np.zeros((4, 4), np.float32)
    found = " ".join(cautions(states(), scores, scores, {"num_timesteps": 1024}))
    for part in (
        "trained for 1024 decisions",
        "nearly uniform",
        "hardly looks",
        "4 states",
        "1 game",
    ):
        assert part in found


def test_a_trained_agent_with_enough_states_needs_no_caution() -> None:
    many = 64
    scores = np.tile(np.array([4.0, 0, 0, 0], np.float32), (many, 1))
    played = States(
        observations=np.zeros((many, 84, 84, 4), np.uint8),
        screens=np.zeros((many, 2, 2, 3), np.uint8),
        actions=np.zeros(many, np.int64),
        scores=np.zeros(many),
        games=np.arange(many) // 16,
    )
    assert cautions(played, scores, scores[:, ::-1], {"num_timesteps": 10**7}) == []
    assert cautions(played, scores, scores[:, ::-1], {}) == []
