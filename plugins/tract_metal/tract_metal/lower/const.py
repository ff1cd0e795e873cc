"""Sizes as tensors: their values are known when functions are recorded."""

from __future__ import annotations

from collections.abc import Callable

import mlx.core as mx
import numpy as np

from tract_core.data import Constant
from tract_core.model.const import Const
from tract_core.plugins.tables import Rows
from tract_metal.elements import written_in
from tract_metal.site import Site
from tract_metal.table import METAL

ROWS = Rows()


@ROWS.row(METAL, Const)
def lower_const(op: Const, site: Site) -> Callable[[], mx.array]:
    """The numbers that sizes are."""

    def numbers() -> mx.array:
        value = op.value
        array = (
            value.array
            if isinstance(value, Constant)
            else np.asarray(value.array, site.fact(site.outputs[0]).datum_type.numpy)
        )
        return written_in(array)

    return numbers
