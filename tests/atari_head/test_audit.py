import csv
import io
import json

import numpy as np

from fl_saliency.atari_head.audit import COLUMNS, TrialAudit, count_trial, to_csv, to_json, to_text
from fl_saliency.atari_head.labels import FrameLabel, Labels


def label(*gaze):
    samples = np.array(gaze, dtype=np.float64).reshape(-1, 2)
    return FrameLabel(action=0, duration=50, reward=0, episode=0, score=0, gaze=samples)


def audit(frames=(1, 2, 5), **rows):
    labels = Labels(
        rows={int(key[1:]): value for key, value in rows.items()},
        header=True,
        duplicates=4,
        foreign=2,
        malformed=3,
        null_samples=6,
    )
    return count_trial(
        trial=7,
        name="7_RZ_42_x",
        game="breakout",
        expected=9,
        frames=frames,
        foreign_frames=1,
        labels=labels,
    )


BROKEN = TrialAudit(trial=8, name="8_x", game="breakout", problem="trial 8: bad, and so on")


def test_counts():
    found = audit(n1=label((0, 0), (159.99, 209.99)), n2=label(), n4=label(*[(5, 5)] * 10))
    assert (found.frames, found.first, found.last, found.missing) == (3, 1, 5, 2)
    assert (found.labels, found.samples, found.null_gaze, found.low_samples) == (3, 12, 1, 2)
    assert (found.labels_without_frame, found.frames_without_label) == (1, 1)
    assert (found.duplicates, found.foreign, found.malformed, found.null_samples) == (4, 3, 3, 6)
    assert (found.expected, found.problem) == (9, None)


def test_the_screen_ends_before_160_and_210_and_begins_at_0():
    assert audit(n1=label((0, 0), (159.99, 209.99))).out_of_bounds == 0
    edges = [(-0.01, 5), (5, -0.01), (160, 5), (5, 210), (-5, 300)]
    assert audit(n1=label(*edges)).out_of_bounds == len(edges)


def test_without_any_label_nothing_is_out_of_bounds():
    found = audit()
    assert (found.labels, found.samples, found.out_of_bounds) == (0, 0, 0)


def test_text_is_a_table_and_the_problems_after_it():
    lines = to_text([audit(n1=label((0, 0))), BROKEN]).splitlines()
    assert len(lines) == 4
    assert lines[0].split()[:5] == ["trial", "game", "expected", "frames", "first"]
    assert lines[1].split()[:8] == ["7", "breakout", "9", "3", "1", "5", "2", "1"]
    assert "yes" in lines[1].split()
    assert set(lines[2].split()) == {"8", "breakout", "-"}
    assert lines[3] == "broken: trial 8: bad, and so on"
    ends = {line.index("breakout") for line in lines[1:3]}
    assert len(ends) == 1


def test_json_and_csv_hold_every_column():
    audits = [audit(n1=label((0, 0))), BROKEN]
    objects = json.loads(to_json(audits))
    assert [tuple(item) for item in objects] == [COLUMNS, COLUMNS]
    assert (objects[0]["frames"], objects[1]["frames"]) == (3, None)
    rows = list(csv.DictReader(io.StringIO(to_csv(audits))))
    assert [tuple(row) for row in rows] == [COLUMNS, COLUMNS]
    assert (rows[0]["frames"], rows[1]["frames"]) == ("3", "")
    assert rows[1]["problem"] == BROKEN.problem


def test_an_empty_table_has_its_headings():
    assert to_text([]).startswith("trial")
    assert to_csv([]).split(",")[0] == "trial"
    assert json.loads(to_json([])) == []
