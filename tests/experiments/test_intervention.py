"""Two branches of one game: equal without an edit, and different by the edit alone with one."""

from dataclasses import replace

import numpy as np
import pytest

from fl_saliency.envs.protocol import Protocol, resolve_protocol
from fl_saliency.envs.vector import AtariVectorEnv
from fl_saliency.errors import InputError
from fl_saliency.experiments.intervention.branches import Branch, Branches, play_both
from fl_saliency.experiments.intervention.changes import compare, first_difference
from fl_saliency.experiments.intervention.edits import Edits, parse_mask, parse_move, parse_ram
from fl_saliency.experiments.intervention.filmstrip import COLUMNS, Film, filmstrip
from fl_saliency.experiments.intervention.game import WatchedGame, check_pooling, frame_of
from fl_saliency.playback.play import PlayStep, play
from tests.experiments.intervening import BREAKOUT, SEED, PixelAgent

NOTHING = Edits()
AT = 10
"""A decision at which the ball is in the air."""


def branches(edits: Edits = NOTHING, **more) -> Branches:
    settings = {"seed": SEED, "at": AT, "steps": 6, **more}
    return play_both(PixelAgent(), BREAKOUT, edits, **settings)


def assert_equal(one: Branch, other: Branch) -> None:
    for first, second in zip(one.steps, other.steps, strict=True):
        np.testing.assert_array_equal(first.observation, second.observation)
        np.testing.assert_array_equal(first.screen, second.screen)
        np.testing.assert_array_equal(first.scores, second.scores)
        names = ("value", "action", "reward", "lives", "end")
        assert all(getattr(first, name) == getattr(second, name) for name in names)


def ball(screen: np.ndarray) -> tuple[int, int]:
    """x and y of the ball, which is red, below the bricks and above the paddle."""
    red = (screen[95:188, 8:152] == (200, 72, 72)).all(axis=-1)
    y, x = np.argwhere(red).min(axis=0)
    return int(x) + 8, int(y) + 95


# --- the game -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("env_id", "ended"), [("BreakoutNoFrameskip-v4", {"life_lost"}), ("ALE/MsPacman-v5", set())]
)
def test_frames_made_of_the_kept_screens_are_the_emulators_own(env_id, ended):
    protocol = resolve_protocol(env_id)
    game = WatchedGame(protocol, SEED)
    rng = np.random.default_rng(5)
    ends = set()
    for _ in range(150):
        observation, screen = game.view()
        remade, newest = game.edited(NOTHING)
        np.testing.assert_array_equal(remade, observation)
        np.testing.assert_array_equal(newest, screen)
        ends.add(game.step(int(rng.integers(protocol.num_actions)))[1])
    assert ended <= ends  # after a lost life the stack is empty but for one frame


def test_screens_that_are_pooled_in_grey_cannot_be_edited():
    check_pooling(BREAKOUT)
    grey = Protocol.from_dict({**BREAKOUT.as_dict(), "max_pool": "grey"})
    with pytest.raises(InputError, match=r"pools them in grey\. --ram works"):
        check_pooling(grey)


# --- without an edit ----------------------------------------------------------------------------


@pytest.mark.parametrize("rule", ["sampled", "greedy", "same"])
def test_without_an_edit_both_branches_are_bit_for_bit_the_same(rule):
    found = branches(rule=rule, steps=40)
    assert len(found.original.steps) == 40
    assert_equal(found.original, found.intervened)
    assert first_difference(compare(found, {}, {})) is None
    assert found.memory == {}


def test_the_original_branch_is_the_game_that_an_evaluation_plays():
    found = branches(parse_edits(ram="99=100"), steps=30)
    with AtariVectorEnv(BREAKOUT, 1, SEED, workers=0, screens=True) as env:
        decision = 0
        for event in play(PixelAgent(), env, 1):
            if not isinstance(event, PlayStep):
                continue
            if decision >= AT + 30:
                break
            if decision >= AT:
                step = found.original.steps[decision - AT]
                np.testing.assert_array_equal(step.observation, event.observations[0])
                np.testing.assert_array_equal(step.screen, event.screens[0])
                assert step.action == event.actions[0]
            decision += 1


# --- with one -----------------------------------------------------------------------------------


def parse_edits(ram: str = "", mask: str = "", move: str = "") -> Edits:
    return Edits(
        ram=tuple(map(parse_ram, ram.split())),
        masks=tuple(map(parse_mask, mask.split())),
        moves=tuple(map(parse_move, move.split())),
    )


def test_a_moved_ball_is_seen_one_decision_later_and_exactly_as_far_away():
    found = branches(parse_edits(ram="99-=40 101-=16"), rule="same")
    (x0, x1), (y0, y1) = found.memory[99], found.memory[101]
    assert (x1 - x0, y1 - y0) == (-40, -16)
    assert first_difference(compare(found, {}, {})) == 1
    before, after = (b.steps[1].screen for b in (found.original, found.intervened))
    assert np.subtract(ball(after), ball(before)).tolist() == [-40, -16]


def test_breakouts_paddle_is_where_the_joystick_is_whatever_byte_72_says():
    found = branches(parse_edits(ram="72-=30"), rule="same")
    assert found.memory[72][1] == found.memory[72][0] - 30
    third = [branch.steps[2].screen for branch in (found.original, found.intervened)]
    np.testing.assert_array_equal(*third)


def test_a_mask_is_in_every_frame_of_the_branching_decision_and_gone_after():
    edits = parse_edits(mask="0,95,160,115")  # all below the bricks
    found = branches(edits, rule="same")
    seen = found.intervened.steps[0]
    for frame in np.moveaxis(seen.observation, -1, 0):
        assert np.ptp(frame[39:], axis=0).max() == 0  # rows that lie in the region
    np.testing.assert_array_equal(seen.observation[..., -1], frame_of(seen.screen, 84))
    changes = compare(found, {}, {})
    assert [change.sees_difference for change in changes] == [True] + [False] * 5
    assert changes[0].kl > 0
    assert changes[0].value_change != 0


def test_a_kept_edit_stays_and_the_game_goes_on_below_it():
    edits = parse_edits(move="0,0,160,20,0,100")
    found = branches(edits, rule="same", keep=True)
    assert all(change.sees_difference for change in compare(found, {}, {}))
    for before, after in zip(found.original.steps, found.intervened.steps, strict=True):
        np.testing.assert_array_equal(after.screen, edits.paint(before.screen))
        assert after.reward == before.reward


def test_the_same_actions_are_the_originals_and_greedy_ones_the_likeliest():
    edits = parse_edits(mask="0,0,160,210")
    same = branches(edits, rule="same", keep=True, steps=20)
    assert same.original.actions.tolist() == same.intervened.actions.tolist()
    greedy = branches(edits, rule="greedy", keep=True, steps=20)
    for branch in (greedy.original, greedy.intervened):
        assert [int(step.scores.argmax()) for step in branch.steps] == branch.actions.tolist()
        assert all(step.policy.sum() == pytest.approx(1) for step in branch.steps)


def test_both_branches_draw_the_same_numbers():
    """Under one and the same policy, what is drawn is the same action."""

    class Indifferent(PixelAgent):
        def scores(self, obs):
            return np.zeros((len(obs), 4), np.float32)

    edits = parse_edits(ram="99=100", mask="0,0,160,100")
    found = play_both(Indifferent(), BREAKOUT, edits, seed=SEED, at=3, steps=20)
    assert len(set(found.original.actions.tolist())) > 1
    assert found.original.actions.tolist() == found.intervened.actions.tolist()


# --- ends ---------------------------------------------------------------------------------------

SHORT = replace(BREAKOUT, max_frames=200)


def test_a_branch_ends_with_its_game():
    found = play_both(PixelAgent(), SHORT, NOTHING, seed=SEED, at=20, steps=500)
    last = found.original.steps[-1]
    assert last.end == "truncated"
    assert len(found.original.steps) < 30
    assert {step.end for step in found.original.steps[:-1]} <= {None, "life_lost"}
    assert_equal(found.original, found.intervened)


def test_a_game_that_ends_before_says_at_which_decision_and_that_one_can_be_asked_for():
    with pytest.raises(InputError, match="--at 500: the game of --eval-seed 1000 ends") as caught:
        play_both(PixelAgent(), SHORT, NOTHING, seed=SEED, at=500, steps=1)
    last = int(str(caught.value).rsplit(" ", 1)[1])
    assert f"ends at decision {last} (truncated)" in str(caught.value)
    found = play_both(PixelAgent(), SHORT, NOTHING, seed=SEED, at=last, steps=5)
    assert [step.end for step in found.original.steps] == ["truncated"]
    with pytest.raises(InputError):
        play_both(PixelAgent(), SHORT, NOTHING, seed=SEED, at=last + 1, steps=1)


def test_a_byte_that_cannot_be_changed_so_is_refused():
    with pytest.raises(InputError, match=r"--ram 99\+=255: byte 99 is \d+ then and would be"):
        branches(parse_edits(ram="99+=255"))


# --- the picture --------------------------------------------------------------------------------


def film(found: Branches, maps: tuple[dict, dict] = ({}, {}), edits: Edits = NOTHING) -> Film:
    return Film(
        title="a title",
        at=AT,
        edits=edits,
        keep=False,
        branches=found,
        maps=maps,
        changes=compare(found, *maps),
        action_names=BREAKOUT.action_meanings,
    )


def texts(figure, kind: str) -> list[str]:
    return [getattr(axes, f"get_{kind}")() for axes in figure.axes]


def test_the_picture_has_a_column_for_each_decision_and_three_rows_for_each_method():
    found = branches(parse_edits(ram="99-=40"), steps=3)
    rng = np.random.default_rng(0)
    maps = tuple({name: rng.random((3, 84, 84), np.float32) for name in "ab"} for _ in range(2))
    figure = filmstrip(film(found, maps))
    assert len(figure.axes) == 3 * (6 + 1) + 2
    labels = "\n".join(texts(figure, "ylabel"))
    for name in ("original\na\n", "intervened\nb\n", "difference\na\nfull colour", "y (pixels)"):
        assert name in labels
    titles = texts(figure, "title")
    assert sum(f"decision {AT + 2}\n" in title for title in titles) == 2
    assert any("1 - r" in title for title in titles)
    assert sum(title.startswith("KL ") for title in titles) == 3


def test_of_many_decisions_some_are_shown_among_them_the_first_and_the_last():
    shown = film(branches(steps=30)).columns
    assert len(shown) == COLUMNS
    assert (shown[0], shown[-1]) == (0, 29)
    assert len(filmstrip(film(branches(steps=1))).axes) == 4 + 2


def test_a_game_that_is_over_leaves_its_places_empty():
    whole = play_both(PixelAgent(), SHORT, NOTHING, seed=SEED, at=40, steps=8)
    cut = replace(whole, intervened=Branch(steps=whole.intervened.steps[:2]))
    figure = filmstrip(film(cut))
    said = [text.get_text() for axes in figure.axes for text in axes.texts]
    places = len(film(cut).columns)
    assert said.count("the game\nis over") == 2 * (places - 2)
