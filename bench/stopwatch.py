"""How long a function takes."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds(run: Callable[[], object], at_least: float) -> float:
    """The mean time of a call, of as many calls as take ``at_least`` so many seconds together."""
    begin, count = time.perf_counter(), 0
    while (passed := time.perf_counter() - begin) < at_least:
        run()
        count += 1
    return passed / count
