"""`fls intervene`: files, what they say, determinism, and refusals that write nothing."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from fl_saliency.base import write_json
from fl_saliency.cli.main import main
from fl_saliency.experiments.intervention.settings import RESULT_FILES
from fl_saliency.experiments.load import load_run
from fl_saliency.render.overlay import attention_to_input
from tests.helpers import make_run, read_strict_json

EDITS = ("--ram", "99-=40", "--mask", "75,150,30,30", "5,5,9,9")


def run(experiment: Path, output: Path, *words: str, at: int = 10) -> int:
    where = ["--experiment-dir", str(experiment), "--output-dir", str(output)]
    return main(["intervene", *where, "--at", str(at), "--steps", "3", *words])


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("experiment") / "01", network="cnn_sparse_fls")


@pytest.fixture(scope="module")
def results(experiment: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("out") / "intervene"
    methods = ("--methods", "attention", "frame_difference")
    assert run(experiment, output, *EDITS, "--move", "0,180,160,20,0,-9", *methods) == 0
    return output


def record(results: Path) -> dict:
    return read_strict_json(results / "intervention.json")


def test_the_files_are_there_and_nothing_else(results: Path) -> None:
    assert sorted(path.name for path in results.iterdir()) == sorted(RESULT_FILES)
    assert cv2.imread(str(results / "intervention.png")).shape[0] > 1000


def test_the_record_says_what_was_asked_for_and_what_was_changed(results: Path) -> None:
    found = record(results)
    assert found["network"] == "cnn_sparse_fls"
    assert found["protocol"]["game"] == "breakout"
    assert (found["at"], found["steps"], found["eval_seed"]) == (10, 3, 1000)
    assert (found["actions"], found["keep"], found["fill"]) == ("sampled", False, None)
    assert found["ram"] == ["99-=40"]
    (byte,) = found["memory"]
    assert byte["byte"] == 99
    assert byte["after"] == byte["before"] - 40
    assert found["mask"][0] == {"x": 75, "y": 150, "width": 30, "height": 30}
    assert found["move"][0]["dy"] == -9
    assert found["methods"] == ["attention", "frame_difference"]


def test_the_record_has_every_decision_of_both_branches(results: Path) -> None:
    found = record(results)
    for steps in found["branches"].values():
        assert [step["decision"] for step in steps] == [10, 11, 12]
        for step in steps:
            assert sum(step["policy"]) == pytest.approx(1)
            assert step["action_name"] == found["action_names"][step["action"]]
            assert step["lives"] == 5
    original, intervened = (found["branches"][name] for name in ("original", "intervened"))
    for change, before, after in zip(found["changes"], original, intervened, strict=True):
        assert change["value_change"] == pytest.approx(after["value"] - before["value"])
        p, q = np.array(before["policy"]), np.array(after["policy"])
        assert change["kl"] == pytest.approx(float((p * np.log(p / q)).sum()), abs=1e-9)
        assert set(change["maps"]) == {"attention", "frame_difference"}
    assert found["at_branching"] == found["first_difference"] == found["changes"][0]
    assert found["at_branching"]["sees_difference"] is True


def test_the_arrays_are_what_the_agent_saw_and_its_maps(results: Path, experiment: Path) -> None:
    arrays = np.load(results / "intervention.npz")
    agent = load_run(experiment, seed=1000).agent
    assert agent.geometry is not None
    for name in ("original", "intervened"):
        observations = arrays[f"{name}_observations"]
        assert (observations.shape, observations.dtype) == ((3, 84, 84, 4), np.uint8)
        assert arrays[f"{name}_screens"].shape == (3, 210, 160, 3)
        expected = attention_to_input(agent.attention(observations), agent.geometry)
        np.testing.assert_allclose(arrays[f"{name}_maps_attention"], expected, atol=1e-5)
    (first,) = {arrays[f"{name}_screens"][0].tobytes() for name in ("original",)}
    assert first != arrays["intervened_screens"][0].tobytes()


def test_two_interventions_with_a_seed_write_the_same(
    results: Path, experiment: Path, tmp_path: Path
) -> None:
    words = ("--ram", "99-=40", "--mask", "75,150,30,30", "--mask", "5,5,9,9")
    methods = ("--methods", "attention", "frame_difference")
    assert run(experiment, tmp_path / "a", *words, "--move", "0,180,160,20,0,-9", *methods) == 0
    assert record(tmp_path / "a") == record(results)


def test_what_happened_is_told_in_a_few_lines(
    experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(experiment, tmp_path / "out", "--ram", "99-=40", "101+=2") == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0].startswith("BreakoutNoFrameskip-v4: skip 4")
    assert lines[1].startswith("original: ")
    assert lines[2].startswith("intervened: ")
    assert lines[3].startswith("first difference seen at decision 11: KL ")
    assert lines[4:] == [str(tmp_path / "out" / name) for name in RESULT_FILES]
    assert err == ""


def test_a_change_that_nobody_sees_is_said(
    experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The bottom line of the screen is black already.
    assert run(experiment, tmp_path / "out", "--mask", "0,208,160,2") == 0
    assert "the agent sees no difference" in capsys.readouterr().out
    assert record(tmp_path / "out")["first_difference"] is None


def test_a_network_without_attention_has_other_maps_or_none(tmp_path: Path) -> None:
    experiment = make_run(tmp_path / "cnn", network="cnn")
    assert run(experiment, tmp_path / "none", "--ram", "99=100", "--methods") == 0
    assert record(tmp_path / "none")["changes"][1]["maps"] == {}
    arrays = np.load(tmp_path / "none" / "intervention.npz")
    assert not [name for name in arrays.files if "_maps_" in name]
    assert run(experiment, tmp_path / "other", "--ram", "99=100", "--methods", "gradient") == 0
    assert record(tmp_path / "other")["changes"][1]["maps"]["gradient"]["one_minus_r"] > 0


def test_results_are_replaced_only_if_that_is_said(
    experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "out"
    assert run(experiment, output, "--ram", "99=100", "--methods") == 0
    before = (output / "intervention.json").read_bytes()
    assert run(experiment, output, "--ram", "99=101", "--methods") == 2
    assert "intervention.json exists; add --overwrite" in capsys.readouterr().err
    assert (output / "intervention.json").read_bytes() == before
    assert run(experiment, output, "--ram", "99=101", "--methods", "--overwrite") == 0
    assert record(output)["memory"][0]["after"] == 101


def test_results_go_into_the_run_directory_where_no_other_is_named(tmp_path: Path) -> None:
    experiment = make_run(tmp_path / "run")
    words = ("--at", "2", "--steps", "1", "--ram", "99=100", "--methods")
    assert main(["intervene", "--experiment-dir", str(experiment), *words]) == 0
    assert (experiment / "intervention.png").exists()


# --- refusals -----------------------------------------------------------------------------------


def refused(capsys: pytest.CaptureFixture[str], output: Path) -> str:
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("fls intervene: error: ")
    assert not output.exists()
    return line.removeprefix("fls intervene: error: ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "nothing to change: expected --ram, --mask or --move, see --help"),
        (("--ram",), "nothing to change: expected --ram, --mask or --move, see --help"),
        (("--ram", "128=1"), "--ram 128=1: byte 128: expected 0 to 127"),
        (("--ram", "1=256"), "--ram 1=256: value 256: expected 0 to 255"),
        (("--ram", "ball"), "--ram 'ball': expected BYTE=VALUE, BYTE+=VALUE or BYTE-=VALUE, such"),
        (("--mask", "1,2,3"), "--mask '1,2,3': expected X,Y,W,H in whole numbers, such as"),
        (("--mask", "1,2,0,1"), "--mask 1,2,0,1: expected a width and a height of 1 or more"),
        (("--mask", "150,0,20,5"), "--mask 150,0,20,5: expected it on the screen, 160 pixels wide"),
        (("--move", "1,1,5,5,0,0"), "--move 1,1,5,5,0,0: expected DX or DY other than 0"),
        (("--move", "1,1,5,5,-2,0"), "--move 1,1,5,5,-2,0: to -1,1,5,5: expected it on the screen"),
        (("--ram", "9=1", "--steps", "0"), "--steps 0: expected 1 to 1000"),
        (("--ram", "9=1", "--steps", "1001"), "--steps 1001: expected 1 to 1000"),
        (("--ram", "9=1", "--keep"), "--keep: expected --mask or --move with it"),
        (("--ram", "9=1", "--fill", "0,0,0"), "--fill: expected --mask or --move with it"),
        (("--mask", "1,1,5,5", "--fill", "0,0"), "--fill '0,0': expected R,G,B in whole numbers"),
        (("--ram", "9=1", "--at", "-1"), "--at -1: expected a decision, 0 or more"),
        (("--ram", "9=1", "--at", "9999"), "--at 9999: the game of --eval-seed 1000 ends at"),
        (("--ram", "99+=255"), "--ram 99+=255: byte 99 is"),
        (("--ram", "9=1", "--eval-seed", "-1"), "--eval-seed -1: expected a seed from 0"),
        (
            ("--ram", "9=1", "--methods", "atention"),
            "unknown saliency method 'atention'; did you mean 'attention'?",
        ),
        (("--ram", "9=1", "--methods", "rise", "rise"), "saliency method 'rise' is given twice"),
        (
            ("--ram", "9=1", "--methods", "gradient", "--target", "valu"),
            "unknown target 'valu'; did you mean 'value'?",
        ),
        (
            ("--ram", "9=1", "--actions", "sample"),
            "--actions: unknown value 'sample'; did you mean",
        ),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(
    experiment: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    said: str,
) -> None:
    assert run(experiment, tmp_path / "out", *words) == 2
    assert refused(capsys, tmp_path / "out").startswith(said)


def test_attention_is_refused_where_there_is_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = make_run(tmp_path / "cnn", network="cnn")
    assert run(experiment, tmp_path / "out", "--ram", "99=100") == 2
    assert "attention" in refused(capsys, tmp_path / "out")


def test_a_protocol_that_pools_grey_screens_takes_changes_of_memory_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    experiment = make_run(tmp_path / "run")
    protocol = load_run(experiment, seed=0).protocol.as_dict() | {"max_pool": "grey"}
    config = {"env_name": protocol["env_id"], "network": "cnn_daqn", "protocol": protocol}
    write_json(experiment / "config.json", config)
    assert run(experiment, tmp_path / "out", "--mask", "1,1,5,5", "--methods") == 2
    assert "pools them in grey" in refused(capsys, tmp_path / "out")
    assert run(experiment, tmp_path / "out", "--ram", "99=100", "--methods") == 0
