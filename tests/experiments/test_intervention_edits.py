"""What an edit says, and what it does to bytes and screens."""

import numpy as np
import pytest

from fl_saliency.errors import InputError
from fl_saliency.experiments.intervention.edits import (
    Edits,
    Move,
    RamEdit,
    Region,
    parse_colour,
    parse_mask,
    parse_move,
    parse_ram,
)

SCREEN = (210, 160)
GREY, RED, BLACK = (90, 90, 90), (200, 0, 0), (0, 0, 0)


def picture() -> np.ndarray:
    """A red box of 6x4 pixels at (20, 30) on grey, below a black line that touches it."""
    screen = np.full((*SCREEN, 3), GREY, np.uint8)
    screen[30:34, 20:26] = RED
    screen[29] = BLACK
    return screen


# --- bytes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "byte", "operation", "value"),
    [("99=60", 99, "=", 60), ("101+=8", 101, "+=", 8), ("0-=255", 0, "-=", 255)],
)
def test_a_change_of_memory_is_read_and_told_in_the_same_words(text, byte, operation, value):
    edit = parse_ram(text)
    assert edit == RamEdit(byte=byte, operation=operation, value=value)
    assert str(edit) == text


def test_changes_of_one_byte_come_one_after_the_other():
    edits = Edits(ram=tuple(map(parse_ram, ("9=10", "9+=5", "9-=1", "3+=2"))))
    assert edits.new_bytes(np.full(128, 200, np.uint8)) == {9: 14, 3: 202}


@pytest.mark.parametrize(("text", "after"), [("9+=60", 260), ("9-=201", -1)])
def test_a_byte_does_not_wrap_around(text, after):
    with pytest.raises(InputError, match=f"byte 9 is 200 then and would be {after}; expected 0"):
        Edits(ram=(parse_ram(text),)).new_bytes(np.full(128, 200, np.uint8))


# --- pictures -----------------------------------------------------------------------------------


def test_a_mask_takes_the_commonest_colour_of_the_pixels_that_touch_it():
    before = picture()
    screen = before.copy()
    painted = Edits(masks=(parse_mask("20,30,6,4"),)).paint(screen)
    assert (painted[30:34, 20:26] == GREY).all()
    np.testing.assert_array_equal(screen, before)
    painted[30:34, 20:26] = RED
    np.testing.assert_array_equal(painted, before)


def test_a_mask_of_the_whole_screen_takes_its_commonest_colour():
    painted = Edits(masks=(parse_mask("0,0,160,210"),)).paint(picture())
    assert (painted == GREY).all()


def test_a_fill_is_taken_as_it_is():
    edits = Edits(masks=(parse_mask("20,30,6,4"),), fill=parse_colour("1,2,3"))
    assert (edits.paint(picture())[30:34, 20:26] == (1, 2, 3)).all()


def test_a_move_carries_its_pixels_and_leaves_background_behind():
    painted = Edits(moves=(parse_move("20,30,6,4,-3,50"),)).paint(picture())
    assert (painted[80:84, 17:23] == RED).all()
    assert (painted == RED).all(axis=-1).sum() == 24
    assert (painted[30:34, 20:26] == GREY).all()


def test_a_move_onto_itself_keeps_what_it_carries():
    painted = Edits(moves=(parse_move("20,30,6,4,1,1"),)).paint(picture())
    assert (painted[31:35, 21:27] == RED).all()
    assert (painted == RED).all(axis=-1).sum() == 24


def test_moves_come_after_masks():
    edits = Edits(masks=(parse_mask("20,30,6,4"),), moves=(parse_move("20,30,6,4,0,50"),))
    assert not (edits.paint(picture()) == RED).all(axis=-1).any()


@pytest.mark.parametrize("text", ["0,0,160,210", "159,209,1,1"])
def test_regions_may_touch_the_screens_edge(text):
    Edits(masks=(parse_mask(text),)).check(SCREEN)


@pytest.mark.parametrize("text", ["0,0,161,1", "0,0,1,211", "-1,0,5,5", "0,-1,5,5", "160,0,1,1"])
def test_a_region_off_the_screen_is_refused(text):
    with pytest.raises(InputError, match=f"--mask {text}: expected it on the screen, 160 pixels"):
        Edits(masks=(parse_mask(text),)).check(SCREEN)


@pytest.mark.parametrize(
    ("text", "end"), [("150,0,20,5,-50,0", "from 150,0,20,5"), ("0,0,5,5,-1,0", "to -1,0,5,5")]
)
def test_a_move_off_the_screen_says_which_end_of_it(text, end):
    with pytest.raises(InputError, match=f"--move {text}: {end}: expected it on the screen"):
        Edits(moves=(parse_move(text),)).check(SCREEN)


def test_all_changed_regions_are_known():
    edits = Edits(masks=(parse_mask("1,2,3,4"),), moves=(parse_move("5,6,7,8,10,20"),))
    assert [str(region) for region in edits.regions] == ["1,2,3,4", "5,6,7,8", "15,26,7,8"]
    assert edits.moves == (Move(region=Region(x=5, y=6, width=7, height=8), dx=10, dy=20),)
    assert edits.change_picture
    assert not Edits(ram=(parse_ram("1=1"),)).change_picture


# --- what cannot be read ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "text", "said"),
    [
        (parse_ram, "", "expected BYTE=VALUE"),
        (parse_ram, "99", "expected BYTE=VALUE"),
        (parse_ram, "99==60", "expected BYTE=VALUE"),
        (parse_ram, "99=-1", "expected BYTE=VALUE"),
        (parse_ram, "٩=1", "expected BYTE=VALUE"),
        (parse_ram, "9" * 5000 + "=1", "expected BYTE=VALUE"),
        (parse_ram, "128=1", "byte 128: expected 0 to 127"),
        (parse_ram, "1=256", "value 256: expected 0 to 255"),
        (parse_mask, "1,2,3", "expected X,Y,W,H in whole numbers, such as"),
        (parse_mask, "1,2,3,4,5", "expected X,Y,W,H in whole numbers, such as"),
        (parse_mask, "1,2,3,x", "expected X,Y,W,H in whole numbers, such as"),
        (parse_mask, "1,2,0,4", "expected a width and a height of 1 or more"),
        (parse_mask, "1,2,3,-4", "expected a width and a height of 1 or more"),
        (parse_move, "1,2,3,4", "expected X,Y,W,H,DX,DY in whole numbers, such as"),
        (parse_move, "1,2,3,4,0,0", "expected DX or DY other than 0"),
        (parse_colour, "red", "expected R,G,B in whole numbers, such as"),
        (parse_colour, "0,0,256", "expected levels from 0 to 255"),
        (parse_colour, "-1,0,0", "expected levels from 0 to 255"),
    ],
)
def test_what_cannot_be_read_is_named_with_what_was_expected(read, text, said):
    with pytest.raises(InputError) as caught:
        read(text)
    assert said in str(caught.value)
    assert text[:20] in str(caught.value)
