"""What element-wise operators refuse, and how they treat the ends of a type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.errors import FactError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.elementwise import Abs, BitNot, Neg, Not, Square

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(("kind", "wanted"), [("u2", [3, 2, 0]), ("u4", [15, 14, 12]), ("i4", [-1, -2, -4])])
def test_bits_of_less_than_a_byte(run_op: Callable[..., list[Array]], kind: str, wanted: list[int]) -> None:
    x = np.array([0, 1, 3], np.int8).astype(DatumType.parse(kind).numpy)
    (found,) = run_op(BitNot(), [x])
    assert (found.dtype, found.astype(np.int8).tolist()) == (x.dtype, wanted)


def test_a_condition_of_rank_0_is_known_early() -> None:
    model = TypedModel()
    (outlet,) = model.wire_node("not", Not(), [model.add_const("yes", np.array(True))])
    assert model.constant(outlet) == np.array(False)


@pytest.mark.parametrize("op", [Abs(), Neg(), Square()])
def test_stored_integers_are_not_taken_for_quantised_numbers(op: Any) -> None:
    with pytest.raises(FactError, match=r"wants plain numbers, found 2,QU8\(Z:5 S:0.5\)"):
        op.output_facts([parse_typed_fact("2,QU8(Z:5 S:0.5)")])
