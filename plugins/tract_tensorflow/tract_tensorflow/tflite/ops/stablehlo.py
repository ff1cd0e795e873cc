"""Operators of StableHLO in files of TFLite that are one or a few core operators.

Source: the specification of StableHLO.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.dims import Dim
from tract_core.errors import CorruptModel, Unsupported
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.ops import binary, elementwise
from tract_core.ops.concat import TypedConcat
from tract_core.ops.pad import PadConstant
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.slice import wire_slice
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_dyn_pad, wire_range
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.bodies import joining
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.ops.dilate import spread
from tract_tensorflow.tflite.ops.reduce_window import JOINED, windows_joined
from tract_tensorflow.tflite.registry import TFLITE, TfliteFn, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()

_OF_ONE: Final[dict[str, TypedOp]] = {
    "ABS": elementwise.Abs(),
    "COSINE": elementwise.Cos(),
    "EXPONENTIAL": elementwise.Exp(),
    "FLOOR": elementwise.Floor(),
    "LOG": elementwise.Ln(),
    "LOGISTIC": elementwise.Sigmoid(),
    "NEGATE": elementwise.Neg(),
    "RSQRT": elementwise.Rsqrt(),
    "TANH": elementwise.Tanh(),
}
_OF_TWO: Final[dict[str, TypedOp]] = {
    "ADD": binary.Add(),
    "DIVIDE": binary.Div(),
    "MAXIMUM": binary.Max(),
    "MINIMUM": binary.Min(),
    "MULTIPLY": binary.Mul(),
    "POWER": binary.Pow(),
    "REMAINDER": binary.Rem(),
    "SUBTRACT": binary.Sub(),
}
_LOGICAL: Final[dict[str, tuple[TypedOp, TypedOp]]] = {
    "AND": (binary.And(), binary.BitAnd()),
    "OR": (binary.Or(), binary.BitOr()),
}
"""Of truths, and of bits."""

_COMPARISONS: Final[dict[str, TypedOp]] = {
    "EQ": binary.Eq(),
    "GE": binary.Ge(),
    "GT": binary.Gt(),
    "LE": binary.Le(),
    "LT": binary.Lt(),
    "NE": binary.Ne(),
}


def _of_one(op: TypedOp) -> TfliteFn:
    def wire_one(node: TfliteNode, wire: Wiring) -> OutletId:
        return wire.op(op, wire.input(0))

    return wire_one


def _of_two(of_numbers: TypedOp, of_truths: TypedOp) -> TfliteFn:
    def wire_two(node: TfliteNode, wire: Wiring) -> OutletId:
        is_bool = wire.dtype(wire.input(0)).is_bool()
        return wire.op(of_truths if is_bool else of_numbers, wire.input(0), wire.input(1))

    return wire_two


for _name, _op in _OF_ONE.items():
    ROWS.add(TFLITE, f"STABLEHLO_{_name}", _of_one(_op))
for _name, _op in _OF_TWO.items():
    ROWS.add(TFLITE, f"STABLEHLO_{_name}", _of_two(_op, _op))
for _name, (_truths, _bits) in _LOGICAL.items():
    ROWS.add(TFLITE, f"STABLEHLO_{_name}", _of_two(_bits, _truths))


@tflite_op(ROWS, "STABLEHLO_CBRT")
def cbrt(node: TfliteNode, wire: Wiring) -> Wired:
    """The third root"""
    x = wire.tensor(0)
    return x.sign() * abs(x).op(elementwise.PowConst(1 / 3))


@tflite_op(ROWS, "STABLEHLO_SHIFT_LEFT")
def shift_left(node: TfliteNode, wire: Wiring) -> Wired:
    """The bits moved; by as many places as there are, or more, none is left"""
    x, places = wire.tensor(0), wire.tensor(1)
    bits = 8 * x.dtype.itemsize
    is_inside = (places >= 0) & (places < bits)
    return is_inside.where(x.op(binary.ShiftLeft(), is_inside.where(places, 0)), 0)


@tflite_op(ROWS, "STABLEHLO_CLAMP")
def clamp(node: TfliteNode, wire: Wiring) -> Wired:
    """The second input, kept between the first and the third"""
    return wire.tensor(1).maximum(wire.tensor(0)).minimum(wire.tensor(2))


@tflite_op(ROWS, "STABLEHLO_COMPARE")
def compare(node: TfliteNode, wire: Wiring) -> OutletId:
    """Whether the first input is to the second as the direction says"""
    return wire.op(_COMPARISONS[node.choice("comparison_direction", _COMPARISONS)], wire.input(0), wire.input(1))


@tflite_op(ROWS, "STABLEHLO_CONVERT")
def convert(node: TfliteNode, wire: Wiring) -> Wired:
    """In the type of the output; any number but 0 is true"""
    return wire.tensor(0).cast(_kind(node))


@tflite_op(ROWS, "STABLEHLO_SELECT")
def select(node: TfliteNode, wire: Wiring) -> OutletId:
    """The second input where the first is true, else the third"""
    return wire.select(wire.input(0), wire.input(1), wire.input(2))


@tflite_op(ROWS, "STABLEHLO_CONCATENATE")
def concatenate(node: TfliteNode, wire: Wiring) -> OutletId:
    """The inputs, one after the other along an axis"""
    inputs = wire.all_inputs()
    axis = node.axis("dimension", wire.rank(inputs[0]), 0)
    return inputs[0] if len(inputs) == 1 else wire.op(TypedConcat(axis), *inputs)


@tflite_op(ROWS, "STABLEHLO_RESHAPE")
def reshape(node: TfliteNode, wire: Wiring) -> Wired:
    """In the shape of the output"""
    return wire.tensor(0).reshape(_shape(node))


@tflite_op(ROWS, "STABLEHLO_TRANSPOSE")
def transpose(node: TfliteNode, wire: Wiring) -> Wired:
    """With the axes in another order"""
    x = wire.tensor(0)
    return x.transpose(node.axes("permutation", x.rank, ()))


@tflite_op(ROWS, "STABLEHLO_BROADCAST_IN_DIM")
def broadcast_in_dim(node: TfliteNode, wire: Wiring) -> Wired:
    """Each axis at its place in the shape of the output, over which it stretches"""
    x, shape = wire.tensor(0), _shape(node)
    places = node.axes("broadcast_dimensions", len(shape), ())
    if len(places) != x.rank:
        raise node.misfit("broadcast_dimensions", f"names {len(places)} axes", f"{x.rank} for {x.fact}")
    in_order = x.transpose(sorted(range(x.rank), key=lambda axis: places[axis]))
    return in_order.unsqueeze([axis for axis in range(len(shape)) if axis not in places]).broadcast(shape)


@tflite_op(ROWS, "STABLEHLO_SLICE")
def slice_of(node: TfliteNode, wire: Wiring) -> OutletId:
    """From a place on each axis, in steps, up to and without another one"""
    x = wire.input(0)
    lists = [node.each(name, wire.rank(x)) for name in ("start_indices", "limit_indices", "strides")]
    for axis, (start, end, step) in enumerate(zip(*lists, strict=True)):
        if start < 0 or end < start or step < 1:
            raise CorruptModel(f"STABLEHLO_SLICE from {start} to {end} in steps of {step}")
        x = wire.through(wire_slice, x, axis, start=start, end=end, step=step)
    return x


@tflite_op(ROWS, "STABLEHLO_IOTA")
def iota(node: TfliteNode, wire: Wiring) -> Wired:
    """The places on an axis, in the shape of the output"""
    shape = _shape(node)
    axis = node.axis("iota_dimension", len(shape), 0)
    numbers = Wired(wire, wire.through(wire_range, wire.const(0), wire.const(shape[axis]), wire.const(1)))
    others = [other for other in range(len(shape)) if other != axis]
    return numbers.cast(_kind(node)).unsqueeze(others).broadcast(shape)


@tflite_op(ROWS, "STABLEHLO_PAD")
def pad(node: TfliteNode, wire: Wiring) -> Wired:
    """With an element between those of each axis, and around them; what is negative cuts off"""
    x, value = wire.tensor(0), wire.number(wire.input(1))
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    low, high, between = (node.each(name, x.rank) for name in names)
    if min(between, default=0) < 0:
        raise node.misfit(names[2], f"is {list(between)}", "sizes")
    x = spread(x, tuple(count + 1 for count in between), value)
    zero = PadConstant(Constant(np.zeros((), x.dtype.numpy)))
    return x.through(wire_dyn_pad, wire.const((*low, *high)), zero, value=value)


_REDUCERS: Final[dict[str, Reducer]] = {
    "ADD": Reducer.SUM,
    "AND": Reducer.ALL,
    "MAXIMUM": Reducer.MAX,
    "MINIMUM": Reducer.MIN,
    "MULTIPLY": Reducer.PROD,
    "OR": Reducer.ANY,
}
_WORDS: Final[dict[str, str]] = {"AND": "ALL", "MULTIPLY": "MUL", "OR": "ANY"}
"""What `JOINED` calls an operator, where it is another word."""


@tflite_op(ROWS, "STABLEHLO_REDUCE")
def reduce(node: TfliteNode, wire: Wiring) -> Wired:
    """Axes joined by the operator of a graph, beginning with an element"""
    x, start = wire.tensor(0), wire.tensor(1)
    word, join = _joining(node)
    axes = node.axes("dimensions", x.rank, ())
    if not axes:
        return join(x, start)
    return join(x.op(Reduce(tuple(sorted(axes)), _REDUCERS[word])).squeeze(axes), start)


@tflite_op(ROWS, "STABLEHLO_REDUCE_WINDOW")
def reduce_window(node: TfliteNode, wire: Wiring) -> Wired:
    """Windows joined by the operator of a graph, beginning with an element, of which there are also any around"""
    x, value = wire.tensor(0), wire.number(wire.input(1))
    ones, rank = (1,) * x.rank, x.rank
    names = ("window_strides", "base_dilations", "window_dilations")
    strides, base, distances = (node.integers(name, ones) or ones for name in names)
    pads = node.integers("padding", ()) or (0,) * (2 * rank)
    if len(base) != rank or len(pads) != 2 * rank or min(base, default=1) < 1:
        raise CorruptModel(f"STABLEHLO_REDUCE_WINDOW of {x.fact} has {len(base)} dilations and {len(pads)} pads")
    zero = PadConstant(Constant(np.zeros((), x.dtype.numpy)))
    wide = spread(x, base, value).through(wire_dyn_pad, wire.const((*pads[::2], *pads[1::2])), zero, value=value)
    sizes, start = node.integers("window_dimensions", ()), Wired(wire, value)
    return windows_joined(wide, start, _joining(node)[1], sizes=sizes, strides=strides, distances=distances)


def _joining(node: TfliteNode) -> tuple[str, Callable[[Wired, Wired], Wired]]:
    if len(node.outputs) != 1:
        raise Unsupported(f"{node.op_type} of {len(node.outputs)} tensors at once")
    found = joining(node, "body_subgraph_index")
    word = {"MUL": "MULTIPLY", "LOGICAL_AND": "AND", "LOGICAL_OR": "OR"}.get(found, found)
    if word not in _REDUCERS:
        raise Unsupported(f"{node.op_type} by {found}, wanted one of {', '.join(_REDUCERS)}")
    return word, JOINED[_WORDS.get(word, word)]


def _shape(node: TfliteNode) -> Sequence[Dim]:
    """The shape of the output, which must be known. Raises Unsupported."""
    sizes = [size for size in node.output().shape if size is not None]
    if len(sizes) != len(node.output().shape):
        raise Unsupported(f"{node.op_type}, whose output has sizes that the file does not say")
    return sizes


def _kind(node: TfliteNode) -> DatumType:
    kind = node.output().kind
    if kind is None:
        raise Unsupported(f"{node.op_type} to {node.output().type_name}")
    return kind
