"""Softmax and its logarithm, along the last axis."""

from __future__ import annotations

from tract_core.errors import FactError
from tract_core.ops.softmax import LogSoftmax, Softmax
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@tflite_op(ROWS, "SOFTMAX")
def softmax(node: TfliteNode, wire: Wiring) -> Wired:
    """Of beta times the elements"""
    x, beta = wire.tensor(0), node.number("beta", 1.0)
    return (x if beta == 1 else x * beta).op(Softmax((_last_axis(x),)))


@tflite_op(ROWS, "LOG_SOFTMAX")
def log_softmax(node: TfliteNode, wire: Wiring) -> Wired:
    """The logarithm of it"""
    x = wire.tensor(0)
    return x.op(LogSoftmax((_last_axis(x),)))


def _last_axis(x: Wired) -> int:
    if x.rank == 0:
        raise FactError(f"at least one axis is wanted, found {x.fact}")
    return x.rank - 1
