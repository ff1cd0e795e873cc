"""Images cut into windows: for each place of a window, the elements that stand there in all windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tract_core.data import Constant
from tract_core.dims import Dim, ceil_div, dim_max
from tract_core.errors import FactError, LimitExceeded
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.downsample import Downsample
from tract_core.ops.pad import PadConstant
from tract_core.ops.pool_spec import DataFormat
from tract_core.ops.slice import Slice
from tract_core.ops.wiring_dyn import wire_pad
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.ops.spatial import spatial
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()

MOST: Final = 4096
"""Places of a window: each becomes a few nodes."""


@frozen
class Patches:
    """Windows of ``sizes`` elements, ``rates`` apart, every ``strides``; ``same``: padded as SAME says."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    rates: tuple[int, ...]
    same: bool

    @staticmethod
    def of(node: GraphNode, sizes: Sequence[int], rates: str) -> Patches:
        """What the attributes of a node say. Raises ModelError."""
        strides, spread = (spatial(node, name, DataFormat.NHWC, node.integers(name)) for name in ("strides", rates))
        if not len(sizes) == len(strides) == len(spread) or min(*sizes, *strides, *spread) < 1:
            raise FactError(f"windows of {list(sizes)}, every {list(strides)}, with rates {list(spread)}")
        if np.prod(sizes, dtype=object) > MOST:
            raise LimitExceeded(f"windows of {list(sizes)}; at most {MOST} elements are allowed")
        return Patches(tuple(sizes), strides, spread, node.choice("padding", ("SAME", "VALID")) == "SAME")

    def wire(self, wire: GraphWiring, x: OutletId, fill: Any) -> list[OutletId]:
        """For each place of a window, in row-major order, its elements: (batch, windows, channels)."""
        shape = wire.shape(x)
        if len(shape) != len(self.sizes) + 2:
            raise FactError(f"a tensor of {len(self.sizes) + 2} axes is wanted, found {wire.fact(x)}")
        ends = [self._axis(axis, size) for axis, size in enumerate(shape[1:-1])]
        mode = PadConstant(Constant(np.array(fill, wire.dtype(x).numpy)))
        x = wire.through(wire_pad, x, [(0, 0), *((before, after) for _, before, after in ends), (0, 0)], mode)
        counts = [count for count, _, _ in ends]
        return [self._part(wire, x, place, counts) for place in np.ndindex(*self.sizes)]

    def _axis(self, axis: int, size: Dim) -> tuple[Dim, Dim, Dim]:
        """How many windows there are on an axis, and how many elements are added before and after."""
        field, stride = (self.sizes[axis] - 1) * self.rates[axis] + 1, self.strides[axis]
        if not self.same:
            return (size - field) // stride + 1, 0, 0
        count = ceil_div(size, stride)
        total = dim_max((count - 1) * stride + field - size, 0)
        return count, total // 2, total - total // 2

    def _part(self, wire: GraphWiring, x: OutletId, place: Sequence[int], counts: Sequence[Dim]) -> OutletId:
        for axis, (index, count) in enumerate(zip(place, counts, strict=True)):
            stride, start = self.strides[axis], index * self.rates[axis]
            x = wire.op(Slice(axis + 1, start, start + (count - 1) * stride + 1), x)
            x = x if stride == 1 else wire.op(Downsample(axis + 1, stride), x)
        return x


@tf_op(ROWS, "ExtractImagePatches")
def extract_image_patches(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The elements of each window, place by place, in the place of the channels"""
    sizes = spatial(node, "ksizes", DataFormat.NHWC, node.integers("ksizes"))
    parts = Patches.of(node, sizes, "rates").wire(wire, wire.input(0), 0)
    return wire.op(TypedConcat(wire.rank(parts[0]) - 1), *parts)
