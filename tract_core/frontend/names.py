"""Names for what a node of a file becomes: the node that yields an output of it gets the name of that output."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.typed import TypedModel
from tract_core.ops.wiring import wire_one


def named(model: TypedModel, wanted: Sequence[str], outlets: Sequence[OutletId | None], before: int) -> list[OutletId]:
    """One outlet for each output of a node of a file, under the names that the file gives them.

    ``wanted``: these names, empty for an output that nothing reads. ``outlets``: what the row of the operator
    returned. ``before``: how many nodes the model had before. Raises Unsupported for an output that is read and that
    the row does not compute.
    """
    found: list[OutletId] = []
    names = frozenset(wanted)
    for slot, name in enumerate(wanted):
        outlet = outlets[slot] if slot < len(outlets) else None
        if not name:
            found.append(OutletId(before - 1) if outlet is None else outlet)
        elif outlet is None:
            raise Unsupported(f"output {slot}, {name!r}, is read, and it is not computed here")
        else:
            found.append(_under_name(model, names, outlet, name, before))
    return found


def _under_name(model: TypedModel, names: frozenset[str], outlet: OutletId, wanted: str, before: int) -> OutletId:
    if outlet.slot > 0:
        model.set_label(outlet, wanted)
        return outlet
    current = model.nodes[outlet.node].name
    if outlet.node < before or (current != wanted and current in names):
        # The tensor has a name already: it passed through unchanged, or is two outputs of this node.
        return wire_one(model, wanted, Identity(), outlet)
    if current != wanted:
        model.rename(outlet.node, wanted)
    return outlet
