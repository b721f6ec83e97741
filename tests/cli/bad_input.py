"""The bad input matrix: what can be wrong about a command's options and files, and what is said.

`scripts/reliability_table.py` writes it into docs/reliability.md; test_bad_input.py runs every row.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.atari_head import makers
from tests.atari_head.zenodo import RECORD, FakeZenodo
from tests.cli import bad_files as made
from tests.cli.bad_files import HTML, LFS, LONG, Build
from tests.cli.bad_laboratory import (
    benchmark_methods,
    intervene_files,
    intervene_options,
    saliency_rows,
    sanity_rows,
)
from tests.cli.bad_rows import (
    HUGE,
    NOT_FOUND,
    BadInput,
    choices,
    extra_imports,
    full_output_dir,
    not_numbers,
    out_of_range,
    output_dirs,
    row,
    run_directories,
    run_file,
    usage,
)

__all__ = ["BASE", "EXEMPT", "ROWS", "BadInput"]


BASE: dict[str, tuple[str, ...]] = {
    "": (),
    "train": (
        *("--output-dir", "out", "--network", "cnn_daqn", "--env-workers", "0"),
        *("--num-envs", "2", "--num-steps", "8", "--num-timesteps", "16"),
    ),
    "run": (
        *("--experiment-dir", "run", "--output-dir", "out", "--env-workers", "0"),
        *("--num-env", "1", "--max-eplen", "50", "--allow-protocol-mismatch"),
    ),
    "benchmark": ("--experiment-dir", "run", "--atari-head-dir", "gaze", "--output-dir", "out"),
    "saliency": (
        *("--experiment-dir", "run", "--output-dir", "out"),
        *("--methods", "gradient", "--steps", "2"),
    ),
    "intervene": (
        *("--experiment-dir", "run", "--output-dir", "out"),
        *("--ram", "99=60", "--at", "5", "--steps", "2"),
    ),
    "sanity": (
        *("run", "--output-dir", "out"),
        *("--methods", "gradient", "--states", "2", "--every", "2"),
    ),
    "networks": (),
    "data": (),
    "data atari-head": ("--game", "breakout", "--output-dir", "out", "--record", str(RECORD)),
    "data audit": ("--atari-head-dir", "gaze"),
    "doctor": (),
}
"""Words that make each command right, but for what a row changes."""

_SWITCH = "a switch, which takes no value: the rows of `fls train --progress` stand for all"
EXEMPT: dict[tuple[str, str], str] = {
    ("train", "resume"): _SWITCH,
    ("run", "overwrite"): _SWITCH,
    ("run", "raw_obs"): _SWITCH,
    ("run", "processed_obs"): _SWITCH,
    ("run", "video_recorder"): _SWITCH,
    ("run", "allow_protocol_mismatch"): _SWITCH,
    ("run", "progress"): _SWITCH,
    ("benchmark", "processed_obs"): _SWITCH,
    ("benchmark", "progress"): _SWITCH,
    ("benchmark", "overwrite"): _SWITCH,
    ("saliency", "overwrite"): _SWITCH,
    ("saliency", "progress"): _SWITCH,
    ("intervene", "keep"): _SWITCH,
    ("intervene", "overwrite"): _SWITCH,
    ("intervene", "progress"): _SWITCH,
    ("sanity", "run"): "an argument without a name: the rows of --experiment-dir stand for it",
    ("sanity", "overwrite"): _SWITCH,
    ("sanity", "progress"): _SWITCH,
    ("networks", "json"): _SWITCH,
    ("doctor", "directories"): "an argument without a name: the rows of DIR stand for it",
}
"""(command, field of its config) that needs no row -> why."""

# --- the protocol's flags, of `fls train` and `fls run` -----------------------------------------


def protocol_flags(command: str, *files: Build) -> Iterator[BadInput]:
    whole = "frame-skip noop-max max-frames env-workers"
    yield from not_numbers(command, whole=whole, numbers="repeat-action-probability")
    yield from out_of_range(command, "env-workers", "-1", "0 or more")
    for name in ("fire-reset", "episodic-life", "clip-rewards", "full-action-set"):
        yield from choices(command, name, "true", "True", "False, True")
    probability = "expected 0 or more and less than 1"
    for name, value, said in (
        ("frame-skip", "0", "expected 1 or more"),
        ("frame-skip", "-4", "expected 1 or more"),
        ("noop-max", "-1", "expected 0 or more"),
        ("max-frames", "0", "expected more than noop_max, 30"),
        ("max-frames", "-1", "expected more than noop_max, 30"),
        *(("repeat-action-probability", value, probability) for value in ("-0.1", "1.0", "nan")),
    ):
        said = f"protocol: {name.replace('-', '_')} {value}: {said}"
        yield row(command, "out of range", said, f"--{name}", value, files=files)
    said = f"protocol: noop_max {HUGE}: expected at most 10000"
    yield row(command, "out of range", said, "--noop-max", HUGE, files=files)


# --- fls train ----------------------------------------------------------------------------------


def train_options() -> Iterator[BadInput]:
    yield from usage("train", "--num-env", "--num-envs")
    for value in ("no", "1"):
        said = f"unexpected argument {value!r}"
        yield row("train", "a value for a switch", said, f"--progress={value}")
    yield from protocol_flags("train")
    whole = "num-envs num-steps num-minibatches num-epochs train-seed num-timesteps"
    yield from not_numbers("train", whole=whole)
    sizes = "num-envs num-steps num-minibatches num-epochs"
    yield from out_of_range("train", sizes, "0 -1", "at least 1")
    yield from out_of_range("train", "num-minibatches", f"5 {HUGE}", "a divisor of the batch, ...")
    yield from out_of_range(
        "train", "num-timesteps", "0 -1 15", "at least one update, 16 timesteps"
    )
    seeds = f"-1 {2**31} {HUGE}"
    yield from out_of_range("train", "train-seed", seeds, "a seed from 0 to 2147483647")
    said = "--num-timesteps 16: expected at least one update, ..."
    yield row("train", "more than all timesteps", said, "--num-steps", HUGE)
    yield from out_of_range("train", "num-envs", f"4097 {HUGE}", "at most 4096")
    yield from not_numbers("train", numbers="checkpoint-minutes")
    minutes = "0 or more (0: at every update)"
    yield from out_of_range("train", "checkpoint-minutes", "-0.5 nan inf", minutes)
    yield from hyper_parameters()
    yield from choices("train", "lr-schedule", "linaer", "linear", "constant, linear")
    yield from choices("train", "precision", "bfloat", "bfloat16", "bfloat16, float32")
    yield from env_names()
    for value, said in (
        ("", "choose one of: cnn, cnn_daqn, ..."),
        ("cnn_spars_fls", "did you mean 'cnn_sparse_fls'?"),
        ("a\nb", "choose one of: cnn, cnn_daqn, ..."),
    ):
        said = f"unknown network {value!r}; {said}"
        yield row("train", "no network", said, "--network", value)
    yield from output_dirs("train")
    yield full_output_dir("train")
    yield from extra_imports("train")
    words = ("--num-steps", str(10**12), "--num-timesteps", str(10**13))
    yield row("train", "beyond the memory", "not enough memory (...)", *words, status=1)


def hyper_parameters() -> Iterator[BadInput]:
    coefficients = "entropy-coef value-coef"
    positive = "max-grad-norm learning-rate clip-range adam-epsilon"
    yield from not_numbers("train", numbers=f"gamma gae-lambda {coefficients} {positive}")
    yield from out_of_range("train", "gamma gae-lambda", "-0.1 1.1 nan inf", "from 0 to 1")
    yield from out_of_range("train", coefficients, "-0.1 nan -inf", "0 or more")
    yield from out_of_range("train", positive, "0.0 -0.1 nan -inf", "more than 0")
    for name in f"{coefficients} {positive}".split():
        for value in ("inf", "1e+39"):
            yield row(
                "train",
                "more than float32 holds",
                f"--{name} {value}: expected ...",
                *(f"--{name}", value),
            )


def env_names() -> Iterator[BadInput]:
    use = "use 'BreakoutNoFrameskip-v4' or 'ALE/Breakout-v5'"
    for value, said in (
        ("", "unknown env id ''; expected <Game>NoFrameskip-v4 or ALE/<Game>-v5, ..."),
        ("Breakot", "unknown env id 'Breakot'; did you mean 'ALE/Breakout-v5'?"),
        ("BreakoutNoFrameskip-v5", f"unknown env id 'BreakoutNoFrameskip-v5'; {use}"),
        ("ALE/Breakout-v4", f"unknown env id 'ALE/Breakout-v4'; {use}"),
        ("Breakout-v4", f"env id 'Breakout-v4' skips frames by itself: ...; {use}"),
        ("BreakoutDeterministic-v4", f"env id 'BreakoutDeterministic-v4' skips frames ...; {use}"),
        ("ALE/Combat-v5", "unknown env id 'ALE/Combat-v5'; ..."),
        ("a\nb", r"unknown env id 'a\nb'; expected <Game>NoFrameskip-v4 or ALE/<Game>-v5, ..."),
    ):
        yield row("train", "no env id, or none to train in", said, "--env-name", value)


# --- run directories, of `fls run` and `fls benchmark` ------------------------------------------


def config_texts(command: str) -> Iterator[BadInput]:
    path = "run/config.json"
    for wrong, build, said in (
        ("missing", made.no_config, f": {NOT_FOUND}"),
        ("a folder", made.config_folder, ": expected a file, found a folder or a device"),
        ("empty", made.config_text(""), ", line 1: not valid JSON (expecting value)"),
        (
            "no JSON",
            made.config_text("{'a': 1}"),
            ", line 1: not valid JSON (expecting property name ...)",
        ),
        (
            "cut off",
            made.config_text('{"env_name":\n "B'),
            ", line 2: not valid JSON (unterminated string ...)",
        ),
        ("a web page", made.config_text(HTML), ", line 1: not valid JSON (expecting value)"),
        ("a list", made.config_text("[]"), ": expected an object, found a list"),
        ("null", made.config_text("null"), ": expected an object, found null"),
        ("NaN", made.config_text("NaN"), ": expected an object, found a number"),
        ("nested without end", made.config_text("[" * 100_000), ": cannot read it (not JSON text)"),
        ("no text", made.config_text(b"\xff\xfe\x00"), ": cannot read it (not JSON text)"),
        (
            "a number of 5000 digits",
            made.config_text("1" * 5000),
            ": cannot read it (not JSON text)",
        ),
        (
            "above 1 MiB",
            made.config_text(" " * 1048577),
            ": 1048577 bytes, more than the 1048576 that it may have",
        ),
    ):
        yield run_file(command, f"config.json: {wrong}", path + said, build)


def config_entries(command: str) -> Iterator[BadInput]:
    for changes, said in (
        ({"env_name": None, "network": None}, "'env_name' and 'network' missing"),
        ({"network": None}, "'network' missing"),
        ({"env_name": " "}, "'env_name' is empty"),
        ({"network": ""}, "'network' is empty"),
        ({"network": ["cnn"]}, "'network' is a list, expected a text"),
        ({"env_name": float("nan")}, "'env_name' is a number, expected a text"),
        ({"train_seed": "1"}, "'train_seed' is a text, expected a whole number"),
        ({"train_seed": True}, "'train_seed' is true or false, expected a whole number"),
        ({"num_timesteps": 1e6}, "'num_timesteps' is a number, expected a whole number"),
        ({"extra_import": "nets"}, "'extra_import' is a text, expected a list"),
        ({"versions": []}, "'versions' is a list, expected an object"),
        ({"protocol": "v4"}, "'protocol' is a text, expected an object"),
    ):
        wrong = ", ".join(f"{key} {_shown(value)}" for key, value in changes.items())
        build = made.config(**changes)
        yield run_file(command, f"config.json: {wrong}", f"run/config.json: {said}", build)
    said = "run/config.json: unknown network 'cnn_dqn'; did you mean 'cnn_daqn'?"
    yield run_file(command, "config.json: unknown network", said, made.config(network="cnn_dqn"))


def _shown(value: Any) -> str:
    return "missing" if value is None else f"is {value!r}"


def protocol_entries() -> Iterator[BadInput]:
    """What can be wrong about the protocol in a config.json."""
    for changes, said in (
        ({"frame_ship": 4}, "unknown protocol field 'frame_ship'; did you mean 'frame_skip'?"),
        ({"game": "breakot"}, "unknown game 'breakot'; did you mean 'breakout'?"),
        (
            {"game": "pong"},
            "protocol: env_id 'BreakoutNoFrameskip-v4' and game 'pong' name two games",
        ),
        (
            {"env_id": "ALE/Pong-v5", "game": "pong"},
            "env_name 'BreakoutNoFrameskip-v4' and protocol (pong) name two games",
        ),
        ({"frame_skip": "4"}, "protocol: frame_skip '4': expected int"),
        ({"frame_skip": True}, "protocol: frame_skip True: expected int"),
        ({"frame_skip": 0}, "protocol: frame_skip 0: expected 1 or more"),
        ({"noop_max": -1}, "protocol: noop_max -1: expected 0 or more"),
        ({"fire_reset": "yes"}, "protocol: fire_reset 'yes': expected bool"),
        (
            {"repeat_action_probability": float("nan")},
            "protocol: repeat_action_probability nan: expected ...",
        ),
        ({"max_pool": "max"}, "unknown max_pool 'max'; choose one of: grey, rgb"),
        ({"stall_frames": 0}, "protocol: stall_frames 0: expected 1 or more"),
        ({"size": 42}, "protocol: observations of (42, 42, 4), expected (84, 84, 4)"),
        ({"stack": 1}, "protocol: observations of (84, 84, 1), expected (84, 84, 4)"),
    ):
        key, value = next(iter(changes.items()))
        wrong = f"config.json: protocol: {key} is {value!r}"
        yield run_file("run", wrong, f"run/config.json: {said}", made.protocol(**changes))
    said = "run/config.json: protocol: game is missing"
    build = made.config(protocol={"env_id": "BreakoutNoFrameskip-v4"})
    yield run_file("run", "config.json: protocol: no game", said, build)
    for value in ("PongNoFrameskip-v4", "a\nb\x1b[31m"):
        wrong = f"config.json: protocol: env_id is {value!r}"
        said = "run/config.json: ..."
        yield run_file("run", wrong, said, made.protocol(env_id=value))


def huge_numbers() -> Iterator[BadInput]:
    """Numbers that the emulator's own types cannot hold."""
    for name, more in (("frame-skip", ()), ("noop-max", ("--max-frames", f"{HUGE}0"))):
        field = name.replace("-", "_")
        said = f"protocol: {field} {HUGE}: expected ..."
        words = (f"--{name}", HUGE, *more)
        yield row("run", "out of range", said, *words, files=(made.good_run,))
        changes = {field: 10**23} | ({"max_frames": 10**24} if more else {})
        wrong = f"config.json: protocol: {field} is {HUGE}"
        yield run_file("run", wrong, f"run/config.json: {said}", made.protocol(**changes))
    for value in (HUGE, str(10**11)):
        said = f"--num-env {value}: expected ..."
        words = ("--num-env", value)
        yield row("run", "beyond the memory", said, *words, files=(made.good_run,))


def model_files(command: str) -> Iterator[BadInput]:
    for wrong, build, said in (
        ("missing", made.no_model, "no such file"),
        ("a folder", made.model_folder, "a folder, expected a model file"),
        ("empty", made.model_bytes(""), "empty, expected a model file"),
        ("cut off", made.model_cut, "truncated or damaged: ..."),
        (
            "a web page",
            made.model_bytes(HTML),
            "an HTML page, not a model; the download went wrong",
        ),
        (
            "a Git-LFS pointer",
            made.model_bytes(LFS),
            "a git-LFS pointer, not the model itself; run 'git lfs pull'",
        ),
        (
            "a zip",
            made.model_bytes(b"PK\x03\x04"),
            "a zip archive (PyTorch, Keras or .npz?), not a joblib file",
        ),
        ("HDF5", made.model_bytes(b"\x89HDF\r\n\x1a\n"), "an HDF5 file, not a joblib file"),
        (
            "a text",
            made.model_bytes("hello"),
            "not a model file (expected a joblib file, binary pickle)",
        ),
        (
            "a pickle that runs code",
            made.model_that_runs_code,
            "refused: it asks for 'posix.system'; a model file holds arrays and containers only",
        ),
        ("a number", made.model_of(3), "holds a int, expected a dict (or list) of arrays"),
        ("without variables", made.model_of({}), "holds no variables"),
        (
            "a text for an array",
            made.model_of({"w": "x"}),
            "variable 'w' is a str, expected an array of floats",
        ),
        (
            "whole numbers",
            made.model_of([1, 2]),
            "variable 'number 0' is a int, expected an array of floats",
        ),
        ("a list too short", made.model_of([1.0]), "a list of 1 arrays, expected ..."),
        (
            "NaN in it",
            made.model_with_nan,
            "variable 'ppo2_model/pi/b:0' holds NaN or infinity; ...",
        ),
        ("another network's", made.config(network="cnn"), "...; is it a model of another network?"),
    ):
        yield run_file(command, f"model.pkl: {wrong}", f"run/model.pkl: {said}", build)


# --- fls run ------------------------------------------------------------------------------------


def run_options() -> Iterator[BadInput]:
    yield from usage("run", "--num-envs", "--num-env")
    yield row("run", "no run directory", "--experiment-dir is required", alone=True)
    yield from not_numbers("run", whole="num-env evals-per-env eval-seed max-eplen")
    yield from out_of_range("run", "num-env evals-per-env max-eplen", "0 -1", "1 or more")
    seeds = f"-1 {2**31} {HUGE}"
    yield from out_of_range("run", "eval-seed", seeds, "a seed from 0 to 2147483647")
    yield from protocol_flags("run", made.good_run)
    for wrong, said, words in (
        (
            "another protocol than the trained one",
            "the protocol differs from the trained one (repeat_action_probability: trained with "
            "0.0, used with 0.25); add --allow-protocol-mismatch to label and keep the results",
            ("--repeat-action-probability", "0.25", "--no-allow-protocol-mismatch"),
        ),
        (
            "actions that the model does not have",
            "the model has 4 actions, this protocol 18",
            ("--full-action-set", "True"),
        ),
    ):
        yield row("run", wrong, said, *words, files=(made.good_run,))
    yield from output_dirs("run", made.good_run)
    yield full_output_dir("run", made.good_run)
    files = (made.good_run, made.with_results)
    words = ("--output-dir", "run")
    yield row("run", "results of before", "run/results.json exists; ...", *words, files=files)
    yield from extra_imports("run", made.good_run)


def run_files() -> Iterator[BadInput]:
    yield from run_directories("run")
    yield from config_texts("run")
    yield from config_entries("run")
    said = "unknown env id 'BrakeoutNoFrameskip-v4'; did you mean 'BreakoutNoFrameskip-v4'?"
    said = f"run/config.json: {said}"
    build = made.config(env_name="BrakeoutNoFrameskip-v4")
    yield run_file("run", "config.json: unknown game", said, build)
    yield from protocol_entries()
    yield from huge_numbers()
    yield from model_files("run")
    said = "run/model.pkl: model has 4 actions, the game has 9"
    build = made.config(env_name="MsPacmanNoFrameskip-v4")
    yield run_file("run", "model.pkl: of another action count", said, build)


# --- Atari-HEAD, of `fls benchmark` and `fls data audit` ----------------------------------------


def gaze_folders(command: str, *files: Build) -> Iterator[BadInput]:
    for name, build, wrong, said in (
        ("nowhere", made.a_file, "no such folder", "nowhere: there is no such folder"),
        ("file", made.a_file, "a file for a folder", "file: it is a file"),
        ("empty", made.empty_folder, "a folder without data", "empty: it holds no meta_data.csv"),
        ("", made.a_file, "nothing for a folder", ".: it holds no meta_data.csv"),
    ):
        said = f"Atari-HEAD folder {said}"
        yield row(command, wrong, said, "--atari-head-dir", name, files=(*files, build))
    files = (*files, made.good_gaze)
    said = "...: File name too long"
    words = ("--atari-head-dir", LONG)
    yield row(command, "a name that is too long", said, *words, files=files)
    path = "gaze/meta_data.csv: "
    for wrong, build, said in (
        ("missing", made.no_meta, "Atari-HEAD folder gaze: it holds no meta_data.csv"),
        ("empty", made.meta(""), f"{path}expected CSV, found an empty file"),
        ("a web page", made.meta(HTML), f"{path}expected CSV, found an HTML or XML page"),
        ("a Git-LFS pointer", made.meta(LFS), f"{path}expected CSV, found a Git LFS pointer"),
        ("a zip", made.meta(b"PK\x03\x04"), f"{path}expected CSV, found a zip archive"),
        (
            "no text",
            made.meta(b"\xff\xfe\x00\x1b[31m"),
            f"{path}expected the columns ...; found ...",
        ),
        ("other columns", made.meta("a,b\n1,2\n"), f"{path}expected the columns ...; found a, b"),
        (
            "a cell without end",
            made.meta(_ENDLESS),
            f"{path}cannot be read as CSV (field larger than ...)",
        ),
        ("no trial", made.meta(makers.FLAT_META), "Atari-HEAD folder gaze: it holds no trial..."),
    ):
        yield row(command, f"meta_data.csv: {wrong}", said, files=(*files, build))
    path = "gaze/breakout.zip: "
    outside = makers.zip_bytes([("../out.txt", b"")])
    for wrong, build, said in (
        ("empty", made.game_zip(b""), "damaged or truncated archive (File is not a zip file)"),
        (
            "a web page",
            made.game_zip(HTML.encode()),
            "damaged or truncated archive (File is not a zip file)",
        ),
        (
            "../ in it",
            made.game_zip(outside),
            "member '../out.txt' leads out of the archive's folder",
        ),
    ):
        yield row(command, f"breakout.zip: {wrong}", path + said, files=(*files, build))


_ENDLESS = 'Game,TrialNumber,NumberOfFrames\n"' + "x" * 200_000


def broken_trials(command: str, *files: Build) -> Iterator[BadInput]:
    """Trials that cannot be used: the job fails, and names the first."""
    for wrong, build, said in (*bad_labels(), *bad_frames()):
        builds = (*files, made.good_gaze, build)
        said = f"trial 7_RZ_42_... (breakout): {said}"
        yield row(command, f"a trial's {wrong}", said, files=builds, status=1)


def bad_labels() -> Iterator[tuple[str, Build, str]]:
    yield "labels: missing", made.no_labels, "its label file cannot be found"
    for wrong, content, said in (
        ("empty", "", "expected frame labels, found an empty file"),
        ("only a header", makers.HEADER, "expected frame labels, found only a header"),
        ("a web page", HTML, "1 of 1 rows are no labels; line 1: ..."),
        ("no text", b"\xff\x00" * 99, "1 of 1 rows are no labels; line 1: ..."),
        ("of other frames", _OTHERS, "none of its rows belongs to a frame of the archive"),
    ):
        yield f"labels: {wrong}", made.labels(content), f"gaze/7_RZ_42_....txt: {said}"


def bad_frames() -> Iterator[tuple[str, Build, str]]:
    yield "frames: missing", made.no_archive, "its archive cannot be found"
    frame, small = (makers.png(makers.picture(1, *size)) for size in ((210, 160), (84, 84)))
    cut = _tar(*makers.frame_files([1, 2]))[:-20]
    wanted = "expected a tar or zip archive, found"
    for wrong, build, said in (
        ("empty", made.archive(""), f"{wanted} an empty file"),
        ("a web page", made.archive(HTML), f"{wanted} an HTML or XML page"),
        ("a Git-LFS pointer", made.archive(LFS), f"{wanted} a Git LFS pointer"),
        ("cut off", made.archive(cut), "damaged or truncated archive (...)"),
        ("none", made.archive(_tar()), "holds no frame RZ_42_<n>.png"),
        (
            "../ in a name",
            made.archive(_tar(("../RZ_42_1.png", frame))),
            "member '../RZ_42_1.png' leads out of the archive's folder",
        ),
        ("a link", made.link_archive, f"{_FRAME} is neither a plain file nor a folder"),
        ("no picture", made.archive(_tar(("RZ_42_1.png", b"x"))), f"{_FRAME} is no PNG file"),
        (
            "of another size",
            made.archive(_tar(("RZ_42_1.png", small))),
            f"{_FRAME} is 84x84 pixels, expected 160x210",
        ),
    ):
        yield f"frames: {wrong}", build, f"gaze/7_RZ_42_....tar.bz2: {said}"
    said = "frame 3: gaze/7_RZ_42_.../RZ_42_3.png: is no PNG file"
    yield "frames: one is damaged", made.damaged_frame, said


_FRAME = "member 'RZ_42_1.png'"
_OTHERS = makers.label_text([makers.label_row(n) for n in (50, 51)])


def _tar(*files: tuple[str, bytes]) -> bytes:
    return makers.tar_bytes(files)


# --- fls benchmark ------------------------------------------------------------------------------


def benchmark_rows() -> Iterator[BadInput]:
    yield from usage("benchmark", "--eval-sead", "--eval-seed")
    said = "--experiment-dir and --atari-head-dir are required"
    yield row("benchmark", "neither folder", said, alone=True)
    yield from not_numbers("benchmark", whole="eval-seed")
    seeds = f"-1 {2**31} {HUGE}"
    yield from out_of_range("benchmark", "eval-seed", seeds, "a seed from 0 to 2147483647")
    yield from choices("benchmark", "gaze-alignment", "frame", "frames", "frames, original")
    for value in ("seven", "1.5", "", "7,8"):
        said = f"--trials {value!r}: expected whole numbers"
        yield row("benchmark", "no trial's number", said, "--trials", value)
    good = (made.good_run, made.good_gaze)
    for value in ("8", "0", HUGE):
        said = f"--trials {value}: no such trial of breakout in gaze; choose from: 7"
        yield row("benchmark", "a trial that is not there", said, "--trials", value, files=good)
    yield from run_directories("benchmark", made.good_gaze)
    yield from config_texts("benchmark")
    yield from config_entries("benchmark")
    said = "unknown Atari-HEAD game 'PongNoFrameskip-v4'; choose one of: alien, ..."
    build = made.config(env_name="PongNoFrameskip-v4")
    yield run_file("benchmark", "config.json: a game without gaze", said, build)
    said = "Atari-HEAD folder gaze: it holds no trial of ms_pacman"
    build = made.config(env_name="MsPacmanNoFrameskip-v4")
    yield run_file("benchmark", "config.json: a game without a trial", said, build)
    yield from model_files("benchmark")
    said = "method 'attention': network 'cnn' has no built-in attention; methods that ..."
    yield run_file("benchmark", "a network without attention", said, made.cnn_run)
    yield from benchmark_methods(*good)
    yield from gaze_folders("benchmark", made.good_run)
    yield from broken_trials("benchmark", made.good_run)
    yield from output_dirs("benchmark", *good)
    yield full_output_dir("benchmark", *good)
    files, words = (*good, made.with_results), ("--output-dir", "run")
    yield row(
        "benchmark", "results of before", "run/saliency.json exists; ...", *words, files=files
    )
    yield from extra_imports("benchmark", *good)


# --- fls networks, fls data ---------------------------------------------------------------------


def networks_rows() -> Iterator[BadInput]:
    yield from usage("networks", "--action", "--actions")
    yield from not_numbers("networks", whole="actions")
    yield from out_of_range("networks", "actions", f"0 -1 1001 {HUGE}", "from 1 to 1000")
    yield from extra_imports("networks")


def audit_rows() -> Iterator[BadInput]:
    yield from usage("data audit", "--games", "--game")
    yield row("data audit", "no folder", "--atari-head-dir is required", alone=True)
    yield from choices("data audit", "format", "jso", "json", "csv, json, text")
    for value, said in (
        ("", "unknown Atari-HEAD game ''; choose one of: alien, ..."),
        ("breakot", "unknown Atari-HEAD game 'breakot'; did you mean 'breakout'?"),
        ("alien", "Atari-HEAD folder gaze: it holds no trial of alien"),
    ):
        words = ("--game", value)
        yield row("data audit", "no game, or none here", said, *words, files=(made.good_gaze,))
    yield from gaze_folders("data audit")
    yield from broken_trials("data audit")


def download_rows() -> Iterator[BadInput]:
    command = "data atari-head"
    yield from usage(command, "--records", "--record")
    yield row(command, "no game, no folder", "--game and --output-dir are required", alone=True)
    for value, said in (
        ("", "unknown Atari-HEAD game ''; choose one of: alien, ..."),
        ("breakot", "unknown Atari-HEAD game 'breakot'; did you mean 'breakout'?"),
        ("BeamRider", "unknown Atari-HEAD game 'BeamRider'; choose one of: alien, ..."),
    ):
        yield row(command, "no game of Atari-HEAD", said, "--game", value)
    yield from not_numbers(command, whole="record")
    yield from out_of_range(command, "record", "0 -1", "the number of a Zenodo record")
    for url in ("", "zenodo", "http://zenodo.org", "ftp://zenodo.org", "https://a b", "https://["):
        said = f"URL {url!r}: expected https://... (http only on this machine)"
        yield row(command, "no address, or not https", said, "--base-url", url)
    yield from output_dirs(command, server=of_breakout)
    said = "out/meta_data.csv: it is not the file of the Zenodo record (size or md5 differ); ..."
    files = (made.foreign_download,)
    yield row(command, "a folder of another record", said, files=files, server=of_breakout)
    for wrong, server, said in (
        ("unknown", unknown_record, "... answered 404 Not Found"),
        ("of something else", foreign_record, "it holds no meta_data.csv, so it is no Atari-HEAD"),
        ("a web page", web_page, "... sent an HTML or XML page, expected JSON"),
        ("without a list of files", listless, "its list of files is not understood (...)"),
        ("../ in a file's name", hostile, "its list of files is not understood (...)"),
    ):
        said = f"Zenodo record {RECORD}: {said}"
        yield row(command, f"the Zenodo record: {wrong}", said, server=server, status=1)


def of_breakout(zenodo: FakeZenodo) -> None:
    zenodo.files["meta_data.csv"] = makers.FLAT_META.encode()
    zenodo.files["breakout.zip"] = makers.zip_bytes([])


def unknown_record(zenodo: FakeZenodo) -> None:
    zenodo.always["record"] = {"status": 404}


def foreign_record(zenodo: FakeZenodo) -> None:
    zenodo.files["thesis.pdf"] = b"%PDF"


def web_page(zenodo: FakeZenodo) -> None:
    zenodo.always["record"] = {"body": HTML.encode()}


def listless(zenodo: FakeZenodo) -> None:
    zenodo.always["record"] = {"body": b'{"files": 3}'}


def hostile(zenodo: FakeZenodo) -> None:
    of_breakout(zenodo)
    zenodo.files["../meta_data.csv"] = b""


def unknown_commands() -> Iterator[BadInput]:
    known = "choose one of: "
    for command, word, said in (
        ("", "trian", "did you mean 'train'?"),
        ("", "x", f"{known}..."),
        ("", "", f"{known}..."),
        ("", "--verbose", f"{known}..."),
        ("data", "audti", "did you mean 'audit'?"),
        ("data", "x", f"{known}atari-head, audit"),
        ("data", "", f"{known}atari-head, audit"),
    ):
        yield row(command, "an unknown command", f"unknown command {word!r}; {said}", word)


def resume_rows() -> Iterator[BadInput]:
    """A run that cannot go on, since it is another one or damaged."""
    said = "--num-steps 16: the run in out began with 8; a run goes on with its own settings (...)"
    words = ("--resume", "--num-steps", "16")
    yield row("train", "--resume with another setting", said, *words, files=(made.begun_run(),))
    for changes, said in (
        ({"gama": 0.9}, "out/config.json: unknown key 'gama'"),
        ({"gamma": "high"}, "out/config.json: 'gamma' is 'high', expected a number"),
        ({"num_envs": 2.5}, "out/config.json: 'num_envs' is 2.5, expected a whole number"),
        ({"num_envs": True}, "out/config.json: 'num_envs' is True, expected a whole number"),
        ({"gamma": 2}, "out/config.json: --gamma 2.0: expected from 0 to 1"),
        ({"lr_schedule": "up"}, "out/config.json: 'lr_schedule' is 'up', expected ..."),
    ):
        build = made.begun_run(**changes)
        wrong = f"--resume, and in config.json {json.dumps(changes)[1:-1]}"
        yield row("train", wrong, said, "--resume", files=(build,))
    said = "--output-dir out: expected a new or empty folder, found 'config.json' in it"
    yield row("train", "a folder with a run", said, files=(made.begun_run(),))


def doctor_rows() -> Iterator[BadInput]:
    yield row("doctor", "no folder named", "DIR: expected at least one run directory")
    yield row("doctor", "a folder that is not there", "nowhere: no such folder", "nowhere")
    yield row(
        "doctor",
        "a file for a folder",
        "run/config.json: no such folder",
        "run/config.json",
        files=(made.good_run,),
    )
    said = "gaze: expected a run directory (config.json, model.pkl) or results (...), found neither"
    yield row("doctor", "a folder of something else", said, "gaze", files=(made.good_gaze,))
    yield from choices("doctor", "format", "jsn", "json", "json, text")
    for item in extra_imports("doctor", made.good_run):
        yield replace(item, words=("run", *item.words))


ROWS: tuple[BadInput, ...] = (
    *unknown_commands(),
    *train_options(),
    *run_options(),
    *run_files(),
    *benchmark_rows(),
    *networks_rows(),
    *download_rows(),
    *audit_rows(),
    *resume_rows(),
    *doctor_rows(),
    *saliency_rows(),
    *intervene_options(),
    *intervene_files(),
    *sanity_rows(),
)
