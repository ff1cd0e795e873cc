"""Matrix products."""

from __future__ import annotations

from tract_core.dims import product, same_dim
from tract_core.errors import FactError, Unsupported
from tract_core.model.axes import AxesMapping
from tract_core.ops.einsum import EinSum, accumulator, wire_matmul
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_dyn_reshape
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.activation import activated
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.weights import float_weights
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@tflite_op(ROWS, "FULLY_CONNECTED")
def fully_connected(node: TfliteNode, wire: Wiring) -> Wired:
    """Data (..., inputs) times weights (outputs, inputs), and a bias"""
    require_plain_weights(node)
    weights = float_weights(wire, 1, wire.tensor(1), 0, 0)
    x = rows_of(wire.tensor(0), weights)
    kind, letters = x.dtype, "abcdefgh"[: x.rank - 1]
    found = x.op(EinSum(AxesMapping((f"{letters}k", "nk"), (f"{letters}n",)), accumulator(kind)), weights).cast(kind)
    bias = wire.optional_tensor(2)
    result = activated(found if bias is None else found + bias, node)
    return result if node.flag("keep_num_dims") else as_matrix(result)


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
    if x.dtype.is_float():
        y = float_weights(wire, 1, y, y.rank - 1, y.rank - 1)
    product = x.wire.through(wire_matmul, x.outlet, _turned(y, turns=node.flag("adj_y")).outlet)
    return Wired(wire, product).cast(node.output().kind or x.dtype)


def _turned(x: Wired, *, turns: bool) -> Wired:
    if x.rank < 2:
        raise FactError(f"matrices are wanted, found {x.fact}")
    return x.transpose((*range(x.rank - 2), x.rank - 1, x.rank - 2)) if turns else x
