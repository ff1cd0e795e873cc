"""A good row, then one for an operator that the core already has: only the first is taken."""

from tract_core.ops.elementwise import Exp
from tract_core.plugins.keys import REFERENCE
from tract_core.plugins.tables import Rows

ROWS = Rows()


@ROWS.row(REFERENCE, "broken_rows.ops:Clashing", Exp)
def exp(op, x):
    """Wrong, and never called."""
    return x - x
