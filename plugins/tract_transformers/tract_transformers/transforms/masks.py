"""Which positions a token sees, read off the masks of a model: all up to its own, or a window of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tract_core.dims import Dim
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.axis import AddAxis, RmAxis
from tract_core.ops.binary import Add, And, Comparison, Ge, Gt, Le, Lt, Or, Sub
from tract_core.ops.elementwise import Not
from tract_core.ops.iff import Iff
from tract_core.ops.range import Range

NEVER: Final = -1e9
"""A score so far below others that its share is 0, as scores are some hundreds at the most; files say -inf or less."""

CAUSAL: Final = 0
"""In the place of a window: a token sees the positions up to its own."""

_NEGATED: Final[Mapping[Any, Any]] = {Lt: Ge, Ge: Lt, Gt: Le, Le: Gt}
_TURNED: Final[Mapping[Any, Any]] = {Lt: Gt, Gt: Lt, Le: Ge, Ge: Le}

Seen = tuple[int | None]
"""The window that is seen; ``(None,)`` for all positions up to one's own."""


class Masks:
    """Those of a model, behind a past of so many positions."""

    def __init__(self, model: TypedModel, past: Dim) -> None:
        self._model, self._past = model, past

    def unmasked(self, outlet: OutletId) -> tuple[OutletId, int | None] | None:
        """The scores before those that are not seen became as small as no other, and the window that is seen."""
        node = self._model.producer(outlet)
        if isinstance(node.op, Add):
            found = ((scores, self._added(mask)) for scores, mask in (node.inputs, reversed(node.inputs)))
        else:
            found = ((scores, self._seen(node, hides)) for scores, hides in self._branches(node))
        return next(((scores, seen[0]) for scores, seen in found if seen is not None), None)

    def _added(self, mask: OutletId) -> Seen | None:
        """What is seen where a mask of zeros and numbers far below is added."""
        node = self._producer(mask)
        found = (self._seen(node, hides) for one, hides in self._branches(node) if self.number(one) == 0)
        return next(found, None)

    def _branches(self, node: TypedNode) -> Iterator[tuple[OutletId, bool]]:
        """What a choice gives for what is seen, where it gives a number far below for the rest.

        With each, whether its condition holds for the rest.
        """
        if isinstance(node.op, Iff):
            _, first, second = node.inputs
            for one, never, hides in ((first, second, False), (second, first, True)):
                number = self.number(never)
                if number is not None and number <= NEVER:
                    yield one, hides

    def number(self, outlet: OutletId) -> float | None:
        """The number that a constant has everywhere."""
        op = self._model.producer(outlet).op
        array = self._model.constant(outlet) if isinstance(op, Const) else None
        if array is None or array.size != 1 or array.dtype.kind not in "fiu":
            return None
        return float(array.reshape(()))

    # --- conditions ---

    def _seen(self, node: TypedNode, hides: bool) -> Seen | None:
        """What the condition of a choice on queries and keys stands for. ``hides``: for what is not seen."""
        windows = [self._window(*one) for one in self._all_of(node.inputs[0], hides)]
        if None in windows or CAUSAL not in windows:
            return None
        return (min((one for one in windows if one), default=None),)

    def _all_of(self, condition: OutletId, negated: bool) -> Iterator[tuple[OutletId, bool]]:
        """The conditions that hold together where one does, each with whether it is to be negated."""
        node = self._producer(condition)
        if isinstance(node.op, Not):
            yield from self._all_of(node.inputs[0], not negated)
        elif isinstance(node.op, Or if negated else And):
            for one in node.inputs:
                yield from self._all_of(one, negated)
        else:
            yield condition, negated

    def _window(self, condition: OutletId, negated: bool) -> int | None:
        """`CAUSAL` for key <= query; a window for query < key + window; ``None`` for anything else."""
        op, ahead = self._compared(condition, negated)
        if (op is Ge and ahead == 0) or (op is Gt and ahead == -1):
            return CAUSAL
        window = ahead if op is Lt else ahead + 1 if op is Le else 0
        return window if window > 0 else None

    def _compared(self, condition: OutletId, negated: bool) -> tuple[Any, int]:
        """How queries compare with keys that are so much ahead; ``None`` for what is no such comparison."""
        node = self._producer(condition)
        places = [self._position(one) for one in node.inputs] if isinstance(node.op, Comparison) else []
        roles = [one[0] for one in places if one is not None]
        if sorted(roles) != ["key", "query"]:
            return None, 0
        op = _NEGATED.get(type(node.op)) if negated else type(node.op)
        (_, left), (_, right) = (one for one in places if one is not None)
        return (op, right - left) if roles[0] == "query" else (_TURNED.get(op), left - right)

    # --- positions ---

    def _position(self, outlet: OutletId) -> tuple[str, int] | None:
        """Whether a tensor has the positions of queries or of keys, and how much more each is than that."""
        node, more = self._producer(outlet), 0
        while isinstance(node.op, (Add, Sub)):
            number, sign = self.number(node.inputs[1]), 1 if isinstance(node.op, Add) else -1
            if number is None or not number.is_integer():
                return None
            node, more = self._producer(node.inputs[0]), more + sign * int(number)
        role = self.counted(node)
        return None if role is None else (role, more)

    def counted(self, node: TypedNode) -> str | None:
        """``query`` for the positions of tokens, behind the past; ``key`` for those of all; ``None`` for others."""
        if not isinstance(node.op, Range) or self._model.outlet_fact(node.inputs[0]).datum_type.is_float():
            return None
        start, end, step = map(self._size, node.inputs)
        if step != 1 or start is None or node.op.length + start != end:
            return None
        return "query" if start == self._past else "key" if start == 0 else None

    def _size(self, outlet: OutletId) -> Dim | None:
        """The size that a tensor of one element holds."""
        dims = self._model.outlet_fact(outlet).dims
        return dims[0] if dims is not None and len(dims) == 1 else None

    def _producer(self, outlet: OutletId) -> TypedNode:
        """The node behind axes of size 1 that come and go."""
        node = self._model.producer(outlet)
        while isinstance(node.op, (AddAxis, RmAxis)):
            node = self._model.producer(node.inputs[0])
        return node
