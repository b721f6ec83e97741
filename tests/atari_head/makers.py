"""Makes small trials in the layouts of Atari-HEAD for the tests of its reader."""

import io
import tarfile
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import cv2
import numpy as np

HEADER = "frame_id,episode_id,score,duration(ms),unclipped_reward,action,gaze_positions"
NAME = "7_RZ_42_Jan-01-00-00-00"
NEW_META = (
    "GameName,trial_id,subject_id,load_trial,highest_score,total_frame,total_game_play_time,"
    "total_episode,max_error,avg_error,low_sample_rate,frame_averaging,fps"
)
FLAT_META = "Game,TrialNumber,SubjectId,NumberOfFrames,TotalTime(s)"


def picture(value: int, height: int = 210, width: int = 160) -> np.ndarray:
    """An RGB frame whose channels and corners all differ."""
    image = np.zeros((height, width, 3), np.uint8)
    image[..., 0] = value % 256
    image[:10, -10:] = (255, 128, 0)
    return image


def png(image: np.ndarray) -> bytes:
    done, data = cv2.imencode(".png", cv2.cvtColor(image, cv2.COLOR_RGB2BGR))
    assert done
    return data.tobytes()


def member(name: str, size: int = 0, kind: bytes = tarfile.REGTYPE, target: str = ""):
    info = tarfile.TarInfo(name)
    info.size, info.type, info.linkname = size, kind, target
    return info


def tar_bytes(files: Iterable[tuple[str, bytes]], compression: str = "bz2") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=f"w:{compression}") as tar:
        for name, data in files:
            tar.addfile(member(name, len(data)), io.BytesIO(data))
    return out.getvalue()


def zip_bytes(files: Iterable[tuple[str, bytes]]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as bundle:
        for name, data in files:
            bundle.writestr(name, data)
    return out.getvalue()


def frame_files(
    numbers: Iterable[int], name: str = NAME, prefix: str = "RZ_42"
) -> list[tuple[str, bytes]]:
    return [(f"{name}/{prefix}_{n}.png", png(picture(n))) for n in numbers]


def label_row(number: int, gaze: str = "80.00,105.00", prefix: str = "RZ_42") -> str:
    return f"{prefix}_{number},0,10,50,0,3,{gaze}"


def label_text(rows: Sequence[str], header: bool = True) -> str:
    return "\n".join([HEADER, *rows] if header else rows) + "\n"


def write_flat(
    folder: Path,
    *,
    numbers: Sequence[int] = (1, 2, 3, 4),
    rows: Sequence[str] | None = None,
    header: bool = True,
    name: str = NAME,
) -> Path:
    """A folder in the layout of record 2603190 with one trial of Breakout."""
    folder.mkdir(exist_ok=True, parents=True)
    (folder / "meta_data.csv").write_text(f"{FLAT_META}\nBreakout,7,RZ,{len(numbers)},12.5\n")
    (folder / f"{name}.tar.bz2").write_bytes(tar_bytes(frame_files(reversed(numbers), name)))
    rows = [label_row(n) for n in numbers] if rows is None else rows
    (folder / f"{name}.txt").write_text(label_text(rows, header))
    return folder
