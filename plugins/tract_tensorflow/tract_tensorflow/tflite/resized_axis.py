"""Which elements images in other sizes are made of: the arithmetic of LiteRT's kernels, for sizes that a run tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import is_symbolic
from tract_core.errors import CorruptModel, Unsupported
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.ops.gather import Gather
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_range
from tract_tensorflow.tflite.wiring import Wiring

_IMAGE: Final = (1, 2)


@frozen
class ResizedAxis:
    """An axis, along which elements lie in other places.

    ``size``: how many elements there are, ``to``: how many are wanted, i64 without axes; ``steps``: 0, 1, ..., i64.
    ``corners``, ``half``: whether the ends stand for the centres of the elements there, and whether elements have
    their places in their middle.
    """

    size: Wired
    to: Wired
    steps: Wired
    corners: bool
    half: bool

    def nearest(self) -> Wired:
        """The nearest element, i64: the one below, and with ``corners`` the one above in the middle."""
        places = self._scaled(self.steps.cast(DatumType.F32) + 0.5 if self.half else self.steps.cast(DatumType.F32))
        found = (places.cast(DatumType.F64) + 0.5 if self.corners else places).floor().cast(DatumType.I64)
        return found.maximum(0).minimum(self.size - 1)

    def between(self) -> tuple[Wired, Wired, Wired]:
        """The elements below and above, i64, and how far above the one below it is, f32."""
        steps = self.steps.cast(DatumType.F32)
        places = self._scaled(steps + 0.5) - 0.5 if self.half else self._scaled(steps)
        low = places.floor().maximum(0)
        high = places.ceil().cast(DatumType.I64).minimum(self.size - 1)
        return low.cast(DatumType.I64), high, places - low

    def fixed(self) -> tuple[Wired, Wired, Wired]:
        """The same with 10 bits behind the point, all in i64; quotients are cut off towards zero."""
        whole, parts = self._spans()
        scale = ((whole << 10) + parts / 2) / parts
        places = self.steps * scale + (scale / 2 - (1 << 9)) if self.half else self.steps * scale
        low = (places / (1 << 10)).maximum(0)
        high = ((places + ((1 << 10) - 1)) / (1 << 10)).minimum(self.size - 1)
        return low, high, places - low * (1 << 10)

    def _spans(self) -> tuple[Wired, Wired]:
        """The lengths whose quotient is the distance of two places."""
        if not self.corners:
            return self.size, self.to
        more = self.to > 1
        return more.where(self.size - 1, self.size), more.where(self.to - 1, self.to)

    def _scaled(self, steps: Wired) -> Wired:
        whole, parts = self._spans()
        return steps * (whole.cast(DatumType.F32) / parts.cast(DatumType.F32))


def places_of(wire: Wiring) -> list[ResizedAxis]:
    """Height and width of an image (batch, height, width, channels); the second input has those that are wanted.

    Raises ModelError.
    """
    node, x = wire.node, wire.tensor(0)
    sizes = wire.sizes(wire.input(1))
    wanted = wire.dims(sizes)
    known = [int(one) for one in wanted or () if not is_symbolic(one)]
    if x.rank != 4 or wire.shape(sizes).volume != len(_IMAGE) or min(known, default=1) < 1:
        shown = list(map(str, wanted)) if wanted is not None else wire.fact(sizes)
        raise CorruptModel(f"{x.fact} is wanted with the height and width {shown}")
    corners, half = node.flag("align_corners"), node.flag("half_pixel_centers")
    if corners and half:
        raise Unsupported(f"{node.op_type} with both align_corners and half_pixel_centers")
    return [
        ResizedAxis(
            Wired(wire, wire.const(x.shape[axis])), Wired(wire, to), Wired(wire, _steps(wire, to)), corners, half
        )
        for axis, to in zip(_IMAGE, (wire.element(sizes, place) for place in range(len(_IMAGE))), strict=True)
    ]


def _steps(wire: Wiring, count: OutletId) -> OutletId:
    """0, 1, ..., so many."""
    return wire.through(wire_range, wire.const(np.array(0)), count, wire.const(np.array(1)))


def picked(x: Wired, places: Sequence[Wired]) -> Wired:
    """Rows and columns of an image at places."""
    for axis, each in zip(_IMAGE, places, strict=True):
        x = x.op(Gather(axis), each)
    return x
