"""Add elements before and after axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from tract_core.data import Constant
from tract_core.dims import Dim
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.limits import check_tensor
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_be_at_most, may_be_zero_only_with
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, same_type, scalar, vector_of
from tract_core.plugins.keys import AXES, COST, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class PadConstant:
    """New elements are ``value``: of rank 0, and of the type of the input."""

    value: Constant


@frozen
class PadReflect:
    """New elements mirror those inside; the one at the edge is not repeated."""

    numpy: ClassVar[Literal["reflect"]] = "reflect"


@frozen
class PadEdge:
    """New elements repeat the one at the edge."""

    numpy: ClassVar[Literal["edge"]] = "edge"


@frozen
class PadWrap:
    """New elements continue from the other end of the axis."""

    numpy: ClassVar[Literal["wrap"]] = "wrap"


PadMode: TypeAlias = PadConstant | PadReflect | PadEdge | PadWrap


@frozen
class Pad(TypedOp):
    """``pads``: for each axis, how many elements are added before and after; not negative."""

    pads: tuple[tuple[Dim, Dim], ...]
    mode: PadMode

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """Larger axes. Raises FactError for pads of another rank, negative ones, or a value of another type."""
        (x,) = arity(self, inputs, 1)
        if len(self.pads) != x.rank:
            raise FactError(f"Pad: {len(self.pads)} pairs of pads for {x}, of rank {x.rank}")
        if any(not may_be_at_most(0, dim) for pair in self.pads for dim in pair):
            raise FactError(f"Pad: negative pads in {_text(self.pads)}", hint="wire_pad slices where pads are negative")
        _check_value(self, x, self.mode)
        if not isinstance(self.mode, PadConstant):
            for size, (before, after) in zip(x.shape, self.pads, strict=True):
                if not may_be_zero_only_with(size, before + after):
                    raise FactError(f"Pad: there is nothing to repeat on an axis of size 0 of {x}")
        shape = [size + before + after for size, (before, after) in zip(x.shape, self.pads, strict=True)]
        return (x.with_shape(shape),)


@frozen
class DynPad(TypedOp):
    """Like `Pad`, with the pads as a second input: first those before every axis, then those after; negative ones cut.

    A third input, of rank 0, replaces the value of `PadConstant`. ``sizes``: what the shape of the output will be.
    """

    mode: PadMode
    sizes: tuple[Dim, ...]
    announces: ClassVar[tuple[str, ...]] = ("sizes",)
    judges: ClassVar[tuple[int, ...]] = (1,)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """A tensor of ``sizes``. Raises FactError unless the pads are two integers per axis."""
        x, pads, *value = arity(self, inputs, 3 if len(inputs) == 3 else 2)
        vector_of(self, pads, 2 * x.rank, "pads")
        if len(self.sizes) != x.rank:
            raise FactError(f"DynPad: {len(self.sizes)} sizes were announced for {x}, of rank {x.rank}")
        for fact in value:
            same_type(self, [x, scalar(self, fact, "value")])
        _check_value(self, x, self.mode)
        return (x.with_shape(self.sizes),)


def _check_value(op: TypedOp, x: TypedFact, mode: PadMode) -> None:
    if not isinstance(mode, PadConstant):
        return
    value = mode.value
    if value.array.ndim != 0 or value.datum_type != x.datum_type.storage:
        raise FactError(f"{op.name}: the value is {value}, wanted one element of the type of {x}")


def _text(pads: Sequence[tuple[Dim, Dim]]) -> str:
    return ", ".join(f"({before}, {after})" for before, after in pads)


@ROWS.row(REFERENCE, Pad)
@ROWS.row(SYMBOLIC, Pad)
def pad(op: Pad, x: Array) -> Array:
    """numpy.pad"""
    return _pad(x, [(int(before), int(after)) for before, after in op.pads], op.mode, _value(op.mode))


@ROWS.row(REFERENCE, DynPad)
def dyn_pad(op: DynPad, x: Array, pads: Array, value: Array | None = None) -> Array:
    """numpy.pad, after the axes with negative pads are cut"""
    kept, grown = kept_and_grown(op, x.shape, pads)
    check_tensor((size + sum(pair) for size, pair in zip(x.shape, grown, strict=True)), x.itemsize)
    inside = x[(*(slice(*ends) for ends in kept), ...)]
    return _pad(inside, grown, op.mode, _value(op.mode) if value is None else value)


def kept_and_grown(
    op: DynPad, shape: Sequence[int], pads: Array
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """For each axis, between which positions elements stay, and how many are added before and after these.

    Raises RunError where more is cut than there is, or nothing is left to repeat.
    """
    befores, afters = pads.reshape(2, len(shape)).tolist()
    kept: list[tuple[int, int]] = []
    for axis, (size, before, after) in enumerate(zip(shape, befores, afters, strict=True)):
        start, end = max(-before, 0), size - max(-after, 0)
        if start > end:
            raise RunError(f"pads {before} and {after} cut more than axis {axis} has, which is {size}")
        if start == end and max(before, after) > 0 and not isinstance(op.mode, PadConstant):
            raise RunError(f"there is nothing to repeat on axis {axis}, of which no element is left")
        kept.append((start, end))
    return kept, [(max(before, 0), max(after, 0)) for before, after in zip(befores, afters, strict=True)]


def _value(mode: PadMode) -> Any:
    return mode.value.array.item() if isinstance(mode, PadConstant) else None


def _pad(x: Array, pads: Sequence[tuple[int, int]], mode: PadMode, value: Any) -> Array:
    if not isinstance(mode, PadConstant):
        return np.pad(x, pads, mode=mode.numpy) if x.ndim else x
    result = np.full([size + sum(pair) for size, pair in zip(x.shape, pads, strict=True)], value, x.dtype)
    result[tuple(slice(before, before + size) for size, (before, _) in zip(x.shape, pads, strict=True))] = x
    return result


@ROWS.row(COST, Pad, DynPad)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, Pad)
def pad_axes(op: Pad, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place; one that grows is disconnected."""
    grown = [axis for axis, pair in enumerate(op.pads) if pair != (0, 0)]
    return AxesMapping.natural_but([inputs[0].rank], [outputs[0].rank], grown)


@ROWS.row(AXES, DynPad)
def dyn_pad_axes(op: DynPad, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Nothing can be said: any axis may grow."""
    return AxesMapping.disconnected([fact.rank for fact in inputs], [outputs[0].rank])
