"""Makes demo/atari_head: a small trial in the layout of Atari-HEAD, with a SYNTHETIC gaze.

The frames are the emulator's own, of a simple seeded policy that plays Breakout; the gaze is made
up and follows the ball. Running it again writes the same bytes (with the same OpenCV and emulator).

Usage: python scripts/make_demo_trial.py [folder]     (default: demo/atari_head)
"""

import bz2
import io
import sys
import tarfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
from ale_py import Action, ALEInterface, LoggerMode, roms

SEED = 20
FRAMES = 480
RECORDING = "SYNTHETIC_900001"
TRIAL = f"1_{RECORDING}_Jan-01-00-00-00"
MISSING = range(301, 304)  # frames that the archive lacks, as real recordings do
BLINKS = (range(60, 66), range(250, 259), range(411, 414))  # frames without gaze
LOOKS_AWAY = (range(180, 184), range(352, 355))  # frames whose gaze is off the screen
SAMPLES = 12  # gaze samples a frame; real ones have about 50

META = (
    "GameName,trial_id,subject_id,load_trial,highest_score,total_frame,total_game_play_time,"
    "total_episode,max_error,avg_error,low_sample_rate,frame_averaging,fps"
)
HEADER = "frame_id,episode_id,score,duration(ms),unclipped_reward,action,gaze_positions"

README = f"""# A small trial with a synthetic gaze

`breakout/{TRIAL}` has the layout of
[Atari-HEAD](https://doi.org/10.5281/zenodo.3451402), but **nobody looked at it**: its gaze is made
up. It exists so that `make demo` and the tests have something to read; scores against it say
nothing about people.

- Frames: {FRAMES - len(MISSING)} screens of Breakout, from a seeded policy that follows the ball in the emulator.
- Gaze: about {SAMPLES} samples a frame that follow the ball with lag, jitter and jumps, with frames
  that have none (blinks) and samples off the screen (looks away).
- As real recordings, it lacks a few frames, and the archive's members are in no order.

Made by `python scripts/make_demo_trial.py`, seed {SEED}; docs/atari_head.md describes the format.
"""  # noqa: E501


@dataclass(frozen=True, kw_only=True)
class Moment:
    """One frame of the game."""

    screen: npt.NDArray[np.uint8]
    ball: tuple[float, float] | None
    """(x, y) in pixels; None while there is none."""
    action: int
    reward: int


def play(rng: np.random.Generator) -> Iterator[Moment]:
    """Play Breakout for FRAMES frames, one emulator frame each."""
    ALEInterface.setLoggerMode(LoggerMode.Error)
    ale = ALEInterface()
    ale.setInt("random_seed", SEED)
    ale.setFloat("repeat_action_probability", 0.0)
    ale.loadROM(roms.get_rom_path("breakout"))
    ale.reset_game()
    aim = 0.0
    for index in range(FRAMES):
        if index % 40 == 0:
            aim = rng.uniform(-6, 6)  # meets the ball with another part of the paddle each time
        ram = ale.getRAM().astype(int)
        screen, ball = ale.getScreenRGB(), _ball(ram)
        action = _follow(ram, ball, aim, index)
        reward = ale.act(action)
        yield Moment(screen=screen, ball=ball, action=action.value, reward=int(reward))


def _ball(ram: npt.NDArray[np.int64]) -> tuple[float, float] | None:
    """Bytes 99 and 101 hold the ball's place, at these offsets on the screen."""
    return (ram[99] - 48.5, ram[101] + 10.5) if ram[101] else None


def _follow(
    ram: npt.NDArray[np.int64], ball: tuple[float, float] | None, aim: float, index: int
) -> Action:
    if ball is None:
        return Action.FIRE if index % 20 == 10 else Action.NOOP
    off = ball[0] + aim - (ram[72] - 39.5)  # byte 72 holds the paddle's place
    return Action.NOOP if abs(off) < 4 else Action.RIGHT if off > 0 else Action.LEFT


def gaze_rows(
    moments: Sequence[Moment], rng: np.random.Generator
) -> Iterator[npt.NDArray[np.float64]]:
    """A made-up gaze, float64 [K, 2] a frame: it drifts to the ball, with jitter and jumps."""
    at = np.array([80.0, 105.0])
    for index, moment in enumerate(moments):
        target = np.array(moment.ball or (80.0, 120.0))
        at = at + 0.25 * (target - at) + rng.normal(0, 0.6, 2)
        if rng.random() < 0.02:
            at = target + rng.normal(0, 12, 2)  # a jump that misses
        count = SAMPLES + int(rng.integers(-2, 3))
        samples = at + rng.normal(0, 1.2, (count, 2))
        if any(index in away for away in LOOKS_AWAY):
            samples += (rng.choice([-200.0, 200.0]), 80.0)
        yield samples[:0] if any(index in blink for blink in BLINKS) else samples


def label_lines(
    moments: Sequence[Moment], gaze: Sequence[npt.NDArray[np.float64]]
) -> Iterator[str]:
    """The lines of the label file."""
    yield HEADER
    score = 0
    for index, (moment, samples) in enumerate(zip(moments, gaze, strict=True)):
        score += moment.reward
        numbers = ",".join(f"{x:.2f},{y:.2f}" for x, y in samples) or "null"
        yield f"{RECORDING}_{index + 1},0,{score},50,{moment.reward},{moment.action},{numbers}"


def archive(moments: Sequence[Moment], rng: np.random.Generator) -> bytes:
    """The frames as a tar.bz2 without dates and owners, its members shuffled."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for index in rng.permutation(len(moments)):
            if index + 1 in MISSING:
                continue
            done, png = cv2.imencode(
                ".png",
                cv2.cvtColor(moments[index].screen, cv2.COLOR_RGB2BGR),
                [cv2.IMWRITE_PNG_COMPRESSION, 9],
            )
            assert done
            info = tarfile.TarInfo(f"{TRIAL}/{RECORDING}_{index + 1}.png")
            info.size = len(png)
            tar.addfile(info, io.BytesIO(png.tobytes()))
    return bz2.compress(out.getvalue(), 9)


def meta_data(moments: Sequence[Moment], gaze: Sequence[npt.NDArray[np.float64]]) -> str:
    """The text of meta_data.csv."""
    score = sum(moment.reward for moment in moments)
    low = sum(len(samples) < 10 for samples in gaze) / len(gaze)
    row = f"breakout,1,SYNTHETIC,0,{score},{FRAMES},{FRAMES * 50},1,0,0,{low:.2%},FALSE,20"
    return f"{META}\n{row}\n"


def write_trial(folder: Path) -> None:
    """Write the trial, its meta_data.csv and its README into `folder`."""
    moments = list(play(np.random.default_rng([SEED, 0])))
    gaze = list(gaze_rows(moments, np.random.default_rng([SEED, 1])))
    game = folder / "breakout"
    game.mkdir(parents=True, exist_ok=True)
    lines = [*label_lines(moments, gaze), ""]
    (folder / "README.md").write_text(README, encoding="utf-8")
    (folder / "meta_data.csv").write_text(meta_data(moments, gaze), encoding="utf-8")
    (game / f"{TRIAL}.txt").write_text("\n".join(lines), encoding="utf-8")
    data = archive(moments, np.random.default_rng([SEED, 2]))
    (game / f"{TRIAL}.tar.bz2").write_bytes(data)


def main(argv: Sequence[str]) -> int:
    """Write the trial into the folder that `argv` names."""
    folder = Path(argv[0]) if argv else Path(__file__).parents[1] / "demo" / "atari_head"
    write_trial(folder)
    print(folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
