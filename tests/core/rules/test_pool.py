from __future__ import annotations

import pytest

from tract_core.data import DatumType
from tract_core.ops.conv import Conv
from tract_core.ops.deconv import Deconv
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import DataFormat, Explicit, ExplicitOnnxPool, Padding, PoolSpec, Valid
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, sources


def _spec(padding: Padding) -> PoolSpec:
    return PoolSpec(DataFormat.NCHW, (3, 3), padding, (), (2, 2))


@pytest.mark.parametrize(("read", "outputs"), [((0,), 1), ((0, 1), 2)])
def test_indices_that_nothing_reads_are_not_computed(read: tuple[int, ...], outputs: int) -> None:
    model, (x,) = sources("B,2,7,7,f32")
    found = model.wire_node("pool", MaxPool(_spec(Valid()), DatumType.I64), [x])
    model.set_outputs([found[slot] for slot in read])
    simple = checked_declutter(model, {"B": 2})
    assert len(simple.node_by_name("pool").outputs) == outputs


@pytest.mark.parametrize(
    ("size", "padding", "wanted"),
    [
        (7, ExplicitOnnxPool((1, 1), (1, 1)), Explicit((1, 1), (1, 1))),
        (7, ExplicitOnnxPool((0, 0), (0, 0)), Valid()),
        (7, ExplicitOnnxPool((0, 0), (0, 0), True), Valid()),
        (8, ExplicitOnnxPool((0, 0), (0, 0), True), ExplicitOnnxPool((0, 0), (0, 0), True)),
        (2, ExplicitOnnxPool((0, 0), (0, 0), True), ExplicitOnnxPool((0, 0), (0, 0), True)),
        (8, Explicit((0, 0), (0, 0)), Valid()),
    ],
    ids=str,
)
def test_paddings_are_told_plainly(size: int, padding: Padding, wanted: Padding) -> None:
    model, (x,) = sources(f"B,2,{size},{size},f32")
    model.set_outputs([wire_one(model, "pool", SumPool(_spec(padding)), x)])
    op = checked_declutter(model, {"B": 2}).node_by_name("pool").op
    assert isinstance(op, SumPool)
    assert op.pool.padding == wanted


@pytest.mark.parametrize("kind", [Conv, Deconv])
def test_convolutions_padded_by_nothing_are_not_padded(kind: type[Conv | Deconv]) -> None:
    model, (x, kernel, bias) = sources("B,2,7,7,f32", "3,2,3,3,f32", "f32")
    padding = Explicit((0, 0), (0, 0))
    model.set_outputs([wire_one(model, "conv", kind(_spec(padding)), x, kernel, bias)])
    op = checked_declutter(model, {"B": 2}).node_by_name("conv").op
    assert isinstance(op, kind)
    assert op.pool.padding == Valid()
