"""Elements around a tensor."""

from __future__ import annotations

import mlx.core as mx
import numpy as np

from tract_core.ops.pad import Pad, PadConstant
from tract_core.plugins.tables import Rows
from tract_metal.elements import written_in
from tract_metal.layout import Laid
from tract_metal.site import Computed, Site, laid
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, Pad)
def lower_pad(op: Pad, site: Site) -> Computed:
    """A number around it, or elements of it in another order, axis by axis."""

    def padded(x: Laid) -> Laid:
        ends = [(int(before), int(after)) for before, after in (op.pads[axis] for axis in x.order)]
        if isinstance(op.mode, PadConstant):
            value = written_in(op.mode.value.array)
            return Laid(mx.pad(x.array, ends, constant_values=value) if ends else x.array, x.order)
        array = x.array
        for axis, pair in enumerate(ends):
            if pair != (0, 0):
                places = np.pad(np.arange(array.shape[axis]), pair, mode=op.mode.numpy)
                array = mx.take(array, mx.array(places), axis=axis)
        return Laid(array, x.order)

    return laid(padded)
