"""Rows for an operator of a distribution that is not installed: they wait."""

from tract_core.plugins.keys import COST, REFERENCE
from tract_core.plugins.tables import Rows

ROWS = Rows()


@ROWS.row(REFERENCE, "distribution_that_is_not_installed:Op")
def reference(op, x):
    """Never called."""
    return x


@ROWS.row(COST, "distribution_that_is_not_installed:Op")
def cost(op, inputs, outputs):
    """Never called."""
    return {}
