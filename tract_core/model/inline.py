"""Put the nodes of a body into another model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from tract_core.dims import Dim
from tract_core.model.graph import OutletId
from tract_core.model.substitute import substitute_in
from tract_core.model.translate import translate
from tract_core.model.typed import TypedModel, TypedNode

_NOTHING: Final[Mapping[str, Dim]] = MappingProxyType({})


def inline_body(
    into: TypedModel,
    body: TypedModel,
    inputs: Sequence[OutletId],
    outside: Mapping[str, Dim] = _NOTHING,
    *,
    prefix: str = "",
) -> list[OutletId]:
    """The outputs of ``body`` for ``inputs``, outlets of ``into``, where its nodes and its conditions are wired.

    ``outside``: what the symbols of the body's inputs are in ``into``. ``prefix``: stands in front of the names of the
    nodes. Raises FactError where a node does not fit.
    """

    def wire(node: TypedNode, given: Sequence[OutletId]) -> Sequence[OutletId]:
        return into.wire_node(prefix + node.name, substitute_in(node.op, outside), given)

    place = dict(zip(body.inputs, inputs, strict=True))
    translate(body, place, wire)
    for condition, origin in body.conditions:
        into.require(condition.substitute(outside), origin)
    return [place[outlet] for outlet in body.outputs]
