"""Numbers in another type: element by element, complex ones part by part."""

from __future__ import annotations

from typing import Final

from tract_core.ops.cast import Cast
from tract_core.plugins.tables import Rows
from tract_cpu.group.elementwise import group_elements
from tract_cpu.group.groups import CpuGroup
from tract_cpu.group.start import GROUPS, Start

ROWS = Rows()

WHETHER_ZERO: Final = "native code only moves and converts complex numbers"
"""Nothing but booleans and other complex numbers can be made of them."""


@ROWS.row(GROUPS, Cast)
def group_cast(op: Cast, start: Start) -> CpuGroup:
    """To a complex number, alone."""
    if op.to.is_complex():
        return start.alone()
    (fact,) = start.facts()
    return start.host(WHETHER_ZERO) if fact.datum_type.is_complex() else group_elements(op, start)
