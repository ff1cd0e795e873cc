"""The gates of recurrent networks: one kernel for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from tract_llvm.fuse.nest import Nest, Number, Unknown
from tract_llvm.fuse.region import Region
from tract_llvm.language.types import ElementType, numpy_type
from tract_llvm.nests.softmax import narrowed, widened
from tract_llvm.program.views import View

from tract_core.compile.gates import COUNTS
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Mul, Sub
from tract_core.ops.elementwise import Sigmoid, Tanh
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
    inputs = zip(site.inputs(), COUNTS[type(op)], strict=True)
    views = [part for view, count in inputs for part in _parts(op, view, count)]
    nest = Nest(site.lowering.model.registry, tuple(site.node.facts[0].shape))
    nest.along(())
    result = site.lowering.element(site.outlet)
    assert result is not None, "groups are made of tensors whose types kernels know"
    try:
        loaded = [nest.load(view.stretched(nest.shape), view.element) for view in views]
        values = _WRITE[type(op)](nest, [widened(nest, one) for one in loaded], result)
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


def _parts(op: Epilogue, view: View, count: int) -> list[View]:
    """The gates, one by one."""
    axis = len(view.shape) - 1
    return [view] if count == 1 else [view.part(axis, op.hidden * gate, op.hidden) for gate in range(count)]


def _lstm(nest: Nest, x: Sequence[int], result: ElementType) -> list[int]:
    gate_i, gate_o, gate_f, candidate, before = x
    kept = nest.apply(Mul(), nest.apply(Sigmoid(), gate_f), before)
    new = nest.apply(Mul(), nest.apply(Sigmoid(), gate_i), nest.apply(Tanh(), candidate))
    c = nest.apply(Add(), kept, new)
    h = nest.apply(Mul(), nest.apply(Sigmoid(), gate_o), nest.apply(Tanh(), c))
    return [narrowed(nest, h, result), narrowed(nest, c, result)]


def _gru(nest: Nest, x: Sequence[int], result: ElementType) -> list[int]:
    x_z, x_r, x_g, r_z, r_r, r_g, before = x
    z, r = (nest.apply(Sigmoid(), nest.apply(Add(), a, b)) for a, b in ((x_z, r_z), (x_r, r_r)))
    candidate = nest.apply(Tanh(), nest.apply(Add(), x_g, nest.apply(Mul(), r, r_g)))
    less = nest.apply(Sub(), nest.constant(1, nest.type_of(z)), z)
    h = nest.apply(Add(), nest.apply(Mul(), less, candidate), nest.apply(Mul(), z, before))
    return [narrowed(nest, h, result)]


_WRITE: Final[Mapping[type, Callable[[Nest, Sequence[int], ElementType], list[int]]]] = {
    LstmEpilogue: _lstm,
    GruEpilogue: _gru,
}
"""For each epilogue, what adds the values of the outputs to a nest."""
