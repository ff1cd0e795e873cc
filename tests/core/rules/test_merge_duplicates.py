from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.dims import symbol
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Mul, Sub
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.elementwise import Exp, LeakyRelu
from tract_core.ops.non_zero import NonZero
from tract_core.ops.topk import Topk
from tract_core.ops.wiring import wire_one
from tract_core.rules import declutter
from tract_core.testing.declutter import checked_declutter, operators, sources


def test_equal_operators_on_one_tensor_are_merged() -> None:
    model, (x,) = sources("B,3,f32")
    a, b = (wire_one(model, f"exp{i}", Exp(), x) for i in range(2))
    model.set_outputs([wire_one(model, "out", Sub(), wire_one(model, "neg", LeakyRelu(0.1), a), b)])
    assert operators(checked_declutter(model, {"B": 2})) == ["Exp", "LeakyRelu", "Sub"]


def test_equal_constants_are_one() -> None:
    model, (x, y) = sources("B,3,f32", "B,3,f32")
    products = [
        wire_one(model, f"p{i}", Add(), x, model.add_const(f"c{i}", np.ones((1, 3), np.float32))) for i in range(2)
    ]
    model.set_outputs([wire_one(model, "a", Sub(), products[0], y), wire_one(model, "b", Mul(), products[1], y)])
    assert operators(checked_declutter(model, {"B": 2})) == ["Add", "Sub", "Mul"]


def test_other_attributes_or_constants_are_something_else() -> None:
    model, (x,) = sources("B,3,f32")
    sums = [wire_one(model, f"s{i}", LeakyRelu(0.1 * (i + 1)), x) for i in range(2)]
    sums += [
        wire_one(model, f"t{i}", Add(), x, model.add_const(f"c{i}", np.full((1, 3), i + 1, np.float32)))
        for i in range(2)
    ]
    model.set_outputs([wire_one(model, "a", Sub(), *sums[:2]), wire_one(model, "b", Mul(), *sums[2:])])
    assert len(operators(checked_declutter(model, {"B": 2}))) == 6


def test_outputs_keep_their_names() -> None:
    model, (x,) = sources("B,3,f32")
    model.set_outputs([wire_one(model, name, Exp(), x) for name in ("first", "second")])
    simple = checked_declutter(model, {"B": 2})
    assert [simple.outlet_name(outlet) for outlet in simple.outputs] == ["first", "second"]
    assert operators(simple) == ["Exp", "Identity"]


def test_several_outputs() -> None:
    model, (x,) = sources("B,5,f32")
    k = model.add_const("k", np.array(2))
    found = [model.wire_node(f"top{i}", Topk(1, True, 2), [x, k]) for i in range(2)]
    model.set_outputs([wire_one(model, "a", Exp(), found[0][0]), found[1][1]])
    simple = checked_declutter(model, {"B": 2})
    assert operators(simple) == ["Topk", "Exp"] or operators(simple) == ["Exp", "Topk"]
    assert simple.outlet_fact(simple.outputs[1]).datum_type is DatumType.I64


@pytest.mark.parametrize("count", [2, 3, 100])
def test_operators_that_bind_one_size_are_merged(count: int) -> None:
    model, (x,) = sources("S,f32")
    found = [wire_one(model, f"places{i}", NonZero(symbol("N")), x) for i in range(count)]
    ones = wire_one(model, "ones", MultiBroadcastTo((symbol("N"),)), model.add_const("one", np.ones(1, np.float32)))
    model.set_outputs([wire_one(model, "product", Mul(), *found[:2]), *found[2:], ones])
    for x_size in (0, 1, 5):
        simple = checked_declutter(model, inputs=[np.arange(x_size, dtype=np.float32)])
        assert operators(simple).count("NonZero") == 1


def test_zeros_of_two_signs_are_not_the_same() -> None:
    model, (x,) = sources("B,3,f32")
    model.set_outputs([wire_one(model, f"leaky{slope}", LeakyRelu(slope), x) for slope in (0.0, -0.0)])
    assert operators(checked_declutter(model, {"B": 2})) == ["LeakyRelu", "LeakyRelu"]


def test_many_are_merged_into_the_output_among_them() -> None:
    model, (x,) = sources("B,3,f32")
    found = [wire_one(model, f"exp{i}", Exp(), x) for i in range(300)]
    total = found[0]
    for i, one in enumerate(found[1:]):
        total = wire_one(model, f"sum{i}", Add(), total, one)
    model.set_outputs([total, found[200]])
    simple = checked_declutter(model, {"B": 1})
    assert operators(simple).count("Exp") == 1
    assert simple.outlet_name(simple.outputs[1]) == "exp200"


def _sums(groups: int, readers: int) -> TypedModel:
    """Tensors that are read by many sums, each with a number of its own."""
    model, (x,) = sources("B,3,f32")
    outputs = []
    for i in range(groups):
        shared = wire_one(model, f"shared{i}", Add(), x, model.add_const(f"k{i}", np.full((1, 3), -1 - i, np.float32)))
        for j in range(readers):
            number = model.add_const(f"c{i}.{j}", np.full((1, 3), 1 + j, np.float32))
            outputs.append(wire_one(model, f"sum{i}.{j}", Add(), shared, number))
    model.set_outputs(outputs)
    return model


def _calls(model: TypedModel) -> int:
    """How many functions written in Python are called while a model is decluttered."""
    count = 0

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        declutter(model, check=False)
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize(("few", "many"), [((1, 50), (1, 200)), ((2, 100), (8, 100)), ((1, 255), (1, 1020))])
def test_the_work_is_linear_in_the_readers(few: tuple[int, int], many: tuple[int, int]) -> None:
    declutter(_sums(1, 3))  # what is made once is there
    assert _calls(_sums(*many)) <= 4.5 * _calls(_sums(*few))
