"""Running products."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tract_core.frozen import frozen
from tract_core.ops.cumsum import Running, reference
from tract_core.plugins.keys import REFERENCE
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class CumProd(Running):
    """Along ``axis``, the product of the elements up to each one."""

    join: ClassVar[np.ufunc] = np.multiply


ROWS.add(REFERENCE, CumProd, reference)  # that of the base, so that files find the operator by its own name
