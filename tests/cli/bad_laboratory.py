"""What can be wrong about the options of the saliency laboratory: saliency, intervene, sanity."""

from collections.abc import Iterator
from dataclasses import replace

from tests.cli import bad_files as made
from tests.cli.bad_files import Build
from tests.cli.bad_rows import (
    HUGE,
    BadInput,
    choices,
    extra_imports,
    full_output_dir,
    not_numbers,
    out_of_range,
    output_dirs,
    row,
    run_directories,
    usage,
)

__all__ = [
    "benchmark_methods",
    "intervene_files",
    "intervene_options",
    "method_options",
    "saliency_rows",
    "sanity_rows",
]


# --- fls saliency ---


def method_options(command: str) -> Iterator[BadInput]:
    """What saliency methods are told."""
    whole = "stride box fill samples ig-steps masks seed"
    yield from not_numbers(command, whole=whole, numbers="sigma blur-sigma noise")
    yield from out_of_range(command, "stride samples ig-steps", "0 -1", "1 or more")
    for name, values, expected in (
        ("stride", "85", "at most 84 pixels"),
        ("sigma", "0.0 -1.0 85.0 nan inf", "above 0, up to 84 pixels"),
        ("blur-sigma", "0.0 -1.0 85.0 nan inf", "above 0, up to 84 pixels"),
        ("box", "0 -1", "1 or more"),
        ("box", "4 85", "an odd number up to 84"),
        ("fill", "-1 256", "a grey level, 0 to 255"),
        ("noise", "0.0 1.5 nan", "above 0, up to 1"),
        ("masks", "0 -1", "1 or more"),
        ("masks", "1", "2 or more"),
        ("seed", f"-1 {2**31}", "a seed from 0 to 2147483647"),
    ):
        yield from out_of_range(command, name, values, expected)
    yield from choices(command, "channels", "maxx", "max", "max, mean, together")


def method_choices(command: str, *files: Build) -> Iterator[BadInput]:
    """Methods, targets and layers that there are not, or that do not go together."""
    for value, said in (
        ("valu", "unknown target 'valu'; did you mean 'value'?"),
        ("action:9", "target 'action:9': expected action:N with N from 0 to 3"),
        ("c3", "target 'c3': expected c3:N with N from 0 to 63"),
        ("value:1", "target 'value:1': expected 'value' alone"),
        (
            "policy",
            "method 'gradient' cannot explain target 'policy', only action or value or unit; "
            "methods that can: ...",
        ),
    ):
        yield row(command, "no such target", said, "--target", value, files=files)
    words = ("--methods", "gradcam", "--layer", "c33")
    said = "unknown layer 'c33'; did you mean 'c3'?"
    yield row(command, "a misspelt layer", said, *words, files=files)


def benchmark_methods(*files: Build) -> Iterator[BadInput]:
    """What is scored, and what the methods are told."""
    said = "unknown saliency method 'gradcm'; did you mean 'gradcam'?"
    yield row("benchmark", "a misspelt method", said, "--saliency", "gradcm")
    said = "unknown saliency method 'mean_gase'; did you mean 'mean_gaze'?"
    yield row("benchmark", "a misspelt baseline", said, "--saliency", "mean_gase")
    said = "no saliency method given; choose from: attention, ..."
    yield row("benchmark", "no method", said, "--saliency")
    said = "saliency method 'rise' is given twice"
    yield row("benchmark", "a method given twice", said, "--saliency", "rise", "rise")
    for value in ("yes", ""):
        said = f"--baselines: unknown value {value!r}; choose one of: False, True"
        yield row("benchmark", "neither True nor False", said, "--baselines", value)
    yield from method_options("benchmark")
    words = ("--saliency", "sarfa", "--target")
    said = "unknown target 'valu'; did you mean 'value'?"
    yield row("benchmark", "no such target", said, *words, "valu", files=files)
    said = "method 'sarfa' cannot explain target 'value', only action; methods that can: ..."
    yield row("benchmark", "another method's target", said, *words, "value", files=files)
    words = ("--saliency", "gradcam", "--layer", "c33")
    said = "unknown layer 'c33'; did you mean 'c3'?"
    yield row("benchmark", "a misspelt layer", said, *words, files=files)


def saliency_rows() -> Iterator[BadInput]:
    yield from usage("saliency", "--exprimnt-dir", "--experiment-dir")
    yield from not_numbers("saliency", whole="steps eval-seed trial fps")
    yield from out_of_range("saliency", "steps", f"0 -1 100001 {HUGE}", "1 to 100000")
    seeds = f"-1 {2**31} {HUGE}"
    yield from out_of_range("saliency", "eval-seed", seeds, "a seed from 0 to 2147483647")
    yield from choices("saliency", "preset", "procgn", "procgen", "procgen")
    said = "--atari-head-dir and --trial: expected both or none of them"
    yield row("saliency", "a trial of nowhere", said, "--trial", "7")
    yield row("saliency", "a folder without a trial", said, "--atari-head-dir", "gaze")
    said = "unknown saliency method 'gradcm'; did you mean 'gradcam'?"
    yield row("saliency", "a misspelt method", said, "--methods", "gradcm")
    said = "no saliency method given; choose from: attention, ..."
    yield row("saliency", "no method", said, "--methods")
    said = "saliency method 'rise' is given twice"
    yield row("saliency", "a method given twice", said, "--methods", "rise", "rise")
    yield from method_options("saliency")
    yield from overlay_options("saliency")
    run = made.good_run
    yield from method_choices("saliency", run)
    said = "method 'attention': network 'cnn' has no built-in attention; methods that ..."
    words = ("--methods", "attention")
    yield row("saliency", "a network without attention", said, *words, files=(run, made.cnn_run))
    words = ("--atari-head-dir", "gaze", "--trial", "8")
    said = "--trial 8: no such trial; choose from: 7"
    files = (run, made.good_gaze)
    yield row("saliency", "a trial that is not there", said, *words, files=files)
    yield from run_directories("saliency", run)
    yield from output_dirs("saliency", run)
    yield full_output_dir("saliency", run)
    yield from extra_imports("saliency", run)


def overlay_options(command: str) -> Iterator[BadInput]:
    yield from not_numbers(command, numbers="intensity smooth")
    said = "unknown --colour 'vridis'; did you mean 'viridis'?"
    yield row(command, "a misspelt colour", said, "--colour", "vridis")
    for name, values, expected in (
        ("intensity", "0.0 256.0 nan", "above 0, up to 255"),
        ("smooth", "-1.0 85.0 nan", "0 to 84 pixels"),
        ("fps", "0 1001", "1 to 1000"),
    ):
        yield from out_of_range(command, name, values, expected)


# --- fls intervene ---


def intervene_options() -> Iterator[BadInput]:
    """What can be wrong about an intervention's options; most is said before any file is read."""
    yield from usage("intervene", "--exprimnt-dir", "--experiment-dir")
    yield from not_numbers("intervene", whole="at steps eval-seed")
    yield from out_of_range("intervene", "at", "-1", "a decision, 0 or more")
    yield from out_of_range("intervene", "steps", f"0 -8 1001 {HUGE}", "1 to 1000")
    yield from out_of_range(
        "intervene", "eval-seed", "-1 2147483648", "a seed from 0 to 2147483647"
    )
    yield from choices("intervene", "actions", "sample", "sampled", "greedy, same, sampled")
    said = "nothing to change: expected --ram, --mask or --move, see --help"
    words = ("--experiment-dir", "run", "--at", "5")
    yield row("intervene", "no change", said, *words, alone=True)
    for option, value, wrong, said in _EDITS:
        shown = repr(value) if ": expected BYTE" in said or "in whole numbers" in said else value
        yield row("intervene", wrong, f"--{option} {shown}{said}", f"--{option}", value)
    said = "--keep: expected --mask or --move with it"
    yield row("intervene", "an option for pictures without a picture's edit", said, "--keep")
    said = "--fill: expected --mask or --move with it"
    yield row(
        "intervene", "an option for pictures without a picture's edit", said, "--fill", "0,0,0"
    )


_EDITS = (
    ("ram", "ball", "a text", ": expected BYTE=VALUE, BYTE+=VALUE or BYTE-=VALUE, such as 99=60"),
    ("ram", "", "nothing", ": expected BYTE=VALUE, BYTE+=VALUE or BYTE-=VALUE, such as 99=60"),
    ("ram", "99=-1", "out of range", ": expected BYTE=VALUE, BYTE+=VALUE or BYTE-=VALUE, ..."),
    ("ram", "128=1", "out of range", ": byte 128: expected 0 to 127"),
    ("ram", "99=256", "out of range", ": value 256: expected 0 to 255"),
    ("mask", "1,2,3", "too few numbers", ": expected X,Y,W,H in whole numbers, such as ..."),
    ("mask", "1,2,0,4", "nothing to mask", ": expected a width and a height of 1 or more"),
    (
        "move",
        "1,2,3,4",
        "too few numbers",
        ": expected X,Y,W,H,DX,DY in whole numbers, such as ...",
    ),
    ("move", "1,2,3,4,0,0", "a move to nowhere", ": expected DX or DY other than 0"),
    ("fill", "red", "no colour", ": expected R,G,B in whole numbers, such as 0,0,0"),
    ("fill", "0,0,256", "out of range", ": expected levels from 0 to 255"),
)
"""Option, value, what is wrong, what is said behind both."""


def intervene_files() -> Iterator[BadInput]:
    """What is found only with a run: its screen, its network, its game."""
    run = (made.good_run,)
    for option, value, said in (
        ("mask", "150,0,20,5", "expected it on the screen, 160 pixels wide and 210 high"),
        ("move", "1,1,5,5,-2,0", "to -1,1,5,5: expected it on the screen, ..."),
        ("move", "158,1,5,5,-9,0", "from 158,1,5,5: expected it on the screen, ..."),
    ):
        said = f"--{option} {value}: {said}"
        yield row("intervene", "off the screen", said, f"--{option}", value, files=run)
    said = "--at 9999: the game of --eval-seed 1000 ends at decision ... (game_over); ..."
    yield row("intervene", "a game that ends before", said, "--at", "9999", files=run)
    said = "--ram 99+=255: byte 99 is ... then and would be ...; expected 0 to 255"
    yield row("intervene", "a byte that overflows", said, "--ram", "99+=255", files=run)
    said = "unknown saliency method 'atention'; did you mean 'attention'?"
    yield row("intervene", "a misspelt choice", said, "--methods", "atention", files=run)
    said = "saliency method 'rise' is given twice"
    yield row("intervene", "a method given twice", said, "--methods", "rise", "rise", files=run)
    said = "unknown target 'valu'; did you mean 'value'?"
    words = ("--methods", "gradient", "--target", "valu")
    yield row("intervene", "a misspelt choice", said, *words, files=run)
    said = "method 'attention': ...; methods that can serve it: ..."
    yield row("intervene", "a network without attention", said, files=(*run, made.cnn_run))
    yield from run_directories("intervene", made.good_run)
    yield from output_dirs("intervene", made.good_run)
    yield full_output_dir("intervene", made.good_run)
    yield from extra_imports("intervene", made.good_run)


# --- fls sanity ---


def sanity_rows() -> Iterator[BadInput]:
    command, run = "sanity", made.good_run
    yield from usage(command, "--exprimnt-dir", "--experiment-dir")
    yield from not_numbers(command, whole="states every seed eval-seed")
    yield from out_of_range(command, "states", f"0 1 1001 {HUGE}", "2 to 1000")
    yield from out_of_range(command, "every", f"0 -1 10001 {HUGE}", "1 to 10000 decisions")
    seeds = f"-1 {2**31} {HUGE}"
    yield from out_of_range(command, "seed eval-seed", seeds, "a seed from 0 to 2147483647")
    said = "RUN: expected one run directory (or --experiment-dir instead)"
    yield row(command, "no run named", said, alone=True)
    yield row(command, "two runs named", said, "--experiment-dir", "run")
    said = "unknown saliency method 'gradcm'; did you mean 'gradcam'?"
    yield row(command, "a misspelt method", said, "--methods", "gradcm")
    said = "no saliency method given; choose from: attention, ..."
    yield row(command, "no method", said, "--methods")
    said = "saliency method 'rise' is given twice"
    yield row(command, "a method given twice", said, "--methods", "rise", "rise")
    said = "--methods centre: expected other methods; this baseline always comes along"
    yield row(command, "a baseline for a method", said, "--methods", "centre")
    said = "method 'attention': network 'cnn' has no built-in attention; methods that ..."
    words = ("--methods", "attention")
    yield row(command, "a network without attention", said, *words, files=(run, made.cnn_run))
    for item in run_directories(command):
        yield replace(item, words=(*item.words, "--output-dir", "out"), alone=True)
    yield from output_dirs(command, run)
    yield full_output_dir(command, run)
    yield from extra_imports(command, run)
