"""Axes added, removed, moved and put together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mlx.core as mx

from tract_core.model.identity import Identity, PinConst
from tract_core.ops.axis import AxisOp, MoveAxis
from tract_core.plugins.tables import Rows
from tract_metal.layout import Laid
from tract_metal.site import Computed, Site, by_element, laid
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, AxisOp)
def lower_axis(op: AxisOp, site: Site) -> Callable[..., Any]:
    """Another shape for the same elements."""
    return lambda x: mx.reshape(x, site.shape())


@ROWS.row(METAL, MoveAxis)
def lower_move(op: MoveAxis, site: Site) -> Computed:
    """Nothing is moved: another order is written down."""

    def moved(x: Laid) -> Laid:
        axes = [axis for axis in range(len(x.order)) if axis != op.source]
        axes.insert(op.target, op.source)
        return Laid(x.array, tuple(axes.index(axis) for axis in x.order))

    return laid(moved)


@ROWS.row(METAL, Identity, PinConst)
def lower_identity(op: Identity, site: Site) -> Computed:
    """X"""
    return by_element(lambda x: x)
