"""Large values in files: what is computed of constants while somebody asks for that."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tract_core.data import scratch
from tract_core.data.scratch import LARGE, computed_of, large_values_in
from tract_core.data.stored import mapped_around
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Mul
from tract_core.ops.wiring import wire_one
from tract_core.plugins import default_registry

ROWS = LARGE // (4 * 256)


def folded() -> np.ndarray:
    """What a product of two constants becomes."""
    model = TypedModel(registry=default_registry())
    x = model.add_const("x", np.arange(ROWS * 256, dtype=np.float32).reshape(ROWS, 256))
    y = model.add_const("y", np.full((1, 256), 2, np.float32))
    model.set_outputs([wire_one(model, "product", Mul(), x, y)])
    model.declutter()
    found = model.constant(model.outputs[0])
    assert found is not None
    return found


def test_a_large_value_is_in_a_file_of_the_folder_that_has_no_name(tmp_path: Path) -> None:
    assert mapped_around(folded()) is None
    with large_values_in(tmp_path):
        found = folded()
    assert mapped_around(found) is not None
    assert list(tmp_path.iterdir()) == []
    assert not found.flags.writeable
    np.testing.assert_array_equal(found, 2 * np.arange(ROWS * 256, dtype=np.float32).reshape(ROWS, 256))


def test_small_values_and_views_on_files_stay_where_they_are(tmp_path: Path) -> None:
    with large_values_in(tmp_path):
        small = np.zeros(LARGE - 1, np.uint8)
        assert computed_of([], small) is small
        large = computed_of([], np.zeros(LARGE, np.uint8))
        assert computed_of([large], large[::-1]).base is not None
        assert mapped_around(computed_of([large], large[::-1])) is mapped_around(large)


def test_without_room_in_the_folder_values_stay_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: Any) -> Any:
        raise OSError(errno.ENOSPC, "no space left on device")

    monkeypatch.setattr(scratch, "TemporaryFile", full)
    array = np.ones(LARGE, np.uint8)
    with large_values_in(tmp_path):
        assert computed_of([], array) is array


def test_there_are_so_many_files_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "MOST", 1)
    with large_values_in(tmp_path):
        placed = [mapped_around(computed_of([], np.ones(LARGE, np.uint8))) is not None for _ in range(2)]
    assert placed == [True, False]
