"""The doctor: a whole run is whole, each kind of damage is found in its file and nowhere else."""

import json
import os
import pickle
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from fl_saliency.atari_head import report
from fl_saliency.atari_head.report import RESULT_FILES
from fl_saliency.base import EpisodeRecord, write_json
from fl_saliency.checkpoints.snapshots import Snapshot, read_snapshot, write_snapshot
from fl_saliency.cli import benchmark, doctor, run, train
from fl_saliency.cli.benchmark_job import PARTIAL
from fl_saliency.envs.protocol import resolve_protocol
from fl_saliency.errors import InputError
from fl_saliency.experiments.doctor import Finding, examine
from fl_saliency.experiments.doctor.files import COMPARISON_FILES, GAZE_FILES, GAZE_PARTIAL
from fl_saliency.folders import hold
from tests.atari_head.gaze_fakes import TRIALS
from tests.helpers import make_run

UPDATES = 5
ORIGINAL = Path(__file__).parents[1] / "golden" / "original_run"


@pytest.fixture(scope="module")
def specimen(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was really trained, evaluated with videos and scored, all in one folder."""
    path = tmp_path_factory.mktemp("doctor") / "run"
    small = ["--num-envs", "2", "--num-steps", "128", "--env-workers", "0", "--no-progress"]
    small += ["--network", "cnn_daqn", "--num-timesteps", str(256 * UPDATES)]
    small += ["--checkpoint-minutes", "0"]
    assert train.main([*small, "--output-dir", str(path)]) == 0
    few = ["--num-env", "2", "--max-eplen", "200", "--env-workers", "0", "--raw-obs"]
    assert run.main(["--experiment-dir", str(path), *few]) == 0
    gaze = ["--experiment-dir", str(path), "--atari-head-dir", str(TRIALS), "--trials", "9903"]
    assert benchmark.main(gaze) == 0
    return path


@pytest.fixture
def patient(specimen: Path, tmp_path: Path) -> Path:
    return shutil.copytree(specimen, tmp_path / "run")


def found(path: Path) -> dict[str, Finding]:
    findings = examine(path)
    parts = [finding.part for finding in findings]
    assert len(set(parts)) == len(parts)
    return {finding.part: finding for finding in findings}


def not_ok(path: Path) -> dict[str, tuple[str, str]]:
    """What is not ok: part -> status and text."""
    return {f.part: (f.status, f.text) for f in examine(path) if f.status != "ok"}


def contents(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): (path.stat().st_mtime_ns, path.read_bytes()) for path in files}


def test_the_files_of_a_gaze_score_are_those_that_the_benchmark_writes() -> None:
    assert GAZE_FILES == RESULT_FILES
    assert COMPARISON_FILES == report.COMPARISON_FILES
    assert GAZE_PARTIAL == PARTIAL


def test_a_gaze_score_of_several_methods_is_examined_by_its_first(
    specimen: Path, tmp_path: Path
) -> None:
    words = f"--experiment-dir {specimen} --atari-head-dir {TRIALS} --trials 9903 --processed-obs"
    words += f" --saliency attention centre --baselines False --output-dir {tmp_path / 'gaze'}"
    assert benchmark.main(words.split()) == 0
    parts = found(tmp_path / "gaze")
    assert {finding.status for finding in parts.values()} == {"ok"}
    assert parts["saliency.csv"].text == "as saliency.pkl"
    assert set(COMPARISON_FILES) < set(parts)
    table = tmp_path / "gaze" / "saliency.csv"
    table.write_text(table.read_text().replace(",attention,", ",attention,9", 1))
    assert not_ok(tmp_path / "gaze")["saliency.csv"][0] == "bad"


# --- what is whole ------------------------------------------------------------------------------


def test_every_part_of_a_whole_run_is_ok_and_nothing_is_written(specimen: Path) -> None:
    before = contents(specimen)
    parts = found(specimen)
    assert contents(specimen) == before
    assert {finding.status for finding in parts.values()} == {"ok"}
    assert set(parts) == {
        ".",
        "config.json",
        "model.pkl",
        "checkpoints/00000004",
        "checkpoints/00000005",
        "logs/log.txt",
        "logs/progress.csv",
        "logs/0.*.monitor.csv",
        "tb",
        "curve.png",
        "results.json",
        "eval.pkl",
        "results.png",
        "perception.mkv",
        "perception.mp4",
        "perception.png",
        "saliency.pkl",
        "saliency.json",
        "saliency.csv",
        "saliency.png",
    }
    assert parts["."].text == "a run directory: finished, 5 updates"
    assert parts["logs/progress.csv"].text == "5 rows"
    assert parts["perception.mkv"].text == parts["perception.mp4"].text


def test_a_folder_of_results_is_examined_without_its_run(specimen: Path, tmp_path: Path) -> None:
    for path in specimen.iterdir():
        if path.name.startswith(("results", "eval", "perception", "saliency")):
            shutil.copy(path, tmp_path)
    parts = found(tmp_path)
    assert parts["."].text == "a folder of results"
    assert len(parts) == 11
    assert {finding.status for finding in parts.values()} == {"ok"}


def test_the_published_layout_is_whole(tmp_path: Path) -> None:
    parts = found(make_run(tmp_path / "01"))
    assert parts["."] == Finding(
        part=".", status="ok", text="a run directory of the published layout"
    )
    assert set(parts) == {".", "config.json", "model.pkl"}
    assert {finding.status for finding in parts.values()} == {"ok"}


def test_a_run_of_the_original_is_whole(tmp_path: Path) -> None:
    path = shutil.copytree(ORIGINAL, tmp_path / "01")
    config = {"env_name": "BreakoutNoFrameskip-v4", "network": "cnn_daqn"}
    write_json(path / "config.json", config | {"num_env": 8})
    assert not_ok(path) == {"config.json": ("note", "unknown keys: 'num_env'")}
    (path / "model.pkl").unlink()
    assert not_ok(path)["model.pkl"] == ("bad", "missing")


def test_a_model_without_its_optimizer_is_a_note(tmp_path: Path) -> None:
    path = make_run(tmp_path / "01")
    model = joblib.load(path / "model.pkl")
    kept = {n: a for n, a in model.items() if "Adam" not in n and not n.startswith("beta")}
    joblib.dump(kept, path / "model.pkl")
    status, text = not_ok(path)["model.pkl"]
    assert status == "note"
    assert text.endswith("without the optimizer's state")


def test_the_model_of_a_run_alone_is_a_note(patient: Path) -> None:
    for name in ("logs", "tb", "checkpoints"):
        shutil.rmtree(patient / name)
    status, text = not_ok(patient)["."]
    assert (status, "the model alone" in text) == ("note", True)


# --- what is unfinished -------------------------------------------------------------------------


def longer(path: Path, updates: int = 87) -> None:
    """Make the run at `path` one that was to have more updates than it has."""
    config = json.loads((path / "config.json").read_text())
    write_json(path / "config.json", config | {"num_timesteps": 256 * updates})


def append(path: Path, data: bytes) -> None:
    with path.open("ab") as file:
        file.write(data)


def test_an_unfinished_run_says_how_far_it_is_and_how_it_goes_on(patient: Path) -> None:
    longer(patient)
    shutil.rmtree(patient / "checkpoints" / "00000005")
    assert not_ok(patient) == {
        ".": (
            "note",
            "a run directory: 5 of 87 updates; "
            f"fls train --resume --output-dir {patient} goes on after update 4",
        )
    }


def test_what_a_killed_run_leaves_behind_its_checkpoint_is_no_damage(patient: Path) -> None:
    longer(patient)
    shutil.rmtree(patient / "checkpoints" / "00000005")
    append(patient / "logs" / "progress.csv", b"0.1,0.2")
    append(patient / "logs" / "log.txt", b"| approx")
    append(patient / "logs" / "0.0.monitor.csv", b"3.0,1")
    events = next((patient / "tb").iterdir())
    os.truncate(events, events.stat().st_size - 3)
    (patient / "checkpoints" / ".unfinished-abc").mkdir()
    (patient / ".model.pkl.abc.pkl").touch()
    (patient / ".lock").write_text("{}")
    assert not_ok(patient) == {
        ".lock": ("note", "left by a job that was killed; harmless"),
        ".": (
            "note",
            f"a run directory: 5 of 87 updates; fls train --resume --output-dir {patient} "
            "goes on after update 4",
        ),
        "checkpoints/.unfinished-abc": ("note", "left by a job that was killed; harmless"),
        "logs/progress.csv": ("note", "an unfinished last line"),
        "logs/log.txt": ("note", "an unfinished last line"),
        "logs/0.0.monitor.csv": ("note", "an unfinished last line"),
        "tb": (
            "note",
            f"{events.name}: an unfinished last record; "
            "lacks the last row of progress.csv: the job was killed between the two",
        ),
        ".model.pkl.abc.pkl": ("note", "left by a job that was killed; can be removed"),
    }


def test_a_run_that_was_killed_at_once_has_begun(patient: Path) -> None:
    for name in ("model.pkl", "curve.png"):
        (patient / name).unlink()
    for name in ("logs", "tb", "checkpoints"):
        shutil.rmtree(patient / name)
    text = "a run directory: 0 of 5 updates, and no checkpoint from which it could go on"
    assert not_ok(patient) == {".": ("note", text)}
    (patient / "logs").mkdir()
    assert not_ok(patient)["logs/progress.csv"] == ("note", "no update is logged yet")
    (patient / "logs" / "progress.csv").touch()
    assert not_ok(patient)["logs/progress.csv"] == ("note", "no update is logged yet")


def test_a_run_that_is_being_written_is_not_called_damaged(patient: Path) -> None:
    longer(patient)
    (patient / "model.pkl").unlink()
    append(patient / "logs" / "progress.csv", b"0.1,0.2")
    events = next((patient / "tb").iterdir())
    os.truncate(events, events.stat().st_size - 3)
    longest = patient / "checkpoints" / "00000005"
    shutil.rmtree(longest)
    with hold(patient):
        bad = not_ok(patient)
    assert set(bad) == {".", ".lock"}
    assert bad[".lock"][1].startswith(f"being written now: process {os.getpid()} of ")
    assert bad["."] == ("note", "a run directory: 5 of 87 updates so far")


def test_a_users_own_network_is_a_note_that_names_its_module(tmp_path: Path) -> None:
    path = make_run(tmp_path / "01")
    config = {"env_name": "BreakoutNoFrameskip-v4", "network": "my_net"}
    write_json(path / "config.json", config | {"extra_import": ["my_nets"]})
    said = "network 'my_net' is not known; --extra-import my_nets may add it"
    assert not_ok(path) == {"config.json": ("note", said)}
    assert found(path)["model.pkl"].text == "50 arrays of a network not known"


def saved_evaluation(path: Path, *, frames: int | None) -> None:
    """One game of two, saved in folder `path` as `fls run` does."""
    episode = EpisodeRecord(
        env=0, episode=0, seed=1, reward=2.0, length=3, frames=12, end="game_over", time=0.1
    )
    state = {
        "job": {
            "num_env": 2,
            "evals_per_env": 1,
            "protocol": resolve_protocol("BreakoutNoFrameskip-v4").as_dict(),
        },
        "games": [{"episode": 0, "hidden": 1}],
        "episodes": [vars(episode)],
        "recording": None if frames is None else {"spool": {"bytes": frames}},
    }
    arrays = {"games/0/actions": np.zeros(3, np.uint8)}
    write_snapshot(path, Snapshot(index=1, arrays=arrays, state=state))
    (path / "frames").write_bytes(b"1234")


def test_an_unfinished_evaluation_says_what_is_saved(tmp_path: Path) -> None:
    saved_evaluation(tmp_path / "evaluation.partial", frames=None)
    (tmp_path / "results.json").write_text('{"rewards": 1}')
    parts = not_ok(tmp_path)
    said = "an unfinished evaluation: 1 of 2 games are saved; the same command goes on"
    assert parts.pop("evaluation.partial") == ("note", said)
    assert set(parts) == {"results.json"}
    for path in (tmp_path / "evaluation.partial" / "00000001").iterdir():
        path.write_bytes(b"")
    assert not_ok(tmp_path)["evaluation.partial/00000001"][0] == "bad"


def test_an_unfinished_recording_must_have_its_frames(tmp_path: Path) -> None:
    saved_evaluation(tmp_path / "evaluation.partial", frames=4)
    assert set(not_ok(tmp_path)) == {"evaluation.partial"}
    (tmp_path / "evaluation.partial" / "frames").write_bytes(b"123")
    said = "3 bytes, fewer than the 4 that were saved"
    assert not_ok(tmp_path)["evaluation.partial/frames"] == ("bad", said)
    (tmp_path / "evaluation.partial" / "frames").unlink()
    assert not_ok(tmp_path)["evaluation.partial/frames"] == ("bad", "missing")


def test_an_unfinished_benchmark_says_how_many_trials_are_scored(tmp_path: Path) -> None:
    folder = tmp_path / "saliency.partial"
    for index in (3, 8):
        arrays = {"nss": np.zeros(1)}
        write_snapshot(folder, Snapshot(index=index, arrays=arrays, state={}))
    said = "an unfinished benchmark: 2 scored trials saved; the same command goes on"
    assert not_ok(tmp_path) == {"saliency.partial": ("note", said)}


# --- what is damaged ----------------------------------------------------------------------------


def cut(path: Path, share: float = 0.5) -> None:
    os.truncate(path, int(path.stat().st_size * share))


def flip(path: Path, share: float = 0.5) -> None:
    data = bytearray(path.read_bytes())
    data[int(len(data) * share)] ^= 4
    path.write_bytes(data)


def lines(path: Path, change: Callable[[list[str]], list[str]]) -> None:
    path.write_text("".join(change(path.read_text().splitlines(keepends=True))))


def change_json(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change_model(path: Path, change: Callable[[Any], Any]) -> None:
    model = joblib.load(path)
    name = "ppo2_model/pi/c1/w:0"
    model[name] = np.asarray(change(model[name]), np.float32)
    joblib.dump(model, path)


class Evil:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch {self.target}",)


def evil(path: Path) -> None:
    path.write_bytes(pickle.dumps(Evil(path.parent / "owned")))


def lone_events(path: Path) -> Path:
    (events,) = (path / "tb").iterdir()
    return events


@dataclass(frozen=True)
class Damage:
    """One thing that is wrong: done by `harm` to the folder, found in `part`, told with `said`."""

    what: str
    part: str
    said: str
    harm: Callable[[Path], object]


def of_file(what: str, part: str, said: str, harm: Callable[[Path], object]) -> Damage:
    """`harm` is done to the file that is `part`."""
    return Damage(what, part, said, lambda path: harm(path / part))


PROGRESS, MONITOR = "logs/progress.csv", "logs/0.1.monitor.csv"
NEWEST, OLDER = "checkpoints/00000005", "checkpoints/00000004"

DAMAGES = [
    of_file("cut", "config.json", "not valid JSON", cut),
    of_file("missing", "config.json", "not found", Path.unlink),
    of_file(
        "a text for a number",
        "config.json",
        "'gamma' is 'high', expected a number",
        lambda path: change_json(path, gamma="high"),
    ),
    of_file(
        "an unknown network",
        "config.json",
        "unknown network 'cnn_dqn'; did you mean",
        lambda path: change_json(path, network="cnn_dqn"),
    ),
    of_file(
        "a flag that the protocol denies",
        "config.json",
        "its protocol is not that of its flags: frame_skip: trained with 4, used with 2",
        lambda path: change_json(path, frame_skip=2),
    ),
    of_file("cut", "model.pkl", "truncated", cut),
    of_file("missing", "model.pkl", "missing, though the run is finished", Path.unlink),
    of_file("NaN", "model.pkl", "NaN", lambda path: change_model(path, lambda w: w * np.nan)),
    of_file("code", "model.pkl", "refused", evil),
    of_file(
        "other weights",
        "model.pkl",
        "not of the last update",
        lambda path: change_model(path, lambda w: w + 1),
    ),
    of_file(
        "another network's",
        "model.pkl",
        "has shape [8, 8, 4, 3], expected",
        lambda path: change_model(path, lambda w: w[..., :3]),
    ),
    Damage(
        "flipped", NEWEST, "checksum", lambda path: flip(path / NEWEST / "arrays.safetensors")
    ),
    Damage("flipped", OLDER, "checksum", lambda path: flip(path / OLDER / "state.json")),
    Damage(
        "missing", OLDER, "missing", lambda path: (path / OLDER / "checksums.json").unlink()
    ),
    of_file("cut", PROGRESS, "fewer than the", cut),
    of_file("a row missing", PROGRESS, "fewer than the", lambda p: lines(p, lambda t: t[:-1])),
    of_file(
        "a row twice",
        PROGRESS,
        "line 5: nupdates 3 follows 3",
        lambda path: lines(path, lambda text: [*text[:4], text[3], *text[4:]]),
    ),
    of_file("missing", PROGRESS, "missing", Path.unlink),
    of_file(
        "a wrong sum",
        PROGRESS,
        "line 4: total_timesteps is not 3 x 256",
        lambda path: lines(path, lambda text: [row.replace(",768,", ",769,") for row in text]),
    ),
    of_file(
        "a word",
        PROGRESS,
        "line 4: expected a number, found '76B'",
        lambda path: lines(path, lambda text: [row.replace(",768,", ",76B,") for row in text]),
    ),
    of_file("missing", "logs/log.txt", "missing", Path.unlink),
    of_file("cut", "logs/log.txt", "fewer than the", cut),
    of_file("no text", "logs/log.txt", "not a text file", lambda p: flip_high(p)),
    of_file("missing", MONITOR, "missing", Path.unlink),
    of_file("one too many", "logs/0.2.monitor.csv", "2 envs", lambda path: (
        shutil.copy(path.with_name("0.1.monitor.csv"), path))),
    of_file("no header", MONITOR, "line 1: expected a monitor header", lambda path: (
        lines(path, lambda text: [text[0].replace("#", " "), *text[1:]]))),
    of_file("another game's", MONITOR, "of PongggggNoFrameskip-v4", lambda path: (
        lines(path, lambda text: [text[0].replace("Breakout", "Ponggggg"), *text[1:]]))),
    of_file("a row twice", MONITOR, "repeats the line before", lambda path: (
        lines(path, lambda text: [*text, text[-1]]))),
    Damage("flipped", "tb", "damaged", lambda path: flip(lone_events(path))),
    Damage("cut", "tb", "fewer than the", lambda path: cut(lone_events(path))),
    Damage("a file missing", "tb", "missing", lambda path: lone_events(path).unlink()),
    Damage("missing", "tb", "missing", lambda path: shutil.rmtree(path / "tb")),
    Damage("missing", "logs", "missing", lambda path: shutil.rmtree(path / "logs")),
    Damage("a row twice", "tb", "step 2 follows step 5", lambda path: twice(lone_events(path))),
    of_file("cut", "curve.png", "breaks off", cut),
    of_file("missing", "curve.png", "missing, though the run is finished", Path.unlink),
    of_file("flipped", "curve.png", "checksum", flip),
    of_file("no PNG", "curve.png", "not a PNG", lambda path: path.write_bytes(b"\xff\xd8" * 99)),
    of_file("more", "curve.png", "behind its end", lambda path: append(path, b"more")),
    of_file("NaN", "results.json", "NaN", lambda path: path.write_text(
        path.read_text().replace('"n_episodes": 2', '"n_episodes": NaN'))),
    of_file("cut", "results.json", "not strict JSON", cut),
    of_file("missing", "results.json", "missing", Path.unlink),
    of_file("a list too short", "results.json", "seed has 1 entries, rewards 2", lambda path: (
        change_json(path, seed=[1]))),
    of_file("a wrong sum", "results.json", "done_per_env says 3 games", lambda path: (
        change_json(path, done_per_env=[1, 2]))),
    of_file("a game of another env", "results.json", "done_per_env is not", lambda path: (
        change_json(path, env=[1, 1]))),
    of_file("a wrong mean", "results.json", "mean_reward 1000000.0", lambda path: (
        change_json(path, mean_reward=1e6))),
    of_file("a list missing", "results.json", "'lengths' is missing", lambda path: (
        path.write_text(path.read_text().replace('"lengths"', '"length"')))),
    of_file("cut", "eval.pkl", "truncated", cut),
    of_file("missing", "eval.pkl", "missing", Path.unlink),
    of_file("code", "eval.pkl", "refused", evil),
    of_file("another's", "eval.pkl", "seed is not that of results.json", lambda path: (
        path.write_bytes(pickle.dumps({**pickle.loads(path.read_bytes()), "seed": [1, 2]})))),
    of_file("cut", "results.png", "breaks off", cut),
    of_file("missing", "results.png", "missing", Path.unlink),
    of_file("cut", "perception.mkv", "damaged (File ended prematurely)", cut),
    of_file("cut late", "perception.mkv", "damaged (File ended prematurely)", lambda path: (
        cut(path, 0.9))),
    of_file("flipped", "perception.mkv", "damaged", flip),
    of_file("empty", "perception.mkv", "neither Matroska nor MP4", lambda p: cut(p, 0)),
    of_file("a playlist", "perception.mkv", "neither Matroska nor MP4", lambda path: (
        path.write_text("#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n"))),
    of_file("missing", "perception.mkv", "missing", Path.unlink),
    of_file("cut", "perception.mp4", "", cut),
    of_file("shorter", "perception.mp4", "frames, the other video has", lambda p: short_video(p)),
    of_file("cut", "perception.png", "breaks off", cut),
    of_file("cut", "saliency.pkl", "truncated", cut),
    of_file("missing", "saliency.pkl", "missing", Path.unlink),
    of_file("code", "saliency.pkl", "refused", evil),
    of_file("NaN", "saliency.json", "NaN", lambda path: path.write_text(
        path.read_text().replace('"convention": "paper"', '"convention": NaN'))),
    of_file("no trials", "saliency.json", "not the trials of saliency.pkl", lambda path: (
        change_json(path, trials=[]))),
    of_file("a wrong mean", "saliency.json", "nss is not that of saliency.pkl", lambda p: (
        wrong_mean(p))),
    of_file("missing", "saliency.json", "missing", Path.unlink),
    of_file("a row missing", "saliency.csv", "decisions", lambda p: lines(p, lambda t: t[:-1])),
    of_file("cut", "saliency.csv", "", cut),
    of_file("another value", "saliency.csv", "line 3: not that of saliency.pkl", lambda path: (
        lines(path, lambda text: [*text[:2], text[2].replace(".", ".9"), *text[3:]]))),
    of_file("no header", "saliency.csv", "line 1: expected trial", lambda path: (
        lines(path, lambda text: text[1:]))),
    of_file("cut", "saliency.png", "breaks off", cut),
]  # fmt: skip


def flip_high(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[100] = 0xFF
    path.write_bytes(data)


def twice(path: Path) -> None:
    """Repeat all rows of event file `path` but the first."""
    data = path.read_bytes()
    first = int.from_bytes(data[:8], "little") + 16
    second = int.from_bytes(data[first : first + 8], "little") + 16
    append(path, data[first + second :])


def short_video(path: Path) -> None:
    from fl_saliency.render.video import VideoWriter

    path.unlink()
    with VideoWriter(path, 16, 16, 30, "libx264") as video:
        video.add(np.zeros((16, 16, 3), np.uint8))


def wrong_mean(path: Path) -> None:
    summary = json.loads(path.read_text())
    summary["trials"][0]["metrics"]["nss"]["mean"] = 3.5
    path.write_text(json.dumps(summary))


def forged(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> None:
    """Give the checkpoint at `path` other contents, and the checksums that go with them."""
    whole = read_snapshot(path)
    arrays, state = dict(whole.arrays), dict(whole.state)
    index = change(arrays, state) or whole.index
    shutil.rmtree(path)
    assert isinstance(index, int)
    write_snapshot(path.parent, Snapshot(index=index, arrays=arrays, state=state))


def reset(values: dict[str, Any], **changes: Any) -> None:
    values.update(changes)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda arrays, state: reset(state, variables=state["variables"][1:]),
            "weights are of another network: variable 'ppo2_model/pi/c1/w:0'",
        ),
        (
            lambda arrays, state: reset(
                arrays, **{"adam_v/ppo2_model/vf/b:0": np.zeros((1, 1), np.float32)}
            ),
            "adam_v are of another network: variable 'ppo2_model/vf/b:0'",
        ),
        (lambda arrays, state: reset(arrays, adam_powers=np.zeros(1)), "state of the optimizer"),
        (
            lambda arrays, state: reset(
                arrays, **{"weights/ppo2_model/vf/b:0": np.full(1, np.nan, np.float32)}
            ),
            "not finite",
        ),
        (lambda arrays, state: reset(state, random={"policy": {}}), "random stream 'policy'"),
        (lambda arrays, state: reset(state, random=[]), "random stream 'minibatches'"),
        (lambda arrays, state: reset(state, games=state["games"][:1]), "1 open games, the run"),
        (lambda arrays, state: reset(state, logs={"logs/log.txt": True}), "are no sizes"),
        (lambda arrays, state: reset(state, logs=[]), "are no sizes"),
        (lambda arrays, state: reset(state, recent=[{}]), "not of a training run"),
    ],
)
def test_a_forged_checkpoint_is_found(
    change: Callable[[dict[str, Any], dict[str, Any]], object], said: str, patient: Path
) -> None:
    forged(patient / NEWEST, change)
    bad = not_ok(patient)
    assert set(bad) == {NEWEST}
    assert said in bad[NEWEST][1]


def test_a_checkpoint_behind_the_end_of_the_run_is_found(patient: Path) -> None:
    forged(patient / NEWEST, lambda arrays, state: 6)
    said = "of update 6, the run has 5"
    assert not_ok(patient) == {"checkpoints/00000006": ("bad", said)}


def test_more_rows_than_updates_are_found(patient: Path) -> None:
    longer(patient, 3)
    assert "5 rows, the run has 3 updates" in not_ok(patient)["logs/progress.csv"][1]


def test_a_log_that_cannot_be_read_leaves_the_end_open(patient: Path) -> None:
    shutil.rmtree(patient / "checkpoints")
    lines(patient / "logs" / "progress.csv", lambda text: ["updates\n", "1\n"])
    bad = not_ok(patient)
    assert bad["logs/progress.csv"] == ("bad", "no column nupdates")
    (patient / "logs" / "progress.csv").unlink()
    bad = not_ok(patient)
    assert bad["."] == (
        "note",
        "a run directory: its log does not say how far the run has come",
    )
    assert bad["logs/progress.csv"] == ("bad", "missing")


def test_events_that_lack_rows_are_found(patient: Path) -> None:
    shutil.rmtree(patient / "checkpoints")
    events = lone_events(patient)
    os.truncate(events, events.stat().st_size - 3)
    said = f"{events.name}: an unfinished last record; 4 steps, progress.csv has 5 rows"
    assert not_ok(patient) == {"tb": ("bad", said)}


def test_the_command_that_goes_on_names_the_runs_modules(patient: Path) -> None:
    longer(patient)
    change_json(patient / "config.json", extra_import=["my nets", "more"])
    said = not_ok(patient)["."][1]
    assert f"--output-dir {patient} --extra-import 'my nets' more goes on" in said


def test_a_config_without_its_protocol_is_a_note(patient: Path) -> None:
    change_json(patient / "config.json", protocol={})
    said = "no protocol in it: that of its env id is taken"
    assert not_ok(patient) == {"config.json": ("note", said)}


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(13, "Permission denied"), "cannot read it (Permission denied)"),
        (MemoryError(), "more than the memory holds"),
        (ZeroDivisionError("division by zero"), "cannot be read (ZeroDivisionError: division"),
    ],
)
def test_whatever_fails_is_a_finding(
    error: Exception, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> None:
        raise error

    path = make_run(tmp_path / "01")
    monkeypatch.setattr("fl_saliency.experiments.doctor.run.read_model", fail)
    status, told = not_ok(path)["model.pkl"]
    assert status == "bad"
    assert told.startswith(said)


def test_a_file_of_terabytes_is_not_read(patient: Path) -> None:
    for name in ("logs/progress.csv", "logs/log.txt", "results.json", "saliency.csv", "curve.png"):
        os.truncate(patient / name, 1 << 40)
        assert "more than the" in not_ok(patient)[name][1]


def test_what_the_original_leaves_of_a_gaze_score_is_whole(specimen: Path, tmp_path: Path) -> None:
    shutil.copy(specimen / "saliency.pkl", tmp_path)
    assert not_ok(tmp_path) == {}
    records = pickle.loads((tmp_path / "saliency.pkl").read_bytes())
    records[0]["metrics"]["nss"] = records[0]["metrics"]["nss"][:-1]
    (tmp_path / "saliency.pkl").write_bytes(pickle.dumps(records))
    said = "metrics of different lengths"
    assert not_ok(tmp_path) == {"saliency.pkl": ("bad", said)}
    (tmp_path / "saliency.json").write_text('{"trials": []}')
    (tmp_path / "saliency.csv").write_text("trial,decision,frame,n_fixations,nss,kldiv,sauc\n")
    assert set(not_ok(tmp_path)) == {"saliency.pkl", "saliency.png"}


def test_an_eval_pkl_that_is_a_list_is_found(tmp_path: Path) -> None:
    (tmp_path / "eval.pkl").write_bytes(pickle.dumps([1, 2]))
    assert not_ok(tmp_path)["eval.pkl"] == ("bad", "expected a dict of arrays")


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda d: f"{d.part}: {d.what}")
def test_damage_is_found_in_its_part_and_nowhere_else(
    damage: Damage, patient: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    damage.harm(patient)
    before = contents(patient)
    assert doctor.main([str(patient)]) == 1
    printed = capsys.readouterr().out.splitlines()
    bad = [line for line in printed if line.startswith("bad ")]
    assert len(bad) == 1, bad
    assert bad[0].split()[1] == damage.part
    assert damage.said in bad[0]
    assert printed[-1] == f"{patient}: 1 problem"
    assert contents(patient) == before


def test_a_log_without_checkpoints_is_compared_with_tensorboard(patient: Path) -> None:
    shutil.rmtree(patient / "checkpoints")
    assert set(not_ok(patient)) == set()
    with (patient / "logs" / "progress.csv").open() as file:
        rows = file.readlines()
    (patient / "logs" / "progress.csv").write_text("".join(rows[:-2]))
    said = "3 rows, tb has 5 steps"
    assert not_ok(patient)["logs/progress.csv"] == ("bad", said)


def test_videos_of_two_lengths_blame_the_shorter(patient: Path) -> None:
    text = found(patient)["perception.mkv"].text
    short_video(patient / "perception.mp4")
    said = f"1 frames, the other video has {text.split()[0]}"
    assert not_ok(patient) == {"perception.mp4": ("bad", said)}


FILES = [
    "config.json",
    "model.pkl",
    "checkpoints/00000005/state.json",
    "logs/log.txt",
    "logs/progress.csv",
    "logs/0.0.monitor.csv",
    "curve.png",
    "results.json",
    "eval.pkl",
    "perception.mkv",
    "saliency.pkl",
    "saliency.json",
    "saliency.csv",
]


@pytest.mark.parametrize("kind", ["pipe", "folder", "nowhere"])
def test_what_is_no_file_is_not_waited_for(kind: str, patient: Path) -> None:
    for name in [*FILES, f"tb/{lone_events(patient).name}"]:
        path = patient / name
        path.unlink()
        if kind == "pipe":
            os.mkfifo(path)
        elif kind == "folder":
            path.mkdir()
        else:
            path.symlink_to("nowhere")
    (patient / ".lock").symlink_to(patient / "curve.png")
    bad = not_ok(patient)
    for name in FILES:
        assert bad[name.removesuffix("/state.json")][0] == "bad"
    assert bad["tb"][0] == "bad"


def test_no_flipped_byte_raises(specimen: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    names = sorted(path.relative_to(specimen) for path in specimen.rglob("*") if path.is_file())
    names = [name for name in names if name.suffix != ".mp4"]  # decoding takes its time
    for attempt in range(12):
        path = shutil.copytree(specimen, tmp_path / str(attempt))
        for name in names:
            data = bytearray((path / name).read_bytes())
            data[rng.integers(len(data))] ^= 1 << rng.integers(8)
            (path / name).write_bytes(data)
        bad = {finding.part for finding in examine(path) if finding.status == "bad"}
        assert bad >= {"checkpoints/00000005", "curve.png", "saliency.png", "tb"}
        shutil.rmtree(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[" * 100_000, "not strict JSON"),
        ('{"rewards": 1e999}', "'lengths' is missing"),
        ("[]", "expected an object"),
        (
            '{"rewards": [1e999], "lengths": [1], "elapsed_time": [1], "done_per_env": [1]}',
            "'rewards' is no list of numbers",
        ),
        (
            '{"rewards": [true], "lengths": [1], "elapsed_time": [1], "done_per_env": [1]}',
            "'rewards' is no list of numbers",
        ),
        ('{"rewards": "\\u001b[2J", "lengths": 1}', "missing"),
    ],
)
def test_hostile_results_are_a_finding(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(text)
    status, told = not_ok(tmp_path)["results.json"]
    assert status == "bad"
    assert said in told
    assert len(told) <= 300


def test_the_originals_results_are_whole(tmp_path: Path) -> None:
    results = {"rewards": [1.0], "lengths": [7], "elapsed_time": [0.5], "done_per_env": [1]}
    write_json(tmp_path / "results.json", results)
    (tmp_path / "eval.pkl").write_bytes(
        pickle.dumps({name: np.asarray(values) for name, values in results.items()})
    )
    assert not_ok(tmp_path) == {}


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "no such folder"),
        (lambda path: path.write_text(""), "cannot read it (Not a directory)"),
        (lambda path: path.mkdir(), "expected a run directory"),
        (lambda path: make_run(path / "a" / "01"), "did you mean"),
    ],
)
def test_what_is_none_of_ours_is_an_input_error(
    make: Callable[[Path], object], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "x"
    make(path)
    with pytest.raises(InputError) as caught:
        examine(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
