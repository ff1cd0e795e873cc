"""Images made larger or smaller by whole factors, one for each axis behind batch and channels."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.data import Constant
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.downsample import Downsample
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.pad import Pad, PadConstant
from tract_core.ops.pool import SumPool
from tract_core.ops.pool_spec import DataFormat, PoolSpec
from tract_core.ops.resize import Coordinates, NearestMode, Resize, Sampling, Scales
from tract_core.ops.slice import Slice
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, STANDARD, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()

_NEAREST: Final = Sampling(Interpolator.NEAREST, Coordinates.ASYMMETRIC, NearestMode.FLOOR)

_METHODS: Final = {
    "symmetric": Coordinates.HALF_PIXEL,
    "asymmetric": Coordinates.ASYMMETRIC,
    "aligned": Coordinates.ALIGN_CORNERS,
}


@reads(ROWS, STANDARD, "nearest_upsample(input: tensor<scalar>, factor: integer[]) -> (output: tensor<scalar>)")
def read_nearest_upsample(call: Call) -> OutletId:
    """Each element as often as the factor says."""
    x, factors = _read(call)
    return call.op(_larger(factors, _NEAREST), x)


@reads(
    ROWS,
    STANDARD,
    "multilinear_upsample(input: tensor<scalar>, factor: integer[], method: string = 'symmetric',"
    " border: string = 'replicate') -> (output: tensor<scalar>)",
)
def read_multilinear_upsample(call: Call) -> OutletId:
    """Elements interpolated between those of the input.

    ``method``: ``symmetric`` has the elements' centres at 1/2, 3/2 and so on, ``asymmetric`` at 0, 1 and so on, and
    ``aligned`` keeps the first and the last one where they are. ``border``: what lies beyond is the element at the
    edge, or 0 for ``constant``.
    """
    x, factors = _read(call)
    x = call.real(x)
    method = call.choice("method", _METHODS)
    op = _larger(factors, Sampling(Interpolator.LINEAR, _METHODS[method]))
    if call.choice("border", ("replicate", "constant")) == "replicate" or method == "aligned":
        return call.op(op, x)
    kind = call.dtype(x).storage.numpy
    zeros = PadConstant(Constant(np.zeros((), kind)))
    shape = call.shape(x)
    y = call.op(op, call.op(Pad(((0, 0), (0, 0), *[(1, 1)] * len(factors)), zeros), x))
    for axis, factor in enumerate(factors, start=2):
        y = call.op(Slice(axis, factor, factor * (shape[axis] + 1)), y)
    return y


@reads(ROWS, STANDARD, "nearest_downsample(input: tensor<scalar>, factor: integer[]) -> (output: tensor<scalar>)")
def read_nearest_downsample(call: Call) -> OutletId:
    """Every n-th element, from the first one on."""
    x, factors = _read(call)
    for axis, factor in enumerate(factors, start=2):
        x = call.op(Downsample(axis, factor), x)
    return x


@reads(ROWS, STANDARD, "area_downsample(input: tensor<scalar>, factor: integer[]) -> (output: tensor<scalar>)")
def read_area_downsample(call: Call) -> OutletId:
    """The means of blocks of elements; what does not fill a block at the end is left out."""
    x, factors = _read(call)
    return call.op(SumPool(PoolSpec(DataFormat.NCHW, factors, strides=factors)), call.real(x))


def _read(call: Call) -> tuple[OutletId, tuple[int, ...]]:
    """The input, and the factors. Raises CorruptModel where these are not one per spatial axis, 1 or more."""
    x, factors = call.input("input"), call.integers("factor")
    if len(factors) != call.rank(x) - 2 or any(factor < 1 for factor in factors):
        raise CorruptModel(
            f"{call.name}: factors {list(factors)} for {call.fact(x)}, wanted one per axis behind batch and channels,"
            " 1 or more"
        )
    return x, factors


def _larger(factors: tuple[int, ...], sampling: Sampling) -> Resize:
    return Resize(tuple(range(2, len(factors) + 2)), Scales(tuple(map(float, factors))), sampling)


def spell_upsample(op: Resize, node: Spelling) -> Invocation | None:
    """By the name of the standard, where reading that gives the same operator; ``None`` for any other.

    The tract engines have these operators in the registry of their own.
    """
    if not isinstance(op.target, Scales) or len(op.axes) != node.input_fact(0).rank - 2:
        return None
    if any(value < 1 or value != int(value) for value in op.target.values):
        return None
    factors, home = tuple(map(int, op.target.values)), CORE if node.allows(CORE) else STANDARD
    if op == _larger(factors, _NEAREST):
        return node.invoke("nearest_upsample", node.input(0), factor=list(factors), registry=home)
    for method, coordinates in _METHODS.items():
        if op == _larger(factors, Sampling(Interpolator.LINEAR, coordinates)):
            named = {"factor": list(factors), "method": method, "border": "replicate"}
            return node.invoke("multilinear_upsample", node.input(0), registry=home, **named)
    return None
