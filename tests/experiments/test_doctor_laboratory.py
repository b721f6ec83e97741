"""`fls doctor` on results of the saliency laboratory."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from fl_saliency.cli import saliency, sanity
from fl_saliency.cli.main import main
from fl_saliency.experiments.doctor.directory import examine
from fl_saliency.experiments.doctor.files import LABORATORY_FILES
from fl_saliency.experiments.intervention import settings
from tests.helpers import make_run


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[90] ^= 0xFF  # behind the first header
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30])


def not_strict(path: Path) -> None:
    path.write_text('{"states": NaN}')


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("laboratory")
    run = str(make_run(folder / "run"))
    where = ["--experiment-dir", run, "--output-dir", str(folder / "out")]
    assert main(["saliency", *where, "--methods", "centre", "--steps", "3"]) == 0
    return folder / "out"


def test_the_files_are_those_that_the_commands_write() -> None:
    for names in (saliency.RESULT_FILES, settings.RESULT_FILES, sanity.RESULT_FILES):
        assert LABORATORY_FILES[names[0]] == names[1:]


def test_whole_maps_are_ok_part_by_part(results: Path) -> None:
    found = {finding.part: finding.status for finding in examine(results)}
    assert {name: found[name] for name in saliency.RESULT_FILES} == dict.fromkeys(
        saliency.RESULT_FILES, "ok"
    )
    assert "bad" not in found.values()


def test_a_damaged_video_is_found(results: Path, tmp_path: Path) -> None:
    patient = Path(shutil.copytree(results, tmp_path / "patient"))
    (video,) = patient.glob("*.mp4")
    cut(video)
    assert [f.part for f in examine(patient) if f.status == "bad"] == [video.name]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("maps.json", not_strict),
        ("maps.npz", flip),
        ("maps.npz", cut),
        ("states.npz", flip),
        ("states.npz", Path.unlink),
        ("stills.png", cut),
    ],
)
def test_damage_is_found_in_its_part_alone(
    name: str, damage: Callable[[Path], None], results: Path, tmp_path: Path
) -> None:
    patient = shutil.copytree(results, tmp_path / "patient")
    damage(patient / name)
    assert [f.part for f in examine(patient) if f.status == "bad"] == [name]
