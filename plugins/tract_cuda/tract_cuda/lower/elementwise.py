"""Chains of element-wise operators."""

from __future__ import annotations

from tract_core.plugins.tables import Rows
from tract_cuda.group.groups import Elements
from tract_cuda.lowering import Site
from tract_cuda.maps import map_launch
from tract_cuda.table import KINDS

ROWS = Rows()


@ROWS.row(KINDS, Elements)
def lower_elements(site: Site) -> None:
    """One kernel; the result lies in memory as the first operand of its shape does."""
    assert isinstance(site.group, Elements)  # as the table says
    lowering, chain = site.lowering, site.group.chain
    operands = [lowering.view(outlet) for outlet in chain.operands]
    shape = tuple(lowering.model.outlet_fact(chain.outlet).shape)
    like = next((one for one in operands if one.shape == shape), None)
    result = lowering.new(chain.outlet) if like is None else lowering.new_like(chain.outlet, like)
    lowering.steps.append(map_launch(chain.expression, operands, result, site.group.nodes))
