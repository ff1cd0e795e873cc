"""Cases."""
from tract_core.plugins.tables import Rows
ROWS = Rows()
