"""The gates of recurrent networks: one kernel for all elements that a gate has."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Mul, Sub
from tract_core.ops.elementwise import Sigmoid, Tanh
from tract_core.ops.recurrent import Epilogue, GruEpilogue, LstmEpilogue
from tract_core.plugins.tables import Rows
from tract_cpu.language.types import ElementType
from tract_cpu.lower.lowering import CPU, Site
from tract_cpu.lower.nest import Nest, Unknown
from tract_cpu.lower.region import Region
from tract_cpu.lower.rows import rows_step
from tract_cpu.lower.softmax import narrowed, widened
from tract_cpu.lower.views import View

ROWS = Rows()


@ROWS.row(CPU, LstmEpilogue)
def lower_lstm(op: LstmEpilogue, site: Site) -> str | None:
    """Both states of an LSTM."""
    return _lower(op, site, [4, 1], _lstm)


@ROWS.row(CPU, GruEpilogue)
def lower_gru(op: GruEpilogue, site: Site) -> str | None:
    """The state of a GRU."""
    return _lower(op, site, [3, 3, 1], _gru)


def _lower(
    op: Epilogue, site: Site, counts: Sequence[int], write: Callable[[Nest, Sequence[int], ElementType], list[int]]
) -> str | None:
    """``counts``: how many gates each input holds. ``write``: adds the values of the outputs to a nest."""
    result = site.result()
    nest = Nest(site.lowering, tuple(site.node.facts[0].shape))
    nest.along(())
    views = [part for view, count in zip(site.known_inputs(), counts, strict=True) for part in _parts(op, view, count)]
    try:
        if result is None or result.kind != "f":
            raise Unknown
        values = write(nest, [widened(nest, nest.load(view.stretched(nest.shape))) for view in views], result)
    except Unknown:
        return "native code does not know these types"
    outlets = [OutletId(site.node.node, slot) for slot in range(len(values))]
    site.add(rows_step(Region(nest, dict(zip(outlets, values, strict=True))), site.isa))
    return None


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
