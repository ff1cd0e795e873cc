"""Enter the models inside operators."""

from __future__ import annotations

from typing import Any, Final
from weakref import finalize, ref

from tract_core.model.bodies import map_bodies
from tract_core.model.identity import origin
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import ANY_OP, rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.plugins.keys import DECLUTTER, STATE
from tract_core.plugins.tables import Rows

ROWS = Rows()

_SIMPLER: Final[dict[int, ref[TypedModel]]] = {}
"""The normal forms of bodies that are there, by their ids; one that is in normal form is its own.

A body belongs to a frozen operator: nobody changes it afterwards. It is told by its id, as comparing what bodies hold
takes as long as going through them again.
"""


@rewrites(ANY_OP)
def declutter_bodies(model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
    """Scan, IfThenElse, SubmodelOp ... -> the same with their bodies in normal form"""
    if model.registry[STATE].find(type(node.op)) is None:
        return None  # running a body takes a state
    simpler = map_bodies(op, _decluttered)
    return None if simpler is op else ModelPatch.replace_op(model, node, simpler)


def _decluttered(body: TypedModel) -> TypedModel:
    """The body in normal form; the very same one where it already is."""
    known = _SIMPLER.get(id(body), lambda: None)()
    if known is not None:
        return known
    simpler = _simplified(body)
    _keep(body, simpler)
    if simpler is not body:
        _keep(simpler, simpler)
    return simpler


def _keep(body: TypedModel, simpler: TypedModel) -> None:
    _SIMPLER[id(body)] = ref(simpler)
    finalize(body, _SIMPLER.pop, id(body), None)


def _simplified(body: TypedModel) -> TypedModel:
    from tract_core.model.declutter import declutter_with_report

    simpler = body.clone()
    changed = declutter_with_report(simpler).changed
    outputs = [origin(simpler, outlet) for outlet in simpler.outputs]
    if outputs != simpler.outputs:  # what a body gives has a place and no name: it may be one tensor twice, or an input
        simpler.set_outputs(outputs)
        simpler.compact()
    elif not changed:
        simpler = body
    return simpler


ROWS.add(DECLUTTER, declutter_bodies.name, declutter_bodies)
