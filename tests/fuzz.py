"""What the fuzz tests share: the same examples in every run, and damage to the bytes of a file."""

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

__all__ = ["damaged", "fuzz", "json_values"]


def fuzz(max_examples: int) -> settings:
    """Settings of a test that always draws the same `max_examples` examples."""
    return settings(
        max_examples=max_examples,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


def _flip(data: bytearray, start: int, end: int, new: bytes) -> None:
    data[start] ^= 1 << (end % 8)


def _replace(data: bytearray, start: int, end: int, new: bytes) -> None:
    data[start : start + len(new)] = new


def _insert(data: bytearray, start: int, end: int, new: bytes) -> None:
    data[start:start] = new


def _delete(data: bytearray, start: int, end: int, new: bytes) -> None:
    del data[start:end]


def _duplicate(data: bytearray, start: int, end: int, new: bytes) -> None:
    data[start:start] = data[start:end]


def _truncate(data: bytearray, start: int, end: int, new: bytes) -> None:
    del data[start:]


_DAMAGE: tuple[Callable[[bytearray, int, int, bytes], None], ...] = (
    _flip,
    _replace,
    _insert,
    _delete,
    _duplicate,
    _truncate,
)


@st.composite
def damaged(draw: st.DrawFn, content: bytes, *, most: int = 4) -> bytes:
    """`content` with 1 to `most` bits flipped and parts replaced, inserted, deleted, duplicated or
    cut off."""
    data = bytearray(content)
    for _ in range(draw(st.integers(1, most))):
        if data:
            start = draw(st.integers(0, len(data) - 1))
            end = min(len(data), start + draw(st.integers(1, 64)))
            draw(st.sampled_from(_DAMAGE))(
                data, start, end, draw(st.binary(min_size=1, max_size=8))
            )
    return bytes(data)


def json_values() -> st.SearchStrategy[Any]:
    """Everything that Python's JSON reader can give: NaN, infinities and huge numbers too."""
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    odd = st.sampled_from([10**23, -(10**23), 2**63, 1e308, "", "\n\x1b[31m", "\ud800", "../x"])
    return st.recursive(
        leaves | odd,
        lambda inner: (
            st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
        ),
        max_leaves=8,
    )
