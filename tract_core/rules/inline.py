"""Put the nodes of a body into the model that runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_core.data import SymbolicArray
from tract_core.dims import Dim
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.substitute import substitute_in
from tract_core.model.typed import TypedModel


def inline_body(
    patch: ModelPatch, prefix: str, body: TypedModel, inputs: Sequence[OutletId], known: Mapping[str, Dim]
) -> list[OutletId]:
    """The outputs of ``body`` for ``inputs``, outlets of the patch.

    ``prefix``: stands in front of the names of the nodes. ``known``: what the symbols of the body's inputs are outside.
    """
    place = dict(zip(body.inputs, inputs, strict=True))
    for node_id in body.eval_order():
        node = body.nodes[node_id]
        if OutletId(node_id) in place:
            continue
        name = f"{prefix}.{node.name}"
        op = substitute_in(node.op, known)
        if isinstance(op, Const):
            value = op.value.substitute(known) if isinstance(op.value, SymbolicArray) else op.value
            outlets = (patch.model.add_const(name, value),)
        else:
            outlets = patch.wire(name, op, [place[outlet] for outlet in node.inputs])
        place.update(zip(node.outlets(), outlets, strict=True))
    for condition, origin in body.conditions:
        patch.model.require(condition.substitute(known), origin)
    return [place[outlet] for outlet in body.outputs]
