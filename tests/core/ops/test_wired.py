"""Arithmetic on tensors of a model under construction, compared with the same arithmetic in NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.dims import symbol
from tract_core.errors import FactError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.einsum import wire_matmul
from tract_core.ops.elementwise import Tanh
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.wired import Wired
from tract_core.runtime.plan import TypedSimplePlan


def wired(*facts: str) -> list[Wired]:
    """Inputs of a new model."""
    model = TypedModel()
    for name in ("B", "S"):
        model.symbols.add(name)
    wire = NodeWiring(model, "node")
    return [Wired(wire, model.add_source(f"x{place}", parse_typed_fact(fact))) for place, fact in enumerate(facts)]


def computed(result: Wired, *arrays: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """What the model of ``result`` computes."""
    result.wire.model.set_outputs([result.outlet])
    (found,) = TypedSimplePlan(result.wire.model).run(list(arrays))
    return np.asarray(found)


X = np.array([-2.5, -0.0, 0.5, 3.0, np.inf, np.nan], "f4")
Y = np.array([1.5, 2.0, -0.5, 0.0, 1.0, 2.0], "f4")

OF_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / y,
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    ">": lambda x, y: x > y,
    ">=": lambda x, y: x >= y,
    "& | ^": lambda x, y: ((x < y) & (x > -1)) | ((y < 1) ^ (x < 0)),
    "~": lambda x, y: ~(x < y),
    "numbers": lambda x, y: (2 - x) * 3 + y / 4 - 1 / (y + 8),
    "abs and minus": lambda x, y: abs(x) - -y,
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("function", OF_TWO.values(), ids=OF_TWO)
def test_operators_of_python_are_those_of_numpy(function: Callable[[Any, Any], Any]) -> None:
    x, y = wired("6,f32", "6,f32")
    np.testing.assert_array_equal(computed(function(x, y), X, Y), function(X, Y), strict=True)


METHODS: dict[str, tuple[Callable[[Wired], Wired], Callable[[Any], Any]]] = {
    "ceil": (lambda x: x.ceil(), np.ceil),
    "cos": (lambda x: x.cos(), np.cos),
    "exp": (lambda x: x.exp(), np.exp),
    "floor": (lambda x: x.floor(), np.floor),
    "log": (lambda x: abs(x).log(), lambda x: np.log(np.abs(x))),
    "reciprocal": (lambda x: x.reciprocal(), lambda x: 1 / x),
    "round": (lambda x: x.round_half_to_even(), np.rint),
    "rsqrt": (lambda x: abs(x).rsqrt(), lambda x: 1 / np.sqrt(np.abs(x))),
    "sigmoid": (lambda x: x.sigmoid(), lambda x: 1 / (1 + np.exp(-x))),
    "sign": (lambda x: x.sign(), np.sign),
    "sin": (lambda x: x.sin(), np.sin),
    "sqrt": (lambda x: abs(x).sqrt(), lambda x: np.sqrt(np.abs(x))),
    "square": (lambda x: x.square(), np.square),
    "tan": (lambda x: x.tan(), np.tan),
    "tanh": (lambda x: x.tanh(), np.tanh),
    "power": (lambda x: abs(x) ** 2.5, lambda x: np.abs(x) ** 2.5),
    "power of a number": (lambda x: 2**x, lambda x: 2.0**x),
    "maximum": (lambda x: x.maximum(0.25), lambda x: np.maximum(x, 0.25)),
    "minimum": (lambda x: x.minimum(0.25), lambda x: np.minimum(x, 0.25)),
    "is_nan": (lambda x: x.is_nan(), np.isnan),
    "eq": (lambda x: x.eq(0.5), lambda x: x == 0.5),
    "ne": (lambda x: x.ne(0.5), lambda x: x != 0.5),
    "where": (lambda x: (x < 0).where(-1, x), lambda x: np.where(x < 0, -1, x)),
    "where, a number else": (lambda x: (x < 0).where(x, 7), lambda x: np.where(x < 0, x, 7)),
    "cast": (lambda x: x.cast(DatumType.F64) * 2, lambda x: x.astype("f8") * 2),
    "an operator": (lambda x: x.op(Tanh()), np.tanh),
    "an array": (lambda x: np.array([[1], [2]], "f4") * x, lambda x: np.array([[1], [2]], "f4") * x),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("wire", "numpy"), METHODS.values(), ids=METHODS)
def test_methods_are_the_functions_of_numpy(wire: Callable[[Wired], Wired], numpy: Callable[[Any], Any]) -> None:
    (x,) = wired("5,f32")
    array = np.array([-2.5, -1.0, 0.5, 3.0, np.nan], "f4")
    found, wanted = computed(wire(x), array), numpy(array.astype("f8"))
    np.testing.assert_allclose(found.astype("f8"), wanted.astype("f8"), rtol=1e-6)  # f32 is compared with f64


PARTS: dict[str, Callable[[Any], Any]] = {
    "a position": lambda x: x[1],
    "the last position": lambda x: x[..., -1],
    "a range": lambda x: x[..., 1:3],
    "from": lambda x: x[..., 2:],
    "all but the last": lambda x: x[..., :-1],
    "nothing": lambda x: x[:, 1:1],
    "everything": lambda x: x[...],
    "a new axis": lambda x: x[:, None],
    "new axes at the ends": lambda x: x[None, ..., None],
    "all of it": lambda x: x[None, 1, :, None, -2:],
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_parts_are_those_of_numpy(part: Callable[[Any], Any]) -> None:
    (x,) = wired("2,3,4,f32")
    array = np.arange(24, dtype="f4").reshape(2, 3, 4)
    np.testing.assert_array_equal(computed(part(x), array), part(array), strict=True)


def test_parts_of_symbolic_axes_have_symbolic_sizes() -> None:
    (x,) = wired("B,S,4,f32")
    assert str(x[:, 1:].fact) == "B,S-1,4,f32"
    assert str(x[:, -1].fact) == "B,4,f32"
    assert str(x[:, : symbol("S") - 2, 1:].fact) == "B,S-2,3,f32"


@pytest.mark.parametrize("size", [0, 1, 2, 3])
def test_shapes_and_reductions(size: int) -> None:
    (x,) = wired("B,2,3,f32")
    array = np.arange(size * 6, dtype="f4").reshape(size, 2, 3)
    y = x.transpose([2, 0, 1]).reshape((3, symbol("B") * 2)).unsqueeze([0])
    found = y - y.sum([1]) + y.max([1]) * y.min([1]) + y.mean_of_squares([1]) / y.mean([1])
    found = found.concat([y.argmax([1]).cast(DatumType.F32)], -2).squeeze([0])
    z = array.transpose(2, 0, 1).reshape(3, size * 2).astype("f8")
    wanted = z - z.sum(0) + z.max(0) * z.min(0) + (z * z).mean(0) / z.mean(0)
    np.testing.assert_allclose(computed(found, array), [*wanted, z.argmax(0)], rtol=1e-6)


def test_operands_of_other_ranks_stretch_and_helpers_of_the_core_take_part() -> None:
    x, y = wired("2,3,f32", "3,f32")
    a, b = np.arange(6, dtype="f4").reshape(2, 3), np.array([1, 2, 3], "f4")
    product = (x + y).through(wire_matmul, x.transpose([1, 0]).outlet)
    np.testing.assert_array_equal(computed(product, a, b), (a + b) @ a.T, strict=True)


def test_sizes_are_constants_that_may_be_symbolic() -> None:
    (x,) = wired("B,i64")
    found = (symbol("B") - x) * 2
    np.testing.assert_array_equal(computed(found, np.array([0, 1, 5])), [6, 4, -4])


def test_what_is_known_is_computed_while_it_is_wired() -> None:
    model = TypedModel()
    x = Wired(NodeWiring(model, "node"), model.add_const("x", np.array([1, 2, 3])))
    known = ((x + 1) * x)[1:].fact.constant
    assert known is not None
    np.testing.assert_array_equal(known, [6, 12])


def test_nodes_are_named_after_the_node_and_the_operator() -> None:
    (x,) = wired("2,f32")
    (x * 2 + 1).exp()
    names = [node.name for node in x.wire.model.nodes]
    assert names == ["x0", "node.const", "node.mul", "node.const.1", "node.add", "node.exp"]


def test_two_that_stand_for_one_tensor_are_equal_and_none_has_a_truth_value() -> None:
    x, y = wired("2,f32", "2,f32")
    assert x == Wired(x.wire, x.outlet)
    assert x != y
    with pytest.raises(TypeError, match="no truth value before a run"):
        bool(x < y)


REFUSED: dict[str, tuple[Callable[[Wired], object], type[Exception], str]] = {
    "a number that the type has not": (lambda x: x.cast(DatumType.I32) + 0.5, FactError, "0.5 is no i32"),
    "too many parts": (lambda x: x[0, 0, 0], FactError, r"\[0, 0, 0\] is no part of a tensor of 2 axes"),
    "dots twice": (lambda x: x[..., 0, ...], FactError, "is no part of a tensor of 2 axes"),
    "a part outside": (lambda x: x[:, 2:9], FactError, "2 to 9 is no range of axis 1"),
    "a step": (lambda x: x[::2], TypeError, "no step"),
    "two numbers": (lambda x: (x < 0).where(1, 2), TypeError, "has no element type"),
    "types that differ": (lambda x: x + x.cast(DatumType.F64), FactError, "f32"),
    "an axis that is not there": (lambda x: x.concat([x], 2), FactError, "axis 2 is outside a tensor of 2 axes"),
}


@pytest.mark.parametrize(("wire", "kind", "message"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_is_refused(wire: Callable[[Wired], object], kind: type[Exception], message: str) -> None:
    (x,) = wired("2,3,f32")
    with pytest.raises(kind, match=message):
        wire(x)
