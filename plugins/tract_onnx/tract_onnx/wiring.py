"""Where one ONNX node becomes core operators: what is known of its inputs, and the means to add nodes.

Nodes added here are named after the ONNX node's first output, with a suffix; in the end, the node that yields an output
gets that output's name (`tract_onnx.op`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Concatenate, Final, ParamSpec, TypeVar

import numpy as np

from tract_core.data import Constant, DatumType, DType, Value
from tract_core.dims import Dim, is_symbolic
from tract_core.errors import CorruptModel, FactError, LimitExceeded, Unsupported
from tract_core.model.fact import ShapeFact, TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops import wiring
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.expect import element
from tract_core.ops.iff import Iff
from tract_core.plugins.keys import Array

MAX_COUNT: Final = 1 << 16
"""Elements of a list that each stand for something of their own: axes, pieces."""


def zero_of(kind: DType) -> Constant:
    """What the standard fills tensors of an element type up with, of rank 0: 0, false, or an empty text."""
    return Constant(np.array("", object) if kind is DatumType.STRING else np.zeros((), kind.numpy))


def _suffix(op: TypedOp) -> str:
    """What the node of an operator is called; also of what is none, which is refused when it is wired."""
    name: object = getattr(op, "name", None)
    return name.lower() if isinstance(name, str) else "op"


P = ParamSpec("P")
R = TypeVar("R")


class Wiring:
    """The typed model under construction, and one node's inputs in it.

    ``inputs``: one outlet per input of the ONNX node, ``None`` for an optional one that is left out. ``outer``: values
    that the graphs inside the node capture from around it, by name.
    """

    def __init__(
        self,
        model: TypedModel,
        name: str,
        inputs: Sequence[OutletId | None],
        outer: Mapping[str, OutletId] | None = None,
    ) -> None:
        self.model = model
        self.name = name
        self.slots = list(inputs)
        self.outer = dict(outer or {})

    def input(self, slot: int) -> OutletId:
        """An input that must be there. Raises CorruptModel when it is not."""
        found = self.optional(slot)
        if found is None:
            given = sum(outlet is not None for outlet in self.slots)
            raise CorruptModel(f"input {slot} is missing; the node has {given} inputs")
        return found

    def optional(self, slot: int) -> OutletId | None:
        """An input that may be left out."""
        return self.slots[slot] if slot < len(self.slots) else None

    def all_inputs(self) -> list[OutletId]:
        """Every input of an operator that takes any number, at least one."""
        if not self.slots:
            raise CorruptModel("the node has no inputs, at least one is wanted")
        return [self.input(slot) for slot in range(len(self.slots))]

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

    def known(self, x: OutletId, what: str) -> Array:
        """The value, which must be known before the model runs. Raises Unsupported, naming ``what``."""
        value = self.constant(x)
        if value is None:
            raise Unsupported(
                f"{what} must be known when the model is loaded, and {self.model.outlet_name(x)!r} is computed",
                hint="make it a constant when exporting, or give the sizes that it depends on",
            )
        return value

    def count(self, x: OutletId, what: str) -> int:
        """The number of elements, which must be known before the model runs. Raises Unsupported, naming ``what``."""
        self._check_integers(x, what)
        volume = self.shape(x).volume
        if is_symbolic(volume):
            raise Unsupported(f"the number of {what} must be known when the model is loaded, found {self.fact(x)}")
        if int(volume) > MAX_COUNT:
            raise LimitExceeded(f"there are {volume} {what}, at most {MAX_COUNT} are allowed")
        return int(volume)

    def known_ints(self, x: OutletId, what: str) -> tuple[int, ...]:
        """The integers in an input, which must be known before the model runs. Raises Unsupported, naming ``what``."""
        self._check_integers(x, what)
        return tuple(int(value) for value in self.known(x, what).reshape(-1).tolist())

    def ints(self, x: OutletId, what: str) -> tuple[int, ...] | None:
        """The integers in an input, where they are known and free of symbols. Raises FactError for another type."""
        self._check_integers(x, what)
        known = self.constant(x)
        return None if known is None else tuple(int(value) for value in known.reshape(-1).tolist())

    def _check_integers(self, x: OutletId, what: str) -> None:
        if not self.dtype(x).is_integer():
            raise FactError(f"{self.fact(x)} is given for the {what}, wanted integers")

    def axis(self, axis: int, rank: int) -> int:
        """An axis counted from the front, from one that may be negative. Raises FactError outside the rank."""
        if not -rank <= axis < max(rank, 1):
            raise FactError(f"axis {axis} is outside a tensor of {rank} axes")
        return axis + rank if axis < 0 else axis

    def axes(self, axes: Sequence[int], rank: int) -> list[int]:
        """Axes counted from the front. Raises FactError for one outside the rank, or one that is there twice."""
        found = [self.axis(axis, rank) for axis in axes]
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

    def i64(self, x: OutletId) -> OutletId:
        """An integer tensor with 64-bit elements, the type of sizes."""
        return self.cast(x, DatumType.I64)

    def select(self, condition: OutletId, if_true: OutletId, if_false: OutletId) -> OutletId:
        """``if_true`` where ``condition`` holds, else ``if_false``, broadcast as NumPy does."""
        return self.op(Iff(), *self.ranks(condition, if_true, if_false))
