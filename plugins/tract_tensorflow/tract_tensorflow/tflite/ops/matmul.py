"""Matrix products."""

from __future__ import annotations

from itertools import islice

from tract_core.data import DatumType
from tract_core.dims import product, same_dim
from tract_core.errors import FactError, Unsupported
from tract_core.model.axes import AxesMapping, letters
from tract_core.ops.einsum import EinSum, accumulator, wire_matmul
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_dyn_reshape
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.activation import activated
from tract_tensorflow.tflite.dynamic_range import ByteWeights, as_floats, byte_weights, in_bytes
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.weights import float_weights
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@tflite_op(ROWS, "FULLY_CONNECTED")
def fully_connected(node: TfliteNode, wire: Wiring) -> Wired:
    """Data (..., inputs) times weights (outputs, inputs), and a bias"""
    require_plain_weights(node)
    x, bias = rows_of(wire.tensor(0), wire.tensor(1)), wire.optional_tensor(2)
    outer = "".join(islice((name for name in letters() if name not in "kn"), x.rank - 1))
    axes = AxesMapping((f"{outer}k", "nk"), (f"{outer}n",))
    found = _by_rows(wire, x, wire.tensor(1), axes)
    result = activated(found if bias is None else found + bias, node)
    return result if node.flag("keep_num_dims") else as_matrix(result)


def _by_rows(wire: Wiring, x: Wired, weights: Wired, axes: AxesMapping) -> Wired:
    """Rows of data by rows of weights, one for each output."""
    in_steps = byte_weights(wire, 1, weights, 0)
    if in_steps is None:
        known = float_weights(wire, 1, weights, 0, 0)
        return x.op(EinSum(axes, accumulator(x.dtype)), known).cast(x.dtype)
    data = in_bytes(x, [x.rank - 1], asymmetric=wire.node.flag("asymmetric_quantize_inputs"))
    sums = data.integers.op(EinSum(axes, DatumType.I32), in_steps.integers)
    whole = in_steps.integers.cast(DatumType.I32).sum([1]).reshape([weights.shape[0]])
    return as_floats(sums, data, in_steps, whole, x.rank - 1)


def require_plain_weights(node: TfliteNode) -> None:
    """Raises Unsupported for weights of FULLY_CONNECTED in an order of their own."""
    if node.choice("weights_format", ("DEFAULT", "SHUFFLED4x16INT8"), "DEFAULT") != "DEFAULT":
        raise Unsupported("weights of FULLY_CONNECTED that are shuffled", hint="convert the model again")


def rows_of(x: Wired, weights: Wired) -> Wired:
    """Data whose last axis is that of the weights: rows of it are as many elements. Raises FactError."""
    if weights.rank != 2:
        raise FactError(f"weights of two axes are wanted, outputs and inputs, found {weights.fact}")
    inputs = weights.shape[1]
    if x.rank and same_dim(x.shape[-1], inputs):
        return x
    return x.through(wire_dyn_reshape, x.wire.const((-1, inputs)), allow_zero=True)


def as_matrix(x: Wired) -> Wired:
    """All axes but the last as one."""
    return x if x.rank == 2 else x.reshape((product(x.shape[:-1]), x.shape[-1]))


@tflite_op(ROWS, "BATCH_MATMUL")
def batch_matmul(node: TfliteNode, wire: Wiring) -> Wired:
    """The products of matrices in the last two axes, either of which may be turned; the axes before them stretch"""
    x = _turned(wire.tensor(0), turns=node.flag("adj_x"))
    y = wire.tensor(1)
    in_steps = byte_weights(wire, 1, y, y.rank - 1) if y.dtype is DatumType.I8 else None
    if in_steps is not None and in_steps.scales.size == 1:
        return _by_matrices(node, x, in_steps)
    if x.dtype.is_float():
        y = float_weights(wire, 1, y, y.rank - 1, y.rank - 1)
    product = x.wire.through(wire_matmul, x.outlet, _turned(y, turns=node.flag("adj_y")).outlet)
    return Wired(wire, product).cast(node.output().kind or x.dtype)


def _by_matrices(node: TfliteNode, x: Wired, weights: ByteWeights) -> Wired:
    """Each row of the data has its scale."""
    data = in_bytes(x, [x.rank - 1], asymmetric=node.flag("asymmetric_quantize_inputs"))
    y = _turned(weights.integers, turns=node.flag("adj_y"))
    rank = max(x.rank, y.rank)
    names = "abcdefgh"[: rank - 2]
    terms = (f"{names[rank - x.rank :]}mk", f"{names[rank - y.rank :]}kn")
    sums = data.integers.op(EinSum(AxesMapping(terms, (f"{names}mn",)), DatumType.I32), y)
    whole = y.cast(DatumType.I32).sum([y.rank - 2])
    return as_floats(sums, data, weights, whole, rank - 1)


def _turned(x: Wired, *, turns: bool) -> Wired:
    if x.rank < 2:
        raise FactError(f"matrices are wanted, found {x.fact}")
    return x.transpose((*range(x.rank - 2), x.rank - 1, x.rank - 2)) if turns else x
