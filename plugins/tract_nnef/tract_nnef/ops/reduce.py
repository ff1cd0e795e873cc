"""Axes reduced to size 1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_core.dims import product
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.ops.reduce import Reduce, Reducer, wire_mean
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, PY, STANDARD, fragments, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()

_STANDARD: Final[Mapping[str, Reducer]] = {
    "max_reduce": Reducer.MAX,
    "min_reduce": Reducer.MIN,
    "argmax_reduce": Reducer.ARG_MAX_FIRST,
    "argmin_reduce": Reducer.ARG_MIN_FIRST,
    "any_reduce": Reducer.ANY,
    "all_reduce": Reducer.ALL,
}
_EXTENDED: Final[Mapping[str, Reducer]] = {
    "tract_core_product_reduce": Reducer.PROD,
    "tract_core_argmax_reduce_last": Reducer.ARG_MAX_LAST,
    "tract_core_argmin_reduce_last": Reducer.ARG_MIN_LAST,
}
_REDUCERS: Final = {**_STANDARD, **_EXTENDED}
_NAMES: Final[Mapping[Reducer, tuple[str, str]]] = {
    Reducer.SUM: ("sum_reduce", STANDARD),
    **{reducer: (name, STANDARD if name in _STANDARD else CORE) for name, reducer in _REDUCERS.items()},
}
_ON_STORED: Final = frozenset({Reducer.MAX, Reducer.MIN, Reducer.ARG_MAX_FIRST, Reducer.ARG_MIN_FIRST})
"""Those that give the same for quantised numbers as for the integers that are stored."""

_DECLARED: Final = "{}(input: tensor<?>, axes: integer[]) -> (output: tensor<?>)"


@reads(ROWS, STANDARD, *map(_DECLARED.format, _STANDARD))
@reads(ROWS, CORE, *map(_DECLARED.format, _EXTENDED))
def read_reduce(call: Call) -> OutletId:
    """The reduction of that name."""
    x, reducer = call.input("input"), _REDUCERS[call.name]
    if reducer not in _ON_STORED:
        x = call.real(x)
    return call.op(Reduce(call.axes("axes", call.rank(x)), reducer), x)


@reads(
    ROWS,
    STANDARD,
    "sum_reduce(input: tensor<scalar>, axes: integer[], normalize: logical = false) -> (output: tensor<scalar>)",
)
def read_sum(call: Call) -> OutletId:
    """The sum, divided by the number of elements with ``normalize``."""
    x = call.real(call.input("input"))
    axes = call.axes("axes", call.rank(x))
    if call.flag("normalize"):
        return wire_mean(call.model, call.unique("mean"), x, axes)
    return call.op(Reduce(axes, Reducer.SUM), x)


fragments(
    ROWS,
    STANDARD,
    """
fragment mean_reduce(input: tensor<scalar>, axes: integer[]) -> (output: tensor<scalar>)
{
    output = sum_reduce(input, axes = axes, normalize = true);
}

fragment moments(input: tensor<scalar>, axes: integer[]) -> (mean: tensor<scalar>, variance: tensor<scalar>)
{
    mean = mean_reduce(input, axes = axes);
    variance = mean_reduce(sqr(input - mean), axes = axes);
}
""",
)


@ROWS.row(NNEF_WRITE, Reduce)
def write_reduce(op: Reduce, node: Spelling) -> Invocation | None:
    """By name and axes; a mean of squares is a mean, of squares, unless that is not the same and can be helped."""
    axes = sorted(op.axes)
    if op.reducer is not Reducer.MEAN_OF_SQUARES:
        name, registry = _NAMES[op.reducer]
        return node.invoke(name, node.input(0), axes=axes, registry=registry)
    square = node.invoke("square", node.input(0))
    if square is None or (node.allows(PY) and not _comes_back(op, node.input_fact(0))):
        return None
    return node.invoke("mean_reduce", node.let("square", square), axes=axes)


def _comes_back(op: Reduce, x: TypedFact) -> bool:
    """Whether declutter makes one mean of squares of a mean, of squares: see its rule."""
    count = product(x.shape[axis] for axis in op.axes)
    return isinstance(count, int) and count > 1 and x.datum_type.storage.itemsize >= 4
