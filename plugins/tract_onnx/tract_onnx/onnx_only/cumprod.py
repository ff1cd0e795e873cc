"""Running products."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from tract_core.frozen import frozen
from tract_core.ops.cumsum import Running


@frozen
class CumProd(Running):
    """Along ``axis``, the product of the elements up to each one."""

    join: ClassVar[np.ufunc] = np.multiply
