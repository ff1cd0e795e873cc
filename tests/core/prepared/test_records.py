"""Objects as the contents of files: what was written comes back, and what is not whole does not."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tract_core.data import DatumType
from tract_core.later import Later, already
from tract_core.prepared.records import ALIGNMENT, SMALL, read, written

WHOLE = np.arange(4800, dtype=np.float32).reshape(40, 120)

ARRAYS = {
    "in order": WHOLE,
    "transposed": WHOLE.T,
    "backwards": WHOLE[::-1, ::-3],
    "in a slice": WHOLE[3:9, 5:100:2],
    "repeated": np.broadcast_to(WHOLE[:, :1], (40, 3000)),
    "without elements": np.zeros((0, 7, 400)),
    "without axes": np.float64(3).reshape(()),
    "of bf16": WHOLE.astype(DatumType.BF16.numpy),
    "of texts": np.array(["a", "Zürich"] * 400, object),
    "of the other byte order": WHOLE.astype(">f4"),
    "of truth values": WHOLE > 100,
}


def come_back(value: object, name: str = "one.plan") -> Any:
    return read(name, memoryview(b"".join(written(name, value))))


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_an_array_comes_back_as_it_lay(array: np.ndarray[Any, Any]) -> None:
    found = come_back({"it": [array]})["it"][0]
    np.testing.assert_array_equal(found, array)
    assert found.dtype == array.dtype
    if array.nbytes >= SMALL and not array.dtype.hasobject:
        assert found.strides == array.strides
        assert not found.flags.writeable


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(-3, 3).filter(bool)), min_size=1, max_size=3), st.integers(0, 40)
)
def test_any_view_comes_back(axes: list[tuple[int, int]], more: int) -> None:
    whole = np.arange(np.prod([40] * len(axes)), dtype=np.int16).reshape([40] * len(axes))
    view = whole[tuple(slice(None, None, step) if step > 0 else slice(more, None, step) for _, step in axes)]
    found = come_back(view)
    np.testing.assert_array_equal(found, view)


def test_arrays_begin_where_wide_registers_want_them() -> None:
    content = np.frombuffer(b"".join(written("one.plan", [WHOLE, WHOLE[1:], np.ones(SMALL, np.int8)])), np.uint8)
    begin = content.__array_interface__["data"][0]
    for found in read("one.plan", memoryview(content)):
        assert (found.__array_interface__["data"][0] - begin) % ALIGNMENT == 0


def test_an_array_is_written_once() -> None:
    once = sum(map(len, written("one.plan", [WHOLE])))
    twice = sum(map(len, written("one.plan", [WHOLE, WHOLE[:], already(WHOLE)])))
    assert twice < once + 1000


def test_what_is_written_lasts_until_it_is() -> None:
    parts = written("one.plan", _Fleeting())
    hold = [np.full(1 << 18, 7, np.int64) for _ in range(4)]  # which would lie where the array was
    np.testing.assert_array_equal(read("one.plan", memoryview(b"".join(parts))), np.arange(1 << 18))
    assert len(hold) == 4


class _Fleeting:
    """Is pickled as an array that nobody else has."""

    def __reduce__(self) -> tuple[Any, ...]:
        return np.asarray, (np.arange(1 << 18),)


def test_what_is_made_later_is_unpickled_when_it_is_asked_for() -> None:
    found = come_back({"now": 1, "later": already(_Told([WHOLE]))})
    before = len(_Told.unpickled)
    assert isinstance(found["later"], Later)
    np.testing.assert_array_equal(found["later"].value.value[0], WHOLE)
    assert found["later"].value is found["later"].value
    assert len(_Told.unpickled) == before + 1


class _Told:
    unpickled: ClassVar[list[object]] = []

    def __init__(self, value: object) -> None:
        self.value = value

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        _Told.unpickled.append(state)


def test_what_was_cut_off_or_changed_is_not_read() -> None:
    content = b"".join(written("one.plan", {"it": WHOLE, "that": ["text"] * 9}))
    head = len(content) - WHOLE.nbytes
    for size in [*range(0, head, 7), len(content) - 1, len(content) - WHOLE.nbytes // 2]:
        assert read("one.plan", memoryview(content)[:size]) is None, size
    for place in range(0, head - ALIGNMENT, 5):
        changed = bytearray(content)
        changed[place] ^= 0x10
        assert read("one.plan", memoryview(changed)) is None, place


def test_what_was_put_in_the_place_of_another_is_not_read() -> None:
    assert come_back([1]) == [1]
    assert read("two.plan", memoryview(b"".join(written("one.plan", [1])))) is None


def test_what_cannot_be_made_is_tried_again() -> None:
    tries: list[int] = []

    def make() -> int:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("not yet")
        return 7

    later = Later(make)
    with pytest.raises(ValueError, match="not yet"):
        _ = later.value
    assert (later.value, later.value, len(tries)) == (7, 7, 2)
