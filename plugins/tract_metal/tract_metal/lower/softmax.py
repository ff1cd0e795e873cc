"""Exponentials that sum to 1."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx

from tract_core.ops.softmax import LogSoftmax, Softmax, SoftmaxOp
from tract_core.plugins.tables import Rows
from tract_metal.elements import wide
from tract_metal.site import Site
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, Softmax)
def lower_softmax(op: Softmax, site: Site) -> Callable[..., mx.array]:
    """By MLX's own, in f32."""
    return lambda x: x if x.size == 0 else mx.softmax(x, axis=list(op.axes), precise=True)


@ROWS.row(METAL, LogSoftmax)
def lower_log_softmax(op: LogSoftmax, site: Site) -> Callable[..., mx.array]:
    """The shifted input, less the logarithm of the sum of its exponentials."""
    return lambda x: x if x.size == 0 else _log_softmax(op, x)


def _log_softmax(op: SoftmaxOp, x: mx.array) -> mx.array:
    axes, wider = list(op.axes), wide(x)
    shifted = wider - mx.max(wider, axis=axes, keepdims=True)
    return (shifted - mx.log(mx.sum(mx.exp(shifted), axis=axes, keepdims=True))).astype(x.dtype)
