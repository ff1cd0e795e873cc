"""The gates of recurrent networks: one kernel for all of them."""

from __future__ import annotations

import numpy as np
from tract_llvm.fuse.nest import Nest, Number, Unknown
from tract_llvm.fuse.region import Region
from tract_llvm.language.types import numpy_type
from tract_llvm.nests.recurrent import new_state
from tract_llvm.program.views import View

from tract_core.model.graph import OutletId
from tract_core.ops.recurrent import Epilogue, GruEpilogue, LstmEpilogue
from tract_core.plugins.tables import Rows
from tract_cuda.lower.kinds import why_carried
from tract_cuda.lower.rows import add_rows
from tract_cuda.lowering import Site
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, LstmEpilogue, GruEpilogue)
def lower_epilogue(op: Epilogue, site: Site) -> str | None:
    """The state of an LSTM, both parts, or that of a GRU."""
    why = why_carried(site)
    if why is not None:
        return why
    nest = Nest(site.lowering.model.registry, tuple(site.node.facts[0].shape))
    nest.along(())
    try:
        values = new_state(op, nest, site.inputs(), site.lowering.element(site.outlet))
    except Unknown:
        return "kernels do not compute gates in these types"
    outlets = [OutletId(site.node.node, slot) for slot in range(len(values))]
    region = Region.of(nest, dict(zip(outlets, values, strict=True)))
    loads = [_loaded(site, region, one) for one in region.tensors]
    add_rows(site.lowering, region, loads, dict(zip(outlets, site.results(), strict=True)), site.group.nodes)
    return None


def _loaded(site: Site, region: Region, tensor: object) -> View:
    """What a nest loads: a view, or a number, which becomes one."""
    if isinstance(tensor, View):
        return tensor
    assert isinstance(tensor, Number)  # there are no others
    number = np.full((1,) * len(region.shape), tensor.value, numpy_type(tensor.element))
    return site.lowering.constant(number).stretched(region.shape)
