"""Arrange elements in a shape that is an input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import ClassVar

from tract_core.dims import Dim, exact_div, is_symbolic, product, same_dim
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, vector_of
from tract_core.plugins.keys import AXES, COST, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class DynReshape(TypedOp):
    """The first input in the shape that the second holds; elements keep their order.

    There, -1 stands for the size that is left over, and 0 for the size that the first input has in the same place; with
    ``allow_zero``, 0 is a size. ``sizes``: what the shape of the output will be.
    """

    sizes: tuple[Dim, ...]
    allow_zero: bool = False
    announces: ClassVar[tuple[str, ...]] = ("sizes",)
    judges: ClassVar[tuple[int, ...]] = (1,)
    makes_outputs: ClassVar[bool] = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """A tensor of ``sizes``. Raises FactError unless the shape is as many integers, or the volumes differ."""
        x, shape = arity(self, inputs, 2)
        vector_of(self, shape, len(self.sizes), "shape")
        if same_dim(x.shape.volume, product(self.sizes)) is False:
            raise FactError(f"DynReshape: {x} has {x.shape.volume} elements, [{_text(self.sizes)}] was announced")
        return (x.with_shape(self.sizes),)


@ROWS.row(REFERENCE, DynReshape)
@ROWS.row(SYMBOLIC, DynReshape)
def reference(op: DynReshape, x: Array, shape: Array) -> Array:
    """numpy.reshape"""
    return x.reshape(sizes_now(op, x.shape, shape))


def sizes_now(op: DynReshape, before: Sequence[int], wanted: Array) -> list[int]:
    """The shape of the output, where the input has the shape ``before``. Raises RunError where the volumes differ."""
    found = reshape_sizes(before, [int(size) for size in wanted], allow_zero=op.allow_zero)
    sizes = [int(size) for size in found or ()]
    if found is None or prod(sizes) != prod(before) or min(sizes, default=0) < 0:
        raise RunError(f"{list(before)} cannot be arranged as {wanted.tolist()}")
    return sizes


@ROWS.row(COST, DynReshape)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, DynReshape)
def axes(op: DynReshape, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Nothing can be said."""
    return AxesMapping.disconnected([fact.rank for fact in inputs], [outputs[0].rank])


def reshape_sizes(shape: Sequence[Dim], wanted: Sequence[Dim], *, allow_zero: bool = False) -> tuple[Dim, ...] | None:
    """What ``wanted`` makes of a tensor of ``shape``, where 0 and -1 mean what they mean to `DynReshape`.

    ``None`` where the size that is left over has no expression. Raises FactError for a second -1, a 0 beyond the axes
    of the input, or a volume that cannot be divided.
    """
    if not allow_zero:
        wanted = [_copied(shape, wanted, axis) if _is(size, 0) else size for axis, size in enumerate(wanted)]
    open_axes = [axis for axis, size in enumerate(wanted) if _is(size, -1)]
    if not open_axes:
        return tuple(wanted)
    if len(open_axes) > 1:
        raise FactError(f"[{_text(shape)}] as [{_text(wanted)}]: -1 may stand for one size only")
    others = [size for axis, size in enumerate(wanted) if axis != open_axes[0]]
    size = _left_over(shape, others)
    return None if size is None else tuple(size if axis in open_axes else one for axis, one in enumerate(wanted))


def _left_over(shape: Sequence[Dim], others: Sequence[Dim]) -> Dim | None:
    volume, divisor = _without_common(shape, others)
    exact = exact_div(volume, divisor)
    if exact is not None or is_symbolic(divisor):
        return exact
    rounded = volume // int(divisor) if int(divisor) > 0 else None
    if rounded is None or not may_equal(rounded * divisor, volume):
        raise FactError(
            f"[{_text(shape)}] has {product(shape)} elements, which cannot be divided into sizes [{_text(others)}]",
        )
    return rounded


def _without_common(shape: Sequence[Dim], others: Sequence[Dim]) -> tuple[Dim, Dim]:
    """Both volumes, without the sizes that occur in both: those may be 0, which cannot be divided by."""
    rest = list(shape)
    left: list[Dim] = []
    for size in others:
        if size in rest:
            rest.remove(size)
        else:
            left.append(size)
    return product(rest), product(left)


def _is(size: Dim, number: int) -> bool:
    return not is_symbolic(size) and size == number


def _copied(shape: Sequence[Dim], wanted: Sequence[Dim], axis: int) -> Dim:
    if axis >= len(shape):
        raise FactError(f"[{_text(shape)}] as [{_text(wanted)}]: 0 asks for axis {axis}, which is not there")
    return shape[axis]


def _text(sizes: Sequence[Dim]) -> str:
    return ",".join(map(str, sizes))
