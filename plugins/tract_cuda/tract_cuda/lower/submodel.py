"""Models as operators: their launches are launches of the model around."""

from __future__ import annotations

from tract_core.ops.submodel import SubmodelOp
from tract_core.plugins.tables import Rows
from tract_cuda.lower.bodies import Body, Unfit
from tract_cuda.lowering import Site
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, SubmodelOp)
def lower_submodel(op: SubmodelOp, site: Site) -> str | None:
    """The launches of its nodes, where none of them is left to the host."""
    facts = [site.lowering.model.outlet_fact(outlet) for outlet in site.node.inputs]
    try:
        with site.lowering.attempt():
            body = Body.of(site, op.model, op.sizes(facts), site.inputs())
    except Unfit as error:
        return str(error)
    results = site.results()
    inside = body.inside(site, dict(enumerate(results)))
    inside.add()
    inside.deliver({slot: [result] for slot, result in enumerate(results)})
    return None
