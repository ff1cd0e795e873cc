"""Models as operators: their steps are steps of the model around."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.program.views import View

from tract_core.ops.submodel import SubmodelOp
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.lower.bodies import BodyTarget, add_body, body_with, done, inlined
from tract_cpu.table import MOVES

ROWS = Rows()


@ROWS.row(MOVES, SubmodelOp)
def lower_submodel(op: SubmodelOp, site: Site) -> str | None:
    """The steps of its nodes, where all of them are native."""
    inputs = site.known_inputs()
    return inlined(site, lambda: _lower(op, site, inputs))


def _lower(op: SubmodelOp, site: Site, inputs: Sequence[View]) -> None:
    lowering = site.lowering
    first, body = len(lowering.steps), body_with(op.model, op.sizes(site.facts()))
    targets = [BodyTarget(outlet, view) for outlet, view in zip(body.outputs, site.results(), strict=True)]
    add_body(site, 0, body, dict(zip(body.inputs, inputs, strict=True)), targets)
    done(site, "model", first, inputs, [(body, 1)])
