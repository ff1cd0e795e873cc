from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from tract_core.data import Constant, DatumType, QuantizedType
from tract_core.dims import symbol
from tract_core.model.axes import AxesMapping
from tract_core.model.const import Const
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import MoveAxis
from tract_core.ops.binary import Add, Mul
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cast import Cast
from tract_core.ops.elementwise import Exp
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import wire_one
from tract_core.plugins import Rows
from tract_core.plugins.keys import AXES, REFERENCE, Array
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.declutter import checked_declutter, operators, sources
from tract_core.testing.toys import toy_registry, toy_rows


def test_what_depends_on_constants_only_is_computed() -> None:
    model, (x,) = sources("2,f32")
    total = wire_one(
        model, "sum", Add(), model.add_const("a", np.float32([1, 2])), model.add_const("b", np.float32([3, 5]))
    )
    model.set_outputs([wire_one(model, "out", Mul(), x, total)])
    simple = checked_declutter(model)
    assert operators(simple) == ["Mul"]
    value = simple.constant(simple.node_by_name("out").inputs[1])
    assert value is not None
    np.testing.assert_array_equal(value, [4, 7])


def test_a_small_constant_is_not_unfolded_into_a_large_one() -> None:
    model, (x,) = sources("2048,1024,f32")
    one = model.add_const("one", np.float32(0.5))
    filled = wire_one(model, "filled", MultiBroadcastTo((2048, 1024)), one)
    moved = wire_one(model, "moved", MoveAxis(0, 1), filled)
    from tract_core.ops.einsum import wire_matmul

    model.set_outputs([wire_matmul(model, "out", x, moved)])
    simple = checked_declutter(model, tolerance=None, inputs=[np.ones((2048, 1024), np.float32)])
    held = [node.op.value.array for node in simple.live_nodes() if isinstance(node.op, Const)]
    assert sum(array.size for array in held) <= 2


def test_weights_in_another_type_are_folded_whatever_their_size() -> None:
    model, (x,) = sources("2048,1024,f32")
    half = model.add_const("w", np.full((2048, 1024), 0.5, np.float16))
    weights = wire_one(model, "cast", Cast(model.outlet_fact(x).datum_type), half)
    model.set_outputs([wire_one(model, "out", Add(), x, weights)])
    assert operators(checked_declutter(model)) == ["Add"]


@dataclass(frozen=True)
class Unpack(TypedOp):
    """Bytes -> the two numbers of four bits in each, in ``to``."""

    to: DatumType
    unpacks: ClassVar[bool] = True

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        return (TypedFact.of(self.to, (*inputs[0].shape, 2)),)


UNPACKED = Rows()


@UNPACKED.row(REFERENCE, Unpack)
def unpacked(op: Unpack, packed: Array) -> Array:
    return np.stack([packed & 15, packed >> 4], axis=-1).astype(op.to.numpy)


@UNPACKED.row(AXES, Unpack)
def axes(op: Unpack, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    return AxesMapping.natural([inputs[0].rank], [outputs[0].rank])


@pytest.mark.parametrize("to", [DatumType.F32, DatumType.I64], ids=str)
def test_what_is_packed_stays_packed_however_small(to: DatumType) -> None:
    rows = toy_rows("toy_unpacking", UNPACKED)
    model = TypedModel(registry=toy_registry("unpacking", rows={"reference": rows, "axes": rows}))
    packed = model.add_const("packed", np.arange(6, dtype=np.uint8).reshape(2, 3))
    numbers = wire_one(model, "numbers", Unpack(to), packed)
    assert model.constant(numbers) is None
    model.set_outputs([wire_one(model, "row", Slice(0, 1, 2), numbers)])
    simple = checked_declutter(model)
    assert operators(simple) == ["Unpack"]
    held = simple.constant(simple.node_by_name("row").inputs[0])
    assert held is not None
    np.testing.assert_array_equal(held, np.uint8([[3, 4, 5]]))  # of what is packed, the row that is wanted


def test_views_of_large_constants_are_folded_without_copying() -> None:
    weights = np.ones((4096, 1024), np.float32)
    model, (x,) = sources("1024,1024,f32")
    held = model.add_const("w", Constant(weights))
    for index in range(2):
        part = wire_one(model, f"part{index}", Slice(0, index * 1024, (index + 1) * 1024), held)
        x = wire_one(model, f"add{index}", Add(), x, wire_one(model, f"move{index}", MoveAxis(0, 1), part))
    model.set_outputs([x])
    simple = checked_declutter(model)
    assert operators(simple) == ["Add", "Add"]
    for node in simple.live_nodes():
        if isinstance(node.op, Const):
            assert np.may_share_memory(node.op.value.array, weights)


def test_a_known_shape_becomes_a_constant_of_sizes() -> None:
    model, (x,) = sources("B,3,f32")
    size = symbol("B")
    shape = model.add_const("shape", (size, 3))
    scaled = wire_one(model, "scaled", Mul(), shape, model.add_const("two", np.int64([2, 2])))
    model.set_outputs([x, scaled])
    simple = checked_declutter(model, {"B": 5})
    assert operators(simple) == []
    assert simple.outlet_fact(simple.outputs[1]).dims == (2 * size, 6)
    assert simple.outlet_name(simple.outputs[1]) == "scaled"


def test_a_quantised_value_stays_a_conversion() -> None:
    model, (x,) = sources("2,f32")
    kind = QuantizedType(DatumType.U8, 5, 0.5)
    stored = wire_one(model, "stored", Cast(kind), model.add_const("c", np.float32([1, 2])))
    model.set_outputs([stored, wire_one(model, "out", Exp(), x)])
    model.declutter()
    assert model.outlet_fact(model.outputs[0]).datum_type == kind
    assert TypedSimplePlan(model).run([np.zeros(2, np.float32)])[0].tolist() == [7, 9]
