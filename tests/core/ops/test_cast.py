"""What conversions refuse, and what becomes of numbers that do not fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.errors import FactError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.cast import Cast

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("to", "wanted"),
    [
        ("u8", [0, 255, 0, 255, 0, 3]),
        ("i8", [0, 127, -128, 127, -128, 3]),
        ("i32", [0, 2**31 - 1, -(2**31), 300, -300, 3]),
        ("i64", [0, 2**63 - 1, -(2**63), 300, -300, 3]),
        ("u64", [0, 2**64 - 1, 0, 300, 0, 3]),
    ],
)
@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float32", "float64"])
def test_floats_stop_at_the_ends_of_the_range(
    run_op: Callable[..., list[Array]], kind: str, to: str, wanted: list[int]
) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 300, -300, 3.75]).astype(np.dtype(kind))
    (found,) = run_op(Cast(DatumType.parse(to)), [x])
    assert found.tolist() == wanted


def test_integers_wrap_around(run_op: Callable[..., list[Array]]) -> None:
    x = np.array([-1, 300, 17], np.int32)
    assert run_op(Cast(DatumType.U8), [x])[0].tolist() == [255, 44, 17]
    four = np.array([-1, -8, 7], np.int8).astype(DatumType.I4.numpy)
    assert run_op(Cast(DatumType.U4), [four])[0].astype(np.int8).tolist() == [15, 8, 7]


def test_texts_become_the_largest_integers(run_op: Callable[..., list[Array]]) -> None:
    x = np.array([str(2**64 - 1)], object)
    assert run_op(Cast(DatumType.U64), [x])[0].tolist() == [2**64 - 1]


@pytest.mark.parametrize("to", ["f32", "i64"])
def test_no_imaginary_part_is_lost(to: str) -> None:
    with pytest.raises(FactError, match="would lose the imaginary part"):
        Cast(DatumType.parse(to)).output_facts([parse_typed_fact("2,complex_f32")])
