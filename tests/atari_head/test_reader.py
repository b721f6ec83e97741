import shutil
import tarfile
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from fl_saliency.atari_head.reader import (
    TrialError,
    audit_trials,
    find_all_trials,
    find_trials,
    open_trial,
)
from fl_saliency.errors import FileFormatError, InputError
from tests.atari_head.makers import (
    NAME,
    NEW_META,
    frame_files,
    label_row,
    label_text,
    member,
    picture,
    png,
    tar_bytes,
    write_flat,
    zip_bytes,
)

GOLDEN = Path(__file__).parents[1] / "golden" / "atari_head" / "trials"
FRAGMENT = Path(__file__).parents[3] / "shared" / "atari_head" / "fragment600"
BEST = "9_RZ_43_Feb-02-00-00-00"


def only(folder: Path, game: str = "breakout"):
    (ref,) = find_trials(folder, game)
    return ref


def problem(folder: Path) -> str:
    with pytest.raises(TrialError) as caught, open_trial(only(folder)):
        pass
    assert caught.value.exit_status == 1
    assert len(str(caught.value).splitlines()) == 1
    assert str(caught.value).startswith(f"trial {NAME} (breakout): ")
    return str(caught.value)


def new_files() -> dict[str, bytes]:
    """The files of record 3451402 for one game: a regular trial and one of the best player's."""
    return {
        f"breakout/{NAME}.tar.bz2": tar_bytes(frame_files([2, 1, 3])),
        f"breakout/{NAME}.txt": label_text([label_row(n) for n in (1, 2, 3)]).encode(),
        f"breakout/highscore/{BEST}.tar.bz2": tar_bytes(frame_files([5, 6], BEST, "RZ_43")),
        f"breakout/highscore/{BEST}.txt": label_text(
            [label_row(n, prefix="RZ_43") for n in (5, 6)]
        ).encode(),
    }


def new_meta(folder: Path) -> None:
    rows = (
        "breakout,7, R,0,1,3,1,1,1,1,0.60%,FALSE,20",
        "breakout_highscore,9,R,7,1,2,1,1,1,1,0%,TRUE,30",
    )
    (folder / "meta_data.csv").write_text("\n".join([NEW_META, *rows, ""]))


def write_zipped(folder: Path) -> None:
    (folder / "breakout.zip").write_bytes(zip_bytes(new_files().items()))


def write_unzipped(folder: Path) -> None:
    for name, data in new_files().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


def write_unpacked(folder: Path) -> None:
    write_unzipped(folder)
    for path in list(folder.rglob("*.tar.bz2")):
        with tarfile.open(path) as tar:
            tar.extractall(path.parent, filter="data")
        path.unlink()


def write_wrapped(folder: Path) -> None:
    """As some unzip tools do: in a folder named like the zip."""
    write_unzipped(folder / "Breakout")


LAYOUTS = [write_zipped, write_unzipped, write_unpacked, write_wrapped]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_newer_layout_is_read_zipped_and_unpacked(tmp_path, layout):
    new_meta(tmp_path)
    layout(tmp_path)
    regular, best = find_trials(tmp_path, "ALE/Breakout-v5")
    assert (regular.number, regular.name, regular.game) == (7, NAME, "breakout")
    assert (best.number, best.name, best.game) == (9, BEST, "breakout")
    assert (regular.highscore, best.highscore) == (False, True)
    assert (regular.num_frames, best.num_frames) == (3, 2)
    assert (regular.subject, regular.load_trial, best.load_trial) == ("R", 0, 7)
    assert (regular.fps, best.fps) == (20, 30)
    for ref, numbers in ((regular, [1, 2, 3]), (best, [5, 6])):
        with open_trial(ref) as trial:
            assert trial.frame_numbers.tolist() == numbers
            frames = list(trial.frames())
        assert [number for number, _ in frames] == numbers
        for number, frame in frames:
            np.testing.assert_array_equal(frame, picture(number), strict=True)


def test_the_flat_layout_tells_games_apart_by_meta_data(tmp_path):
    write_flat(tmp_path)
    (tmp_path / "8_RZ_50_Jan-01-00-00-00.txt").write_text("of a trial that meta_data.csv lacks")
    ref = only(tmp_path)
    assert ref.name == NAME
    assert ref.labels == tmp_path / f"{NAME}.txt"
    assert ref.archive == tmp_path / f"{NAME}.tar.bz2"
    assert (ref.num_frames, ref.highscore, ref.container, ref.absent) == (4, False, None, False)


def test_the_flat_layout_may_be_unpacked(tmp_path):
    write_flat(tmp_path)
    with tarfile.open(tmp_path / f"{NAME}.tar.bz2") as tar:
        tar.extractall(tmp_path, filter="data")
    archive = tmp_path / f"{NAME}.tar.bz2"
    assert only(tmp_path).archive == archive  # whole, as its folder may not be
    archive.unlink()
    with open_trial(only(tmp_path)) as trial:
        assert trial.frame_numbers.tolist() == [1, 2, 3, 4]


def test_files_on_disk_go_before_the_zip(tmp_path):
    new_meta(tmp_path)
    write_zipped(tmp_path)
    write_unzipped(tmp_path)
    refs = find_trials(tmp_path, "breakout")
    assert [ref.container for ref in refs] == [None, None]


def test_a_trial_that_meta_data_lacks_is_known_by_its_folder(tmp_path):
    (tmp_path / "meta_data.csv").write_text(f"{NEW_META}\nalien,1,R,0,1,3,1,1,1,1,0%,FALSE,20\n")
    write_unzipped(tmp_path)
    refs = find_trials(tmp_path, "breakout")
    assert [(ref.number, ref.num_frames, ref.highscore) for ref in refs] == [
        (7, None, False),
        (9, None, True),
    ]


def test_junk_of_archivers_is_passed_over(tmp_path):
    new_meta(tmp_path)
    files = {**new_files(), f"__MACOSX/breakout/{NAME}.txt": b"", f"breakout/._{NAME}.txt": b""}
    (tmp_path / "breakout.zip").write_bytes(zip_bytes(files.items()))
    assert [ref.name for ref in find_trials(tmp_path, "breakout")] == [NAME, BEST]


def test_the_members_of_a_trial_come_in_no_order_and_its_frames_in_theirs(tmp_path):
    write_flat(tmp_path, numbers=[30, 4, 101, 5])
    with open_trial(only(tmp_path)) as trial:
        assert [n for n, _ in trial.frames()] == trial.frame_numbers.tolist() == [4, 5, 30, 101]
        assert [n for n, _ in trial.frames()] == [4, 5, 30, 101]  # as often as one likes
        assert trial.audit.missing == 94


def test_frames_are_decoded_one_at_a_time(tmp_path):
    write_flat(tmp_path, numbers=range(1, 61))
    with open_trial(only(tmp_path)) as trial:
        next(trial.frames())
        tracemalloc.start()
        for _ in trial.frames():
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 5 * 210 * 160 * 3


def test_a_trial_leaves_no_file_behind(tmp_path, monkeypatch):
    import tempfile

    spool = tmp_path / "spool"
    spool.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spool))
    write_flat(tmp_path / "data")
    with open_trial(only(tmp_path / "data")) as trial:
        list(trial.frames())
    assert list(spool.iterdir()) == []


# Pitfall 66: everything odd in one recording.
def odd_recording(folder: Path) -> Path:
    rows = [
        label_row(1, "155.00,3.00,158.50,0.50"),  # the top right corner only
        label_row(2, "null"),
        label_row(3, "10.00,20.00,-21.00,30.00,5.00,419.00"),  # off screen
        label_row(3, "99.00,99.00"),  # a second row of the frame
        label_row(4),  # its frame is missing
        label_row(5, "159.99,209.99,160.00,100.00,100.00,210.00"),  # the edge
        label_row(8),  # beyond the last frame
    ]
    return write_flat(folder, numbers=[1, 2, 3, 5, 6], rows=rows, header=False)


def test_an_odd_recording_is_aligned_by_frame_number_and_audited(tmp_path):
    with open_trial(only(odd_recording(tmp_path))) as trial:
        assert trial.frame_numbers.tolist() == [1, 2, 3, 5, 6]
        assert trial.gaze[1].tolist() == [[155.0, 3.0], [158.5, 0.5]]
        assert trial.gaze[2].shape == (0, 2)
        assert trial.gaze[3].tolist() == [[10, 20], [-21, 30], [5, 419]]
        assert 6 not in trial.gaze
        assert trial.labels[5].action == 3
        audit = trial.audit
    assert (audit.expected, audit.frames, audit.first, audit.last) == (5, 5, 1, 6)
    assert (audit.missing, audit.labels, audit.header) == (1, 6, False)
    assert (audit.samples, audit.null_gaze, audit.low_samples) == (10, 1, 6)
    assert audit.out_of_bounds == 4
    assert (audit.labels_without_frame, audit.frames_without_label) == (2, 1)
    assert (audit.duplicates, audit.foreign, audit.malformed) == (1, 0, 0)
    assert audit.problem is None


def test_a_trial_without_labels_is_broken(tmp_path):
    write_flat(tmp_path)
    (tmp_path / f"{NAME}.txt").unlink()
    assert only(tmp_path).labels is None
    assert "its label file cannot be found" in problem(tmp_path)


def test_a_trial_without_archive_is_broken(tmp_path):
    write_flat(tmp_path)
    (tmp_path / f"{NAME}.tar.bz2").unlink()
    assert only(tmp_path).archive is None
    assert "its archive cannot be found" in problem(tmp_path)


def test_a_trial_without_files_is_absent(tmp_path):
    write_flat(tmp_path)
    with (tmp_path / "meta_data.csv").open("a") as meta:
        meta.write("Breakout,9999,RZ,,\nSeaquest,5,RZ,3,1\n")
    there, absent = find_trials(tmp_path, "breakout")
    assert (there.absent, absent.absent) == (False, True)
    assert (absent.number, absent.name, absent.num_frames) == (9999, "9999", None)
    with pytest.raises(TrialError, match=r"trial 9999 .*its files cannot be found"):
        open_trial(absent)


def test_labels_of_other_frames_are_no_labels(tmp_path):
    write_flat(tmp_path, rows=[label_row(n) for n in (50, 51)])
    assert "none of its rows belongs to a frame" in problem(tmp_path)


def test_labels_of_another_recording_are_no_labels(tmp_path):
    write_flat(tmp_path, rows=[label_row(n, prefix="RZ_99") for n in (1, 2, 3, 4)])
    assert "none of its rows belongs to a frame" in problem(tmp_path)


def test_an_empty_label_file_is_named(tmp_path):
    write_flat(tmp_path)
    (tmp_path / f"{NAME}.txt").write_bytes(b"")
    assert f"{NAME}.txt: expected frame labels, found an empty file" in problem(tmp_path)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "found an empty file"),
        (b"<html></html>", "found an HTML or XML page"),
        (tar_bytes(frame_files([1, 2]))[:-20], "damaged or truncated archive"),
        (tar_bytes([("../RZ_42_1.png", b"x")]), "member '../RZ_42_1.png' leads out"),
        (tar_bytes([("RZ_42_1.png", b"x")]), "member 'RZ_42_1.png' is no PNG file"),
        (tar_bytes([("RZ_42_1.png", png(picture(1))[:-9])]), "'RZ_42_1.png' is a truncated PNG"),
        (tar_bytes([("RZ_42_1.png", png(picture(1, 84, 84)))]), "is 84x84 pixels"),
        (tar_bytes([("readme.txt", b"x")]), "holds no frame RZ_42_<n>.png"),
        (tar_bytes(frame_files([1], prefix="RZ_43")), "holds no frame RZ_42_<n>.png"),
        (tar_bytes([]), "holds no frame"),
    ],
)
def test_a_bad_archive_is_a_broken_trial(tmp_path, data, reason):
    write_flat(tmp_path)
    (tmp_path / f"{NAME}.tar.bz2").write_bytes(data)
    assert reason in problem(tmp_path)


def test_a_link_in_an_archive_is_refused(tmp_path):
    write_flat(tmp_path)
    with tarfile.open(tmp_path / f"{NAME}.tar.bz2", "w:bz2") as tar:
        tar.addfile(member("RZ_42_1.png", kind=tarfile.SYMTYPE, target="/etc/passwd"))
    assert "member 'RZ_42_1.png' is neither a plain file nor a folder" in problem(tmp_path)


def test_a_damaged_frame_in_a_folder_is_named_when_its_turn_comes(tmp_path):
    write_flat(tmp_path)
    with tarfile.open(tmp_path / f"{NAME}.tar.bz2") as tar:
        tar.extractall(tmp_path, filter="data")
    (tmp_path / f"{NAME}.tar.bz2").unlink()
    (tmp_path / NAME / "RZ_42_3.png").write_bytes(b"junk")
    with open_trial(only(tmp_path)) as trial:
        frames = trial.frames()
        assert [next(frames)[0], next(frames)[0]] == [1, 2]
        with pytest.raises(TrialError, match=r"trial 7_RZ.* frame 3: .*RZ_42_3.png: is no PNG"):
            next(frames)


def test_a_damaged_game_zip_is_one_line(tmp_path):
    new_meta(tmp_path)
    (tmp_path / "breakout.zip").write_bytes(zip_bytes(new_files().items())[:-40])
    with pytest.raises(FileFormatError, match=r"breakout.zip: damaged or truncated archive"):
        find_trials(tmp_path, "breakout")


def test_audits_go_on_after_a_broken_trial(tmp_path):
    new_meta(tmp_path)
    write_unzipped(tmp_path)
    (tmp_path / "breakout" / f"{NAME}.tar.bz2").write_bytes(b"")
    broken, whole = audit_trials(find_trials(tmp_path, "breakout"), decode=True)
    assert broken.problem is not None
    assert "empty file" in broken.problem
    assert (broken.trial, broken.frames) == (7, None)
    assert (whole.trial, whole.frames, whole.problem) == (9, 2, None)


def test_wrong_folders_and_games_are_one_line(tmp_path):
    with pytest.raises(InputError, match="there is no such folder"):
        find_trials(tmp_path / "none", "breakout")
    with pytest.raises(InputError, match=r"it holds no meta_data.csv"):
        find_trials(tmp_path, "breakout")
    write_flat(tmp_path)
    with pytest.raises(InputError, match=r"unknown .* game 'Braekout'; did you .*'breakout'"):
        find_trials(tmp_path, "Braekout")
    with pytest.raises(InputError, match="it holds no trial of seaquest"):
        find_trials(tmp_path, "seaquest")


def test_the_trials_of_all_games_that_are_there():
    refs = find_all_trials(GOLDEN)
    assert [(ref.game, ref.number) for ref in refs] == [
        ("breakout", 9901),
        ("breakout", 9903),
        ("breakout", 9999),
        ("ms_pacman", 9902),
    ]


def test_a_folder_without_any_trial_is_one_line(tmp_path):
    new_meta(tmp_path)
    with pytest.raises(InputError, match=r"it holds no trial$"):
        find_all_trials(tmp_path)


@pytest.mark.parametrize(
    ("game", "number", "frames", "samples", "nulls", "out"),
    [
        ("Breakout", 9901, 122, 581, 32, 6),
        ("Breakout", 9903, 61, 236, 24, 2),
        ("Mspacman", 9902, 97, 438, 31, 8),
    ],
)
def test_the_golden_trials_are_read_fully(game, number, frames, samples, nulls, out):
    refs = find_trials(GOLDEN, game)
    (ref,) = (ref for ref in refs if ref.number == number)
    assert ref.num_frames == frames
    with open_trial(ref) as trial:
        assert [n for n, _ in trial.frames()] == list(range(1, frames + 1))
        audit = trial.audit
    # Counted with awk in the label files.
    assert (audit.samples, audit.null_gaze, audit.out_of_bounds) == (samples, nulls, out)
    assert (audit.missing, audit.frames_without_label, audit.labels_without_frame) == (0, 0, 0)


def test_the_golden_set_has_a_trial_that_is_not_there():
    assert [(ref.number, ref.absent) for ref in find_trials(GOLDEN, "BreakoutNoFrameskip-v4")] == [
        (9901, False),
        (9903, False),
        (9999, True),
    ]


@pytest.mark.skipif(not FRAGMENT.is_dir(), reason="needs the fragment of the real data set")
def test_a_real_recording_is_read_fully(tmp_path):
    refs = find_trials(FRAGMENT, "MsPacmanNoFrameskip-v4")
    assert len(refs) == 22
    (ref,) = (ref for ref in refs if not ref.absent)
    assert (ref.number, ref.highscore, ref.subject, ref.load_trial) == (593, True, "R", 118)
    with open_trial(ref) as trial:
        assert trial.frame_numbers.tolist() == list(range(4354, 4954))
        frames = dict(trial.frames())
        gaze = trial.gaze
        assert trial.labels[4354].action == 3
        assert trial.labels[4354].duration is None
    assert gaze[4354].tolist() == [[136.44, 148.1], [136.1, 147.1], [135.88, 146.65]]
    assert sum(len(samples) == 0 for samples in gaze.values()) == 22
    assert ref.archive is not None
    with tarfile.open(ref.archive) as tar:  # another decoder sees the same colours
        for number in (4354, 4600, 4953):
            with Image.open(tar.extractfile(f"{ref.name}/RZ_5037271_{number}.png")) as image:
                np.testing.assert_array_equal(frames[number], np.asarray(image.convert("RGB")))


@pytest.mark.skipif(not FRAGMENT.is_dir(), reason="needs the fragment of the real data set")
def test_a_real_recording_is_read_from_a_zip_that_is_not_unpacked(tmp_path):
    shutil.copy(FRAGMENT / "meta_data_fragment.csv", tmp_path / "meta_data.csv")
    files = [
        (path.relative_to(FRAGMENT).as_posix(), path.read_bytes())
        for path in FRAGMENT.rglob("593_*")
    ]
    (tmp_path / "ms_pacman.zip").write_bytes(zip_bytes(files))
    ref = only(tmp_path, "ms_pacman")
    assert (ref.num_frames, ref.highscore) == (600, True)
    with open_trial(ref) as trial:
        assert (trial.audit.frames, trial.audit.labels, trial.audit.samples) == (600, 600, 1734)
