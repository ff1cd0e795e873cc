"""How requests of a model wait."""

from __future__ import annotations

from typing import Final

from tract_core.frozen import frozen

MOST_ROWS: Final = 32
"""Of one run, unless the configuration says more."""


@frozen
class WaitingPolicy:
    """``most_rows``: of one run. ``delay_s``: how long a run may wait for more rows, where several clients ask at once.

    ``most_waiting``: requests; more are refused. ``timeout_s``: how long a request may wait that does not say itself;
    ``allows_timeout``: whether it may say so. ``instances``: runs at the same time. ``priority``: of requests that do
    not say theirs; 1 goes first. ``levels``: how many priorities there are; any other that
    a request says counts as the usual one.
    """

    most_rows: int = MOST_ROWS
    delay_s: float = 0.0
    most_waiting: int = 1024
    timeout_s: float | None = None
    allows_timeout: bool = True
    instances: int = 1
    priority: int = 1
    levels: int = 0
