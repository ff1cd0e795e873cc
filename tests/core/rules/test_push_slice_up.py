from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.const import Const
from tract_core.ops.binary import Add
from tract_core.ops.conv import Conv
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Exp, Sigmoid, Tanh
from tract_core.ops.pool_spec import DataFormat, PoolSpec
from tract_core.ops.slice import Slice
from tract_core.ops.softmax import Softmax
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources
from tract_core.testing.tolerance import Tolerance

SIZES = {"B": 2, "S": 3}
PRODUCT = EinSum(AxesMapping.parse("bk,kn->bn"), DatumType.F32)


def _weights(*shape: int) -> Any:
    return np.random.default_rng(5).uniform(-1, 1, shape).astype(np.float32)


def test_a_slice_goes_before_what_keeps_its_axis() -> None:
    model, (x, y) = sources("B,S,8,f32", "1,1,8,f32")
    z = wire_one(model, "sum", Add(), wire_one(model, "exp", Exp(), x), y)
    model.set_outputs([wire_one(model, "out", Slice(2, 1, 3), z)])
    simple = checked_declutter(model, SIZES)
    assert simple.outlet_fact(simple.node_by_name("out").inputs[0]).shape[2] == 2
    assert sorted(operators(simple)) == ["Add", "Exp", "Slice", "Slice"]


def test_operands_without_the_axis_are_not_sliced() -> None:
    model, (x, y) = sources("B,S,8,f32", "B,S,1,f32")
    z = wire_one(model, "sum", Add(), x, y)
    model.set_outputs([wire_one(model, "out", Slice(2, 1, 3), z)])
    assert operators(checked_declutter(model, SIZES)) == ["Slice", "Add"]


def test_gates_are_computed_apart() -> None:
    model, (x,) = sources("B,4,f32")
    gates = wire_one(model, "gates", PRODUCT, x, model.add_const("w", _weights(4, 6)))
    gates = wire_one(model, "biased", Add(), gates, model.add_const("bias", _weights(1, 6)))
    first, second = (wire_one(model, f"gate{i}", Slice(1, 3 * i, 3 * i + 3), gates) for i in range(2))
    model.set_outputs([wire_one(model, "sigmoid", Sigmoid(), first), wire_one(model, "tanh", Tanh(), second)])
    simple = checked_declutter(model, SIZES)
    assert sorted(operators(simple)) == ["Add", "Add", "EinSum", "EinSum", "Sigmoid", "Tanh"]
    held = [node.op.value.array.shape for node in simple.live_nodes() if isinstance(node.op, Const)]
    assert sorted(held) == [(1, 3), (1, 3), (4, 3), (4, 3)]


def test_slices_that_overlap_stay_behind() -> None:
    model, (x,) = sources("B,4,f32")
    y = wire_one(model, "exp", Exp(), x)
    model.set_outputs([wire_one(model, f"s{i}", Slice(1, i, i + 2), y) for i in range(2)])
    assert operators(checked_declutter(model, SIZES)) == ["Exp", "Slice", "Slice"]


def test_what_is_read_otherwise_too_is_computed_in_full() -> None:
    model, (x,) = sources("B,4,f32")
    y = wire_one(model, "exp", Exp(), x)
    model.set_outputs([wire_one(model, "s", Slice(1, 0, 2), y), wire_one(model, "t", Tanh(), y)])
    assert sorted(operators(checked_declutter(model, SIZES))) == ["Exp", "Slice", "Tanh"]


@pytest.mark.parametrize(("axis", "wanted"), [(0, ["Slice", "Softmax"]), (1, ["Softmax", "Slice"])])
def test_axes_that_are_mixed_hold_it_back(axis: int, wanted: list[str]) -> None:
    model, (x,) = sources("4,4,f32")
    y = wire_one(model, "soft", Softmax((1,)), x)
    model.set_outputs([wire_one(model, "out", Slice(axis, 1, 3), y)])
    assert operators(checked_declutter(model)) == wanted


@pytest.mark.parametrize("said", [4, None])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_convolutions_compute_fewer_channels(axis: int, said: int | None) -> None:
    model, (x,) = sources("3,2,9,f32")
    spec = PoolSpec(DataFormat.NCHW, (3,), input_channels=2, output_channels=said)
    kernel, bias = model.add_const("w", _weights(4, 2, 3)), model.add_const("b", _weights(4))
    y = wire_one(model, "conv", Conv(spec), x, kernel, bias)
    model.set_outputs([wire_one(model, "out", Slice(axis, 1, 3), y)])
    simple = checked_declutter(model, tolerance=Tolerance(1e-5, 1e-4))
    wanted = {0: ["Slice", "Conv"], 1: ["Conv"], 2: ["Conv", "Slice"]}
    assert operators(simple) == wanted[axis]
    (op,) = (node.op for node in simple.live_nodes() if isinstance(node.op, Conv))
    assert op.pool.output_channels == (said and (2 if axis == 1 else said))
