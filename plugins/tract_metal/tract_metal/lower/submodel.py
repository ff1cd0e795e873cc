"""Models as operators."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx

from tract_core.ops.submodel import SubmodelOp
from tract_core.plugins.tables import Rows
from tract_metal.lower.bodies import Body, Unfit
from tract_metal.site import Site
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, SubmodelOp)
def lower_submodel(op: SubmodelOp, site: Site) -> Callable[..., list[mx.array]] | str:
    """Its nodes, where none of them is left to the host."""
    try:
        body = Body.of(op.model, op.sizes(site.facts))
    except Unfit as error:
        return str(error)
    return lambda *inputs: body.recorded(site, inputs)
