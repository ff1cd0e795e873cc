"""Real and complex numbers as complex ones: part by part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tract_core.ops.cast import Cast
from tract_core.plugins.tables import Rows
from tract_cpu.draft.copies import convert_step
from tract_cpu.draft.lowering import Site
from tract_cpu.table import MOVES

ROWS = Rows()


@ROWS.row(MOVES, Cast)
def lower_cast(op: Cast, site: Site) -> None:
    """Real numbers become the real parts of complex ones, whose imaginary parts are zeros."""
    (fact,) = site.facts()
    (x,) = site.known_inputs()
    rank, result = len(x.shape), site.lowering.new(site.outlet).as_parts()
    if x.element.kind == "c":
        site.add_all([convert_step(x.as_parts(), result, site.isa, ())])
        return
    zero = site.lowering.constant(np.zeros((), fact.datum_type.storage.numpy))
    assert zero is not None  # an element as those of the input
    column = replace(x, shape=(*x.shape, 1), strides=(*x.strides, 0))
    sources = (column, zero.stretched(column.shape))
    steps = [convert_step(one, result.part(rank, place, 1), site.isa, ()) for place, one in enumerate(sources)]
    site.add_all(steps)
