from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.ops.concat import TypedConcat
from tract_core.ops.einsum import EinSum
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources

SIZES = {"B": 2, "S": 3}


@pytest.mark.parametrize(
    ("axis", "kind", "wanted"),
    [
        (1, "f32", ["EinSum", "EinSum", "Add"]),
        (0, "f32", ["TypedConcat", "EinSum"]),
        (1, "f16", ["TypedConcat", "EinSum"]),
    ],
)
def test_pieces_of_a_contracted_axis_are_summed_apart(axis: int, kind: str, wanted: list[str]) -> None:
    model, (x, y) = sources(f"B,3,{kind}", f"B,{2 if axis else 3},{kind}")
    joined = wire_one(model, "join", TypedConcat(axis), x, y)
    depth = 5 if axis else 3
    values: Any = np.random.default_rng(1).uniform(-1, 1, (depth, 4))
    weights = model.add_const("w", values.astype(DatumType.parse(kind).numpy))
    op = EinSum(AxesMapping.parse("bk,kn->bn"), DatumType.F32)
    model.set_outputs([wire_one(model, "out", op, joined, weights)])
    assert operators(checked_declutter(model, SIZES)) == wanted


def test_symbolic_pieces() -> None:
    model, (x, y, z) = sources("B,S,f32", "B,2,f32", "S+2,4,f32")
    joined = wire_one(model, "join", TypedConcat(1), x, y)
    op = EinSum(AxesMapping.parse("bk,kn->bn"), DatumType.F32)
    model.set_outputs([wire_one(model, "out", op, joined, z)])
    assert sorted(operators(checked_declutter(model, SIZES))) == ["Add", "EinSum", "EinSum", "Slice", "Slice"]
