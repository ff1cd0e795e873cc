"""Elements taken from the places that windows chose, and put back there.

A place is counted within its channel, as ``max_pool_with_index`` gives it. Where the standard asks for windows over
batch or channels too, there is no such place, and the file is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, product
from tract_core.errors import CorruptModel, Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.cast import Cast
from tract_core.ops.deconv import Deconv
from tract_core.ops.gather import GatherElements
from tract_core.ops.pool import MaxPool
from tract_core.ops.pool_spec import PoolSpec
from tract_core.ops.scatter import ScatterElements
from tract_core.ops.wiring import require_shape, wire_broadcast, wire_reshape
from tract_core.plugins.tables import Rows
from tract_nnef.ops.pool_spec import WINDOW, read_steps
from tract_nnef.reading.call import Call
from tract_nnef.registry import STANDARD, reads

ROWS = Rows()

_SAMPLE: Final = f"input: tensor<scalar>, index: tensor<integer>, size: integer[], {WINDOW}"


@reads(ROWS, STANDARD, f"sample({_SAMPLE}) -> (output: tensor<scalar>)")
def read_sample(call: Call) -> OutletId:
    """For each window, the element of its place."""
    x, index, pool = _read(call)
    shape = call.shape(x)
    wanted = (*shape[:2], *(plan.output for plan in pool.plan(MaxPool(pool), shape)))
    require_shape(call.model, call.node, "index", index, wanted)
    found = call.op(GatherElements(2), _flat(call, x, shape), _flat(call, index, wanted))
    return _reshaped(call, found, wanted)


@reads(ROWS, STANDARD, f"desample({_SAMPLE}, output_shape: integer[] = []) -> (output: tensor<scalar>)")
def read_desample(call: Call) -> OutletId:
    """Zeros, with each element added to its place: the transpose of ``sample``, as `debox` is that of `box`."""
    x, index, pool = _read(call)
    shape = call.shape(x)
    require_shape(call.model, call.node, "index", index, shape)
    wanted = call.dims("output_shape")
    if len(wanted) not in (0, len(shape)):
        raise CorruptModel(f"desample: output_shape has {len(wanted)} sizes, wanted {len(shape)}")
    plans = pool.transposed_plan(Deconv(pool), shape, (0,) * pool.rank)
    whole = wanted or (*shape[:2], *(plan.output for plan in plans))
    zero = call.constant_array(np.zeros((1, 1, 1), call.dtype(x).storage.numpy))
    zeros = wire_broadcast(call.model, call.unique("zeros"), zero, (*whole[:2], product(whole[2:])))
    filled = call.op(ScatterElements(2, "add"), zeros, _flat(call, index, shape), _flat(call, x, shape))
    return _reshaped(call, filled, whole)


def _read(call: Call) -> tuple[OutletId, OutletId, PoolSpec]:
    """The input, the places, and the windows over spatial axes. Raises CorruptModel, Unsupported."""
    x, index = call.real(call.input("input")), call.input("index", DatumType.I64)
    call.choice("border", ("constant", "ignore"))
    sizes, rank = call.integers("size"), call.rank(x)
    steps = read_steps(call, rank)
    if len(sizes) != rank or rank < 2:
        raise call.misfit("size", f"has {len(sizes)} entries", f"{rank}, one per axis, 2 or more")
    leading = (*sizes[:2], *steps.strides[:2], *(end + 1 for pair in (steps.padding or ())[:2] for end in pair))
    if any(number != 1 for number in leading):
        raise Unsupported(
            f"{call.name}: windows over batch or channels: size {list(sizes)}, stride {list(steps.strides)}"
        )
    if not call.dtype(index).is_integer():
        raise CorruptModel(f"{call.name}: places are integers, found {call.fact(index)}")
    return x, call.op(Cast(DatumType.I64), index), steps.spatial(slice(2, None)).pool(sizes[2:])


def _flat(call: Call, x: OutletId, shape: Sequence[Dim]) -> OutletId:
    """All spatial axes as one."""
    return _reshaped(call, x, (*shape[:2], product(shape[2:])))


def _reshaped(call: Call, x: OutletId, shape: Sequence[Dim]) -> OutletId:
    return wire_reshape(call.model, call.unique("reshape"), x, shape)
