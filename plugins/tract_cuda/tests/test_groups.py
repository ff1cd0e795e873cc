"""Which nodes kernels of the GPU compiler compute together."""

from __future__ import annotations

import numpy as np
import pytest
from tract_cuda.compile import after
from tract_cuda.group.grouping import CudaGrouper
from tract_cuda.group.groups import Host
from tract_cuda.language.arch import ARCHS
from tract_cuda.lowering import Target

from tract_core.compile.check import group_faults
from tract_core.data import DatumType
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis
from tract_core.ops.binary import Add, Div, Max, Mul, Sub
from tract_core.ops.cast import Cast
from tract_core.ops.elementwise import Exp, Tanh
from tract_core.ops.random import Distribution, RandomLike
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.runtime.host import host_nodes

TARGET = Target(ARCHS[0])


def wired(model: TypedModel, name: str, op, *inputs: OutletId) -> OutletId:
    (found,) = model.wire_node(name, op, inputs)
    return found


def groups(model: TypedModel, refused: dict[int, str] | None = None) -> list[tuple[str, ...]]:
    """The kind of each group, and the names of its nodes; groups hold together."""
    found = CudaGrouper(model, list(host_nodes(model)), TARGET, refused or {}).found()
    assert not list(group_faults(model, found))
    return [(one.kind, *(model.nodes[node].name for node in one.nodes)) for one in found]


def source(model: TypedModel, fact: str, name: str = "x") -> OutletId:
    return model.add_source(name, parse_typed_fact(fact, model.symbols))


def softmax() -> TypedModel:
    model = TypedModel()
    x = source(model, "B,130,f32")
    most = wired(model, "most", Reduce((1,), Reducer.MAX), x)
    powers = wired(model, "powers", Exp(), wired(model, "shifted", Sub(), x, most))
    total = wired(model, "total", Reduce((1,), Reducer.SUM), powers)
    model.set_outputs([wired(model, "share", Div(), powers, total)])
    return model


def test_what_reduces_and_computes_along_the_same_axes_is_one_group() -> None:
    assert groups(softmax()) == [("reduced", "most", "shifted", "powers", "total", "share")]


def test_a_group_that_no_kernel_computes_is_left_to_the_host_from_its_first_node_on() -> None:
    model = softmax()
    (most,) = (node.id for node in model.nodes if node.name == "most")
    found = groups(model, {most: "for a reason"})
    assert found == [("host", "most"), ("reduced", "shifted", "powers", "total", "share")]
    first = CudaGrouper(model, list(host_nodes(model)), TARGET, {most: "for a reason"}).found()[0]
    assert isinstance(first, Host)
    assert first.why == "for a reason"


def test_a_chain_ends_before_what_others_read() -> None:
    model = TypedModel()
    x = source(model, "5,f32")
    a = wired(model, "a", Exp(), x)
    b = wired(model, "b", Tanh(), a)
    c = wired(model, "c", Mul(), b, x)
    model.set_outputs([c, wired(model, "d", Max(), b, x)])
    assert groups(model) == [("elements", "a", "b"), ("elements", "c"), ("elements", "d")]


def test_a_small_operand_is_computed_before_its_turn() -> None:
    model = TypedModel()
    x, y = source(model, "4,5,f32"), source(model, "5,f32", "y")
    a = wired(model, "a", Exp(), x)
    b = wired(model, "b", AddAxis(0), wired(model, "small", Tanh(), y))
    model.set_outputs([wired(model, "c", Add(), a, b)])
    assert groups(model) == [("elements", "small"), ("alone", "b"), ("elements", "a", "c")]


@pytest.mark.parametrize(
    ("fact", "op", "why"),
    [
        ("3,string", Cast(DatumType.F32), "native code does not know string"),
        ("3,complex_f32", Reduce((0,), Reducer.SUM), "native code only moves and converts complex_f32"),
        (
            "3,f32",
            RandomLike(Distribution.UNIFORM, 0.0, 1.0, DatumType.F32, 0),
            "there is no kernel for this operator yet",
        ),
    ],
    ids=lambda one: str(one)[:20],
)
def test_what_no_kernel_computes_says_why(fact, op, why) -> None:
    model = TypedModel()
    model.set_outputs([wired(model, "y", op, source(model, fact))])
    (group,) = CudaGrouper(model, list(host_nodes(model)), TARGET, {}).found()
    assert isinstance(group, Host)
    assert group.why == why


def test_groups_as_text() -> None:
    model = TypedModel()
    x = source(model, "2,5,f32")
    weight = model.add_const("weight", np.ones((1, 5), np.float32))
    model.set_outputs([wired(model, "sum", Reduce((1,), Reducer.SUM), wired(model, "product", Mul(), x, weight))])
    assert after("group", model, TARGET).text().splitlines() == [
        "   0 reduced product, sum",
        "       along axes 1 of 2,5",
        "       0 = x, f32",
        "       1 = weight, f32",
        "       2 = Mul(0, 1), f32",
        "       3 = sum of 2, f32",
    ]
