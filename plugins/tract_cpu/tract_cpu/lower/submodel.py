"""Models as operators: their steps are steps of the model around."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.model.graph import OutletId
from tract_core.ops.submodel import SubmodelOp
from tract_core.plugins.tables import Rows
from tract_cpu.lower.bodies import Target, Unfit, add_body, body_with, done
from tract_cpu.lower.lowering import CPU, Site
from tract_cpu.lower.views import View

ROWS = Rows()


@ROWS.row(CPU, SubmodelOp)
def lower_submodel(op: SubmodelOp, site: Site) -> str | None:
    """The steps of its nodes, where all of them are native."""
    inputs = site.known_inputs()
    try:
        site.lowering.attempt(lambda: _lower(op, site, inputs))
    except Unfit as error:
        return str(error)
    return None


def _lower(op: SubmodelOp, site: Site, inputs: Sequence[View]) -> None:
    lowering = site.lowering
    first, body = len(lowering.steps), body_with(op.model, op.sizes(site.facts()))
    outputs = [lowering.new(OutletId(site.node.node, slot)) for slot in range(len(site.node.facts))]
    targets = [Target(outlet, view) for outlet, view in zip(body.outputs, outputs, strict=True)]
    add_body(site, 0, body, dict(zip(body.inputs, inputs, strict=True)), targets)
    done(site, "model", first, inputs, [(body, 1)])
