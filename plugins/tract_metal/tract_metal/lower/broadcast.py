"""Axes stretched, repeated and laid side by side."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx

from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.plugins.tables import Rows
from tract_metal.site import Site
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, MultiBroadcastTo)
def lower_broadcast(op: MultiBroadcastTo, site: Site) -> Callable[[mx.array], mx.array]:
    """A view."""
    return lambda x: mx.broadcast_to(x, site.shape())
