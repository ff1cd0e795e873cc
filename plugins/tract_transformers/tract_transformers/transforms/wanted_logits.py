"""Logits are computed for the tokens alone whose successors somebody wants: the last one, or some that are named.

For the long vocabularies of today, that is a fifth of the work on a prompt, and most of its memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import ClassVar, Final

from tract_core.dims import dim_min
from tract_core.errors import TransformError
from tract_core.frozen import frozen
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.model.typed_graph import TypedNode
from tract_core.ops.binary import Binary
from tract_core.ops.cast import Cast
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import ElementWise
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import wire_one

AXIS: Final = 1
"""That of the positions, in B,S,V."""


@frozen
class LastLogits:
    """A model whose output ``logits`` is B,1,V instead of B,S,V: of the last of S tokens, or of the last ``count``."""

    name: ClassVar[str] = "last_logits"
    logits: str = field(default="logits", metadata={"doc": "the output with the logits"})
    count: int = field(default=1, metadata={"doc": "how many tokens, from the last one back"})

    def apply(self, model: TypedModel) -> TypedModel:
        """The changed model. Raises TransformError where there is no such output."""
        found = model.clone()

        def last(outlet: OutletId) -> OutletId:
            size = found.outlet_fact(outlet).shape[AXIS]
            name = found.unique_name(f"{found.producer(outlet).name}.last")
            first = size - dim_min(size, self.count) if self.count > 1 else size - 1
            return wire_one(found, name, Slice(AXIS, first, size), outlet)

        wanted(found, self.logits, last)
        found.prune()
        return found


def wanted(model: TypedModel, logits: str, pick: Callable[[OutletId], OutletId]) -> None:
    """Have the output ``logits`` [B,S,V] give some tokens alone. ``pick``: takes them of a tensor [B,S,...].

    Raises TransformError where there is no such output.
    """
    replace_logits(model, logits, lambda before: _wired_for(model, before, pick))


def replace_logits(model: TypedModel, logits: str, make: Callable[[OutletId], OutletId]) -> None:
    """Have the output ``logits`` [B,S,V] be what ``make`` gives for it, under the same name.

    Raises TransformError where there is no such output.
    """
    slot = next((at for at, one in enumerate(model.outputs) if model.outlet_name(one) == logits), None)
    if slot is None or model.outlet_fact(model.outputs[slot]).rank != AXIS + 2:
        raise TransformError(f"there is no output {logits!r} of three axes")
    before = model.outputs[slot]
    model.outputs[slot] = make(before)
    model.outlet_labels.pop(before, None)
    model.set_label(model.outputs[slot], logits)


def _wired_for(model: TypedModel, outlet: OutletId, pick: Callable[[OutletId], OutletId]) -> OutletId:
    """Some positions of a tensor B,S,...: computed from those of what it is computed from, where that is plain.

    ``pick``: takes them of a tensor.
    """
    node = model.producer(outlet)
    source = _source(model, node)
    if source is None:
        return pick(outlet)
    inputs = [_wired_for(model, one, pick) if slot == source else one for slot, one in enumerate(node.inputs)]
    return wire_one(model, model.unique_name(f"{node.name}.wanted"), node.op, *inputs)


def _source(model: TypedModel, node: TypedNode) -> int | None:
    """Which input of a node has the positions, where each position of the output is computed from that alone."""
    if isinstance(node.op, EinSum) and node.op.q_output is None:
        name = node.op.axes.outputs[0][AXIS]
        having = [slot for slot, term in enumerate(node.op.axes.inputs) if name in term]
        plain = len(having) == 1 and node.op.axes.inputs[having[0]].find(name) == AXIS
        return having[0] if plain else None
    if isinstance(node.op, (ElementWise, Cast)):
        return 0
    if isinstance(node.op, Binary):
        sides = [slot for slot, one in enumerate(node.inputs) if not _is_plain_constant(model, one)]
        return sides[0] if len(sides) == 1 else None
    return None


def _is_plain_constant(model: TypedModel, outlet: OutletId) -> bool:
    """Whether it is a constant that is the same at all positions."""
    fact = model.outlet_fact(outlet)
    return isinstance(model.producer(outlet).op, Const) and (fact.rank <= AXIS or fact.shape[AXIS] == 1)
