"""Elements divided by the root of their mean square, and layers that normalise."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx

from tract_core.ops.norm import RmsNorm
from tract_core.plugins.tables import Rows
from tract_metal.elements import wide
from tract_metal.group.norm import Normed
from tract_metal.site import Site
from tract_metal.table import KINDS, METAL

ROWS = Rows()


@ROWS.row(METAL, RmsNorm)
def lower_rms_norm(op: RmsNorm, site: Site) -> Callable[[mx.array], mx.array]:
    """By MLX's own along the last axis."""

    def normed(x: mx.array) -> mx.array:
        if x.size == 0:
            return x
        if op.axis == x.ndim - 1:
            return mx.fast.rms_norm(x, None, op.eps)
        data = wide(x)
        mean = mx.mean(data * data, axis=op.axis, keepdims=True)
        return (data / mx.sqrt(mean + op.eps)).astype(x.dtype)

    return normed


@ROWS.row(KINDS, Normed)
def lower_normed(group: Normed, site: Site) -> Callable[..., mx.array]:
    """By MLX's own, in f32 inside."""

    def normed(*arrays: mx.array) -> mx.array:
        given = dict(zip(site.inputs, arrays, strict=True))
        x = given[group.x]
        scale, shift = (None if one is None else mx.reshape(given[one], (-1,)) for one in (group.scale, group.shift))
        if x.size == 0:
            return x
        if group.centred:
            return mx.fast.layer_norm(x, scale, shift, group.eps)
        return mx.fast.rms_norm(x, scale, group.eps)

    return normed
