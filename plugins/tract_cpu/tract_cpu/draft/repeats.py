"""Tensors whose positions along an axis are repeated, as the keys of heads that share them: not written out at once.

A reshape joins the axis with one of stride 0 behind it. Where only a kernel reads the result that goes along the axis
in loops, it reads each position several times instead of a copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from tract_llvm.program.views import View

from tract_core.dims import Dim, is_one
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.einsum import EinSum


@frozen
class Repeated:
    """``once``: each position along ``axis`` once; in the tensor, it is there ``times``, one after the other."""

    once: View
    axis: int
    times: Dim

    @property
    def apart(self) -> View:
        """With an axis behind, along which nothing moves."""
        shape, strides, behind = list(self.once.shape), list(self.once.strides), self.axis + 1
        shape.insert(behind, self.times)
        strides.insert(behind, 0)
        return replace(self.once, shape=tuple(shape), strides=tuple(strides))


def repeats_later(model: TypedModel, outlet: OutletId, x: View, shape: Sequence[Dim]) -> Repeated | None:
    """A tensor as one that repeats positions of what it is reshaped from, where a product alone reads it."""
    readers = model.outlet(outlet).successors
    if outlet in model.outputs or [type(model.nodes[one.node].op) for one in readers] != [EinSum]:
        return None
    return _repeated(x, shape)


def _repeated(x: View, shape: Sequence[Dim]) -> Repeated | None:
    for axis, (size, times) in enumerate(pairwise(x.shape)):
        joined = (*x.shape[:axis], size * times, *x.shape[axis + 2 :])
        if x.strides[axis + 1] == 0 and not is_one(times) and joined == tuple(shape):
            once = [tuple(part for place, part in enumerate(one) if place != axis + 1) for one in (x.shape, x.strides)]
            return Repeated(replace(x, shape=once[0], strides=once[1]), axis, times)
    return None
