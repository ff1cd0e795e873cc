"""Outputs that only the end of the signal tells, and the nodes that they come from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel, TypedNode
from tract_pulse.stream import LATE, CannotStream, Wire


def late_outputs(whole: TypedModel, wires: Mapping[OutletId, Wire]) -> Iterator[tuple[TypedNode, CannotStream]]:
    """For each output of the model that is late, the first node on the way to it whose output is, and what is wrong."""
    for outlet in whole.outputs:
        if outlet in wires and wires[outlet].outlet == LATE:
            node = _origin(whole, outlet, wires)
            reason = (
                f"the output {whole.outlet_name(outlet)!r} of the model needs its last value, "
                "which is only known when the signal has ended"
            )
            hint = "leave that output out: by the transform select_outputs, or --output-node on the command line"
            yield node, CannotStream(reason, hint=hint)


def _origin(whole: TypedModel, outlet: OutletId, wires: Mapping[OutletId, Wire]) -> TypedNode:
    node = whole.nodes[outlet.node]
    for before in node.inputs:
        if wires[before].outlet == LATE:
            return _origin(whole, before, wires)
    return node
