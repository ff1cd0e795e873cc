"""Core operators for one operator of a frontend at a time: what is known of tensors, and the means to add nodes.

Frontends have a class of their own of it, which knows the inputs of their node. Nodes added here are named after that
node, with a suffix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Concatenate, ParamSpec, TypeVar

from tract_core.data import DatumType, DType, Value
from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.model.fact import ShapeFact, TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops import wiring
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.expect import element
from tract_core.ops.iff import Iff
from tract_core.ops.slice import Slice
from tract_core.plugins.keys import Array

P = ParamSpec("P")
R = TypeVar("R")


def _suffix(op: TypedOp) -> str:
    """What the node of an operator is called; also of what is none, which is refused when it is wired."""
    name: object = getattr(op, "name", None)
    return name.lower() if isinstance(name, str) else "op"


class NodeWiring:
    """The typed model under construction, and the name of the node that is being wired."""

    def __init__(self, model: TypedModel, name: str) -> None:
        self.model = model
        self.name = name

    def fact(self, x: OutletId) -> TypedFact:
        """Type, shape, and value where known."""
        return self.model.outlet_fact(x)

    def shape(self, x: OutletId) -> ShapeFact:
        """The sizes, outermost first."""
        return self.fact(x).shape

    def rank(self, x: OutletId) -> int:
        """The number of axes."""
        return self.fact(x).rank

    def dtype(self, x: OutletId) -> DType:
        """The element type."""
        return self.fact(x).datum_type

    def constant(self, x: OutletId) -> Array | None:
        """The value, where it is known and free of symbols."""
        return self.fact(x).constant

    def dims(self, x: OutletId) -> tuple[Dim, ...] | None:
        """The elements of a known integer tensor, as sizes."""
        return self.fact(x).dims

    @staticmethod
    def axis(axis: int, rank: int) -> int:
        """An axis counted from the front, from one that may be negative. Raises FactError outside the rank."""
        if not -rank <= axis < max(rank, 1):
            raise FactError(f"axis {axis} is outside a tensor of {rank} axes")
        return axis + rank if axis < 0 else axis

    @staticmethod
    def axes(axes: Sequence[int], rank: int) -> list[int]:
        """Axes counted from the front. Raises FactError for one outside the rank, or one that is there twice."""
        found = [NodeWiring.axis(axis, rank) for axis in axes]
        if len(set(found)) < len(found):
            raise FactError(f"axes {list(axes)} name one axis of {rank} twice")
        return found

    def symbol(self, prefix: str) -> Dim:
        """A new symbol, for a size that only a run can tell."""
        return self.model.symbols.new_symbol(prefix)

    def require_shape(self, role: str, x: OutletId, shape: Sequence[Dim], *, stretches: bool = False) -> None:
        """Let ``x``, which is the ``role`` of the node, have these sizes in every run. Raises FactError.

        ``stretches``: it may also lack axes in front, and axes of size 1 stretch.
        """
        wiring.require_shape(self.model, self.name, role, x, shape, stretches=stretches)

    def label(self, suffix: str) -> str:
        """A name for an intermediate node."""
        return self.model.unique_name(f"{self.name}.{suffix}")

    def op(self, op: TypedOp, *inputs: OutletId) -> OutletId:
        """Add an operator of one output."""
        return wiring.wire_one(self.model, self.label(_suffix(op)), op, *inputs)

    def ops(self, op: TypedOp, *inputs: OutletId) -> tuple[OutletId, ...]:
        """Add an operator of several outputs."""
        return self.model.wire_node(self.label(_suffix(op)), op, inputs)

    def binary(self, op: TypedOp, a: OutletId, b: OutletId) -> OutletId:
        """Add a binary operator on operands of any rank, broadcast as NumPy does."""
        return wiring.wire_binary(self.model, self.label(op.name.lower()), op, a, b)

    def through(
        self, helper: Callable[Concatenate[TypedModel, str, P], R], *arguments: P.args, **options: P.kwargs
    ) -> R:
        """Call a helper of the core that wires something: ``helper(model, name, *arguments, **options)``."""
        return helper(self.model, self.label(helper.__name__.removeprefix("wire_")), *arguments, **options)

    def const(self, value: Array | Value | Sequence[Dim] | Dim | float) -> OutletId:
        """Add a value: an array, or sizes (64-bit integers, symbolic or not)."""
        return self.model.add_const(self.label("const"), value)

    def scalar(self, value: float, like: OutletId) -> OutletId:
        """Add a number in the element type of ``like``, with as many axes (of size 1). Raises FactError."""
        fact = self.fact(like)
        return self.const(element(value, fact.datum_type).reshape((1,) * fact.rank))

    def cast(self, x: OutletId, to: DType) -> OutletId:
        """``x`` in an element type."""
        return wiring.wire_cast(self.model, self.label("cast"), x, to)

    def ranks(self, *inputs: OutletId) -> list[OutletId]:
        """All of them at the highest rank among them, aligned at the last axis."""
        return wiring.wire_ranks(self.model, self.label("rank"), inputs)

    def transpose(self, x: OutletId, permutation: Sequence[int]) -> OutletId:
        """``x`` with its axes in another order: for each output axis, the input axis."""
        return wiring.wire_transpose(self.model, self.label("transpose"), x, permutation)

    def reshape(self, x: OutletId, shape: Sequence[Dim]) -> OutletId:
        """``x`` in another shape of as many elements."""
        return wiring.wire_reshape(self.model, self.label("reshape"), x, shape)

    def squeeze(self, x: OutletId, axes: Sequence[int]) -> OutletId:
        """``x`` with axes of size 1 removed."""
        return wiring.wire_squeeze(self.model, self.label("squeeze"), x, axes)

    def unsqueeze(self, x: OutletId, axes: Sequence[int]) -> OutletId:
        """``x`` with axes of size 1 added so that they stand at ``axes`` of the result."""
        return wiring.wire_unsqueeze(self.model, self.label("unsqueeze"), x, axes)

    def broadcast(self, x: OutletId, shape: Sequence[Dim]) -> OutletId:
        """``x`` stretched to the common shape of itself and ``shape``."""
        return x if tuple(self.shape(x)) == tuple(shape) else self.op(MultiBroadcastTo(tuple(shape)), x)

    def sizes(self, x: OutletId) -> OutletId:
        """A list of sizes as the core's helpers want it: 64-bit integers on one axis."""
        x = self.i64(x)
        return x if self.rank(x) == 1 else self.reshape(x, (self.shape(x).volume,))

    def number(self, x: OutletId) -> OutletId:
        """A tensor of one element, as one of no axes."""
        return self.reshape(x, ())

    def element(self, x: OutletId, place: int) -> OutletId:
        """One element of a list, with no axes."""
        dims = self.dims(x)
        if dims is not None:
            return self.const(dims[place])
        return self.squeeze(self.op(Slice(0, place, place + 1), x), [0])

    def i64(self, x: OutletId) -> OutletId:
        """An integer tensor with 64-bit elements, the type of sizes."""
        return self.cast(x, DatumType.I64)

    def select(self, condition: OutletId, if_true: OutletId, if_false: OutletId) -> OutletId:
        """``if_true`` where ``condition`` holds, else ``if_false``, broadcast as NumPy does."""
        return self.op(Iff(), *self.ranks(condition, if_true, if_false))
