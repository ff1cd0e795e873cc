"""Products of matrices of quantised numbers."""

from __future__ import annotations

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import FactError
from tract_core.model.axes import AxesMapping
from tract_core.ops.einsum import EinSum
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.ops.matmul import as_matrix, require_plain_weights, rows_of
from tract_tensorflow.tflite.registry import quantized_op
from tract_tensorflow.tflite.steps import centred, scaled, stored
from tract_tensorflow.tflite.weights import factors_along
from tract_tensorflow.tflite.wiring import Wiring
from tract_tensorflow.tflite_only.fixed_point import Rounding

ROWS = Rows()

_ROWS: AxesMapping = AxesMapping(("bk", "nk"), ("bn",))


@quantized_op(ROWS, "FULLY_CONNECTED")
def fully_connected(node: TfliteNode, wire: Wiring) -> Wired:
    """Rows of data by weights (outputs, inputs), and a bias"""
    require_plain_weights(node)
    data = rows_of(wire.tensor(0), wire.tensor(1))
    sums, bias = _row_sums(wire, as_matrix(data)), wire.optional_tensor(2)
    if bias is not None:
        sums = sums + bias.cast(sums.dtype)
    factors = factors_along(node, 0, 2, 1)
    result = stored(scaled(sums, factors, Rounding.ONCE), node)
    return result.reshape((*data.shape[:-1], result.shape[1])) if node.flag("keep_num_dims") else result


def _product_factor(node: TfliteNode) -> float:
    """Steps of products in steps of the output; those of products are computed in f32."""
    product = np.float32(node.quantization(0).scale) * np.float32(node.quantization(1).scale)
    return float(product) / node.output_quantization().scale


def _row_sums(wire: Wiring, data: Wired) -> Wired:
    """Sums of products of distances from zero points: i32, or i64 with 16-bit data.

    What the zero point of the data adds is known where the weights are: the product is one of narrow integers.
    """
    zero, weights = wire.node.quantization(0).zero, wire.tensor(1)
    zeros = wire.node.quantization(1).zeros
    if data.dtype is DatumType.I16:
        narrow, wide = data.cast(DatumType.I64), weights.cast(DatumType.I64)
        return narrow.op(EinSum(_ROWS, DatumType.I64), wide)
    known = wire.constant(weights.outlet)
    if known is None or (zeros.size > 1 and zeros.any()):
        distances = weights.cast(DatumType.I32) - zeros.astype(np.int32).reshape(-1, 1)
        return (data.cast(DatumType.I32) - zero).op(EinSum(_ROWS, DatumType.I32), distances)
    distances = known.astype(np.int16) - int(zeros[0])
    sums = data.op(EinSum(_ROWS, DatumType.I32), data.operand(narrowed(distances)))
    return sums - (zero * distances.sum(axis=1, dtype=np.int64)).astype(np.int32)[None] if zero else sums


def narrowed(values: Array) -> Array:
    """In 8 bits where they fit, else in 16."""
    fits = not values.size or (int(values.min()) >= -128 and int(values.max()) <= 127)
    return values.astype(np.int8) if fits else values.astype(np.int16)


@quantized_op(ROWS, "BATCH_MATMUL")
def batch_matmul(node: TfliteNode, wire: Wiring) -> Wired:
    """The last two axes as matrices, either of which may be turned; axes before them stretch"""
    wide = DatumType.I64 if wire.tensor(0).dtype is DatumType.I16 else DatumType.I32
    a, b = (_at_least_two_axes(centred(wire, slot, wide)) for slot in (0, 1))
    a, b = map(a.with_outlet, wire.ranks(a.outlet, b.outlet))
    batch = "".join(chr(ord("A") + axis) for axis in range(a.rank - 2))
    first = batch + ("km" if node.flag("adj_x") else "mk")
    second = batch + ("nk" if node.flag("adj_y") else "kn")
    sums = a.op(EinSum(AxesMapping((first, second), (f"{batch}mn",)), wide), b)
    rounding = Rounding.SHORT if wide is DatumType.I64 else Rounding.TWICE
    return stored(scaled(sums, np.array(_product_factor(node)), rounding), node)


def _at_least_two_axes(x: Wired) -> Wired:
    if x.rank < 2:
        raise FactError(f"{x.fact} is given for a matrix")
    return x
