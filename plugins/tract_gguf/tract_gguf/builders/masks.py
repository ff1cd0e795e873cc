"""Which positions see which, as numbers that are added to scores."""

from __future__ import annotations

import numpy as np

from tract_core.ops.wired import Wired


def causal_mask(rows: Wired, columns: Wired, window: int | None) -> Wired:
    """What is added to scores [S,P+S]: 0 where the position of the column is seen from that of the row, else -inf.

    ``rows``, ``columns``: positions [S] and [P+S].
    """
    seen = rows[:, None] >= columns[None]
    if window is not None:
        seen &= rows[:, None] < columns[None] + window
    zero, never = (seen.with_outlet(seen.wire.const(np.array([[one]], np.float32))) for one in (0, -np.inf))
    return seen.where(zero, never)
