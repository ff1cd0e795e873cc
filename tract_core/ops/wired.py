"""Arithmetic on tensors of a model under construction: ``x * scale + bias`` adds the operators that compute it.

    x = Wired(wire, wire.input(0))
    y = (x < 0).where(x * slope, x)
    return y.outlet

Each operation adds its nodes at once, in the order in which Python evaluates them; their facts are known right away.
Operands of different ranks and sizes stretch as in NumPy. A number takes the element type of the tensor that it meets,
and raises FactError where that has no such number; an array, or a symbolic size, is a constant of its own type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import EllipsisType
from typing import Concatenate, ParamSpec, TypeAlias

import numpy as np

from tract_core.data import DType
from tract_core.dims import Dim, TDim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.fact import ShapeFact, TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops import binary, elementwise
from tract_core.ops.concat import TypedConcat
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.reduce import Reduce, Reducer, wire_mean
from tract_core.ops.slice import Slice
from tract_core.plugins.keys import Array

P = ParamSpec("P")

Operand: TypeAlias = "Wired | Array | TDim | float"
"""What a tensor can be computed with."""

Results: TypeAlias = "OutletId | Wired | Sequence[OutletId | Wired | None]"
"""What a row of a frontend returns: its result, or one for each output, ``None`` for one that is not computed."""

Part: TypeAlias = "int | slice | EllipsisType | None"
"""What stands for one axis between the brackets of ``x[...]``."""


def _of_one(op: TypedOp) -> Callable[[Wired], Wired]:
    """A method that is an operator of one tensor."""

    def method(self: Wired) -> Wired:
        return self.op(op)

    return method


def _of_two(op: TypedOp) -> Callable[[Wired, Operand], Wired]:
    """A method that is an operator of two tensors; a number may be the second one."""

    def method(self: Wired, other: Operand) -> Wired:
        return self.with_outlet(self.wire.binary(op, self.outlet, self.operand(other).outlet))

    return method


def _reflected(op: TypedOp) -> Callable[[Wired, Array | TDim | float], Wired]:
    """The same, of a number and a tensor."""

    def method(self: Wired, other: Array | TDim | float) -> Wired:
        return self.with_outlet(self.wire.binary(op, self.operand(other).outlet, self.outlet))

    return method


def _along(reducer: Reducer) -> Callable[[Wired, Iterable[int]], Wired]:
    """A method that reduces axes, which keep size 1."""

    def method(self: Wired, axes: Iterable[int]) -> Wired:
        return self.op(Reduce(tuple(axes), reducer))

    return method


@frozen
class Wired:
    """A tensor of a model under construction. ``wire``: where its nodes are added."""

    wire: NodeWiring
    outlet: OutletId

    # NumPy leaves `array * x` to `__rmul__` of x.
    __array_ufunc__ = None

    # --- what is known ---

    @property
    def fact(self) -> TypedFact:
        """Type, shape, and value where known."""
        return self.wire.fact(self.outlet)

    @property
    def shape(self) -> ShapeFact:
        """The sizes, outermost first."""
        return self.fact.shape

    @property
    def rank(self) -> int:
        """The number of axes."""
        return self.fact.rank

    @property
    def dtype(self) -> DType:
        """The element type."""
        return self.fact.datum_type

    # --- operands ---

    def with_outlet(self, outlet: OutletId) -> Wired:
        """Another tensor of the same model."""
        return Wired(self.wire, outlet)

    def like(self, value: float) -> Wired:
        """A number in this element type, with as many axes (of size 1). Raises FactError where it is none."""
        return self.with_outlet(self.wire.scalar(value, self.outlet))

    def operand(self, other: Operand) -> Wired:
        """What stands beside this tensor: a number as one of its type, an array or a size as a constant."""
        if isinstance(other, Wired):
            return other
        return self.with_outlet(self.wire.const(other)) if isinstance(other, (np.ndarray, TDim)) else self.like(other)

    # --- any operator ---

    def op(self, op: TypedOp, *others: Wired) -> Wired:
        """An operator of one output that reads this tensor first, with nothing stretched."""
        return self.with_outlet(self.wire.op(op, self.outlet, *(other.outlet for other in others)))

    def through(
        self,
        helper: Callable[Concatenate[TypedModel, str, OutletId, P], OutletId],
        *arguments: P.args,
        **options: P.kwargs,
    ) -> Wired:
        """What a helper of the core makes of this tensor: ``helper(model, name, x, *arguments, **options)``."""
        return self.with_outlet(self.wire.through(helper, self.outlet, *arguments, **options))

    # --- arithmetic, element by element ---

    __add__ = _of_two(binary.Add())
    __radd__ = _reflected(binary.Add())
    __sub__ = _of_two(binary.Sub())
    __rsub__ = _reflected(binary.Sub())
    __mul__ = _of_two(binary.Mul())
    __rmul__ = _reflected(binary.Mul())
    __truediv__ = _of_two(binary.Div())  # that of integers is cut off at the point
    __rtruediv__ = _reflected(binary.Div())
    __pow__ = _of_two(binary.Pow())
    __rpow__ = _reflected(binary.Pow())
    __lshift__ = _of_two(binary.ShiftLeft())
    __rshift__ = _of_two(binary.ShiftRight())  # of integers with a sign, towards minus infinity
    maximum = _of_two(binary.Max())
    minimum = _of_two(binary.Min())
    __neg__ = _of_one(elementwise.Neg())
    __abs__ = _of_one(elementwise.Abs())
    ceil = _of_one(elementwise.Ceil())
    cos = _of_one(elementwise.Cos())
    exp = _of_one(elementwise.Exp())
    floor = _of_one(elementwise.Floor())
    log = _of_one(elementwise.Ln())
    reciprocal = _of_one(elementwise.Recip())
    round_half_to_even = _of_one(elementwise.RoundHalfToEven())
    rsqrt = _of_one(elementwise.Rsqrt())
    sigmoid = _of_one(elementwise.Sigmoid())
    sign = _of_one(elementwise.Sign())
    sin = _of_one(elementwise.Sin())
    sqrt = _of_one(elementwise.Sqrt())
    square = _of_one(elementwise.Square())
    tan = _of_one(elementwise.Tan())
    tanh = _of_one(elementwise.Tanh())

    # --- truth values; ``==`` asks whether two of these stand for one tensor ---

    __lt__ = _of_two(binary.Lt())
    __le__ = _of_two(binary.Le())
    __gt__ = _of_two(binary.Gt())
    __ge__ = _of_two(binary.Ge())
    eq = _of_two(binary.Eq())
    ne = _of_two(binary.Ne())
    __and__ = _of_two(binary.And())
    __or__ = _of_two(binary.Or())
    __xor__ = _of_two(binary.Xor())
    __invert__ = _of_one(elementwise.Not())
    is_nan = _of_one(elementwise.IsNan())

    def __bool__(self) -> bool:
        """Raises TypeError: what a tensor holds is known in a run."""
        raise TypeError("a tensor of a model has no truth value before a run: use where(), & and |")

    def where(self, if_true: Wired | float, if_false: Wired | float) -> Wired:
        """``if_true`` where this holds, else ``if_false``. A number is one of the type of the other branch."""
        like = if_true if isinstance(if_true, Wired) else if_false
        if not isinstance(like, Wired):
            raise TypeError(f"where({if_true}, {if_false}) has no element type: give one of them as a tensor")
        a, b = like.operand(if_true), like.operand(if_false)
        return self.with_outlet(self.wire.select(self.outlet, a.outlet, b.outlet))

    # --- along axes, which keep size 1 ---

    sum = _along(Reducer.SUM)
    max = _along(Reducer.MAX)
    min = _along(Reducer.MIN)
    mean_of_squares = _along(Reducer.MEAN_OF_SQUARES)
    argmax = _along(Reducer.ARG_MAX_FIRST)

    def mean(self, axes: Iterable[int]) -> Wired:
        """The mean, as of `wire_mean`."""
        return self.through(wire_mean, tuple(axes))

    # --- types and shapes ---

    def cast(self, to: DType) -> Wired:
        """In an element type."""
        return self.with_outlet(self.wire.cast(self.outlet, to))

    def reshape(self, shape: Sequence[Dim]) -> Wired:
        """In another shape of as many elements."""
        return self.with_outlet(self.wire.reshape(self.outlet, shape))

    def transpose(self, permutation: Sequence[int]) -> Wired:
        """With the axes in another order: for each output axis, the input axis."""
        return self.with_outlet(self.wire.transpose(self.outlet, permutation))

    def squeeze(self, axes: Sequence[int]) -> Wired:
        """Without axes of size 1."""
        return self.with_outlet(self.wire.squeeze(self.outlet, axes))

    def unsqueeze(self, axes: Sequence[int]) -> Wired:
        """With axes of size 1 added so that they stand at ``axes`` of the result."""
        return self.with_outlet(self.wire.unsqueeze(self.outlet, axes))

    def broadcast(self, shape: Sequence[Dim]) -> Wired:
        """Stretched to the common shape of itself and ``shape``."""
        return self.with_outlet(self.wire.broadcast(self.outlet, shape))

    def concat(self, others: Iterable[Wired], axis: int) -> Wired:
        """The tensor, and others behind it, along one axis."""
        return self.op(TypedConcat(self.wire.axis(axis, self.rank)), *others)

    def part(self, axis: int, start: Dim, end: Dim) -> Wired:
        """The elements from ``start`` up to and without ``end`` along one axis; both lie inside of it."""
        return self.op(Slice(self.wire.axis(axis, self.rank), start, end))

    def __getitem__(self, parts: Part | tuple[Part, ...]) -> Wired:
        """Some positions along each axis: ``x[0]``, ``x[..., 2:]``, ``x[:, None]``, as in NumPy.

        Bounds may be symbolic, and lie inside of the axis; a number below 0 counts from the end. Raises FactError for
        more parts than axes, and TypeError for a step.
        """
        found, axis, dropped, added = self, 0, list[int](), list[int]()
        for part in _for_each_axis(parts if isinstance(parts, tuple) else (parts,), self.rank):
            if part is None:
                added.append(axis - len(dropped) + len(added))
                continue
            start, end = _bounds(part, self.shape[axis])
            if (start, end) != (0, self.shape[axis]):
                found = found.part(axis, start, end)
            if isinstance(part, int):
                dropped.append(axis)
            axis += 1
        found = found.squeeze(dropped) if dropped else found
        return found.unsqueeze(added) if added else found


def outlet_of(x: OutletId | Wired) -> OutletId:
    """The outlet of a tensor in either form."""
    return x.outlet if isinstance(x, Wired) else x


def _for_each_axis(parts: Sequence[Part], rank: int) -> list[Part]:
    """The parts with ``:`` in the place of the dots."""
    place = next((place for place, part in enumerate(parts) if part is ...), len(parts))
    before, after = list(parts[:place]), list(parts[place + 1 :])
    missing = rank - sum(part is not None for part in (*before, *after))
    if missing < 0 or ... in after:
        raise FactError(f"[{', '.join(map(str, parts))}] is no part of a tensor of {rank} axes")
    return [*before, *[slice(None)] * missing, *after]


def _bounds(part: int | slice | EllipsisType, size: Dim) -> tuple[Dim, Dim]:
    """Where a part of an axis begins and ends."""
    if isinstance(part, int):
        start = size + part if part < 0 else part
        return start, start + 1
    if not isinstance(part, slice) or part.step is not None:
        raise TypeError("a part of an axis has no step here: use wire_slice")
    start, end = (
        default if bound is None else size + bound if isinstance(bound, int) and bound < 0 else bound
        for bound, default in ((part.start, 0), (part.stop, size))
    )
    return start, end
