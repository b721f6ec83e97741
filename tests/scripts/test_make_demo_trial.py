import hashlib
from pathlib import Path

import numpy as np
import pytest

from fl_saliency.atari_head.reader import find_trials, open_trial
from scripts.make_demo_trial import BLINKS, FRAMES, LOOKS_AWAY, MISSING, write_trial

BUNDLED = Path(__file__).parents[2] / "demo" / "atari_head"


def hashes(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def opened(folder: Path):
    (ref,) = find_trials(folder, "breakout")
    return open_trial(ref)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo") / "atari_head"
    write_trial(folder)
    return folder


def test_the_script_writes_the_same_bytes_again(made, tmp_path):
    write_trial(tmp_path)
    assert hashes(tmp_path) == hashes(made)


def test_the_bundled_trial_is_what_the_script_writes(made):
    bundled, again = hashes(BUNDLED), hashes(made)
    assert bundled.keys() == again.keys()
    # PNG files differ between versions of OpenCV; what is in them does not.
    archives = {name for name in bundled if name.endswith(".tar.bz2")}
    assert {k: v for k, v in bundled.items() if k not in archives} == {
        k: v for k, v in again.items() if k not in archives
    }
    with opened(BUNDLED) as old, opened(made) as new:
        for (number, frame), (other, twin) in zip(old.frames(), new.frames(), strict=True):
            assert number == other
            np.testing.assert_array_equal(frame, twin)


def test_the_bundled_trial_is_small_and_says_that_it_is_synthetic():
    files = [path for path in BUNDLED.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 300_000
    assert "synthetic" in (BUNDLED / "README.md").read_text()
    assert "SYNTHETIC" in (BUNDLED / "meta_data.csv").read_text()
    (ref,) = find_trials(BUNDLED, "breakout")
    assert "SYNTHETIC" in ref.name
    assert ref.subject == "SYNTHETIC"


def test_the_bundled_trial_has_the_oddities_of_real_ones():
    with opened(BUNDLED) as trial:
        audit = trial.audit
    assert (audit.expected, audit.frames, audit.labels) == (FRAMES, FRAMES - 3, FRAMES)
    assert audit.missing == audit.labels_without_frame == len(MISSING)
    assert audit.null_gaze == audit.low_samples == sum(map(len, BLINKS))
    assert audit.out_of_bounds is not None
    assert audit.out_of_bounds >= 10 * sum(map(len, LOOKS_AWAY))
    assert (audit.duplicates, audit.foreign, audit.malformed) == (0, 0, 0)


def test_the_gaze_follows_the_ball():
    distances = []
    with opened(BUNDLED) as trial:
        for number, frame in trial.frames():
            field = (frame[96:188, 8:152] == (200, 72, 72)).all(axis=-1)
            if field.any() and len(trial.gaze[number]):
                rows, columns = np.nonzero(field)
                ball = np.array([columns.mean() + 8, rows.mean() + 96])
                distances.append(np.linalg.norm(trial.gaze[number].mean(axis=0) - ball))
    assert len(distances) > 200
    assert np.median(distances) < 8
