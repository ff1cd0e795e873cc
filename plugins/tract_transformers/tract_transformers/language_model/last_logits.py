"""Computes logits for the last token alone, as generation looks at no others.

For the long vocabularies of today, that is a fifth of the work on a prompt, and most of its memory.
"""

from __future__ import annotations

from typing import ClassVar

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

AXIS = 1
"""That of the positions, in B,S,V."""


@frozen
class LastLogits:
    """A model whose output ``logits`` is B,1,V instead of B,S,V: of the last of S tokens."""

    name: ClassVar[str] = "last_logits"
    logits: str

    def apply(self, model: TypedModel) -> TypedModel:
        """The changed model. Raises TransformError where there is no such output."""
        found = model.clone()
        slot = next((at for at, one in enumerate(found.outputs) if found.outlet_name(one) == self.logits), None)
        if slot is None or found.outlet_fact(found.outputs[slot]).rank != 3:
            raise TransformError(f"there is no output {self.logits!r} of three axes")
        before = found.outputs[slot]
        last = _last(found, before)
        found.outputs[slot] = last
        found.outlet_labels.pop(before, None)
        found.set_label(last, self.logits)
        found.prune()
        return found


def _last(model: TypedModel, outlet: OutletId) -> OutletId:
    """The last position of a tensor B,S,...: computed from that of what it is computed from, where that is plain."""
    node = model.producer(outlet)
    source = _source(model, node)
    if source is None:
        size = model.outlet_fact(outlet).shape[AXIS]
        return wire_one(model, model.unique_name(f"{node.name}.last"), Slice(AXIS, size - 1, size), outlet)
    inputs = [_last(model, one) if slot == source else one for slot, one in enumerate(node.inputs)]
    return wire_one(model, model.unique_name(f"{node.name}.last"), node.op, *inputs)


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
