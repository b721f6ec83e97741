"""Made-up Atari-HEAD trials of any length, for what is measured against a trial's length."""

import tarfile
from io import BytesIO
from pathlib import Path

import cv2
import numpy as np

__all__ = ["make_trial"]

SHAPE = (210, 160)
SAMPLES = 50
"""Gaze samples a frame."""


def make_trial(folder: Path, frames: int) -> None:
    """A trial of Breakout in the flat layout; its gaze follows a square that moves."""
    rng = np.random.default_rng(0)
    (folder / "meta_data.csv").write_text(
        f"Game,TrialNumber,SubjectId,NumberOfFrames,TotalTime(s)\nBreakout,1,XX,{frames},1\n"
    )
    with (
        tarfile.open(folder / "1_XX_1_x.tar.bz2", "w:bz2", compresslevel=1) as archive,
        (folder / "1_XX_1_x.txt").open("w") as labels,
    ):
        for number in range(1, frames + 1):
            image = np.full((*SHAPE, 3), 20, np.uint8)
            row, column = 5 * number % 180, 3 * number % 130
            image[row : row + 30, column : column + 30] = number % 256
            data = cv2.imencode(".png", image)[1].tobytes()
            member = tarfile.TarInfo(f"1_XX_1_x/XX_1_{number}.png")
            member.size = len(data)
            archive.addfile(member, BytesIO(data))
            gaze = np.array([column, row]) + rng.uniform(0, 30, (SAMPLES, 2))
            text = ",".join(f"{value:.2f}" for value in gaze.ravel())
            labels.write(f"XX_1_{number},0,0,50,0,0,{text}\n")
