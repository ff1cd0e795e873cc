"""Calls of what StableHLO has no operator for, by the name of a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_core.errors import Unsupported
from tract_core.model.identity import Identity
from tract_core.model.op import TypedOp
from tract_core.ops import elementwise
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()

_FUNCTIONS: Final[Mapping[str, TypedOp]] = {
    "acos": elementwise.Acos(),
    "acosh": elementwise.Acosh(),
    "asin": elementwise.Asin(),
    "asinh": elementwise.Asinh(),
    "atanh": elementwise.Atanh(),
    "cosh": elementwise.Cosh(),
    "erf": elementwise.Erf(),
    "sinh": elementwise.Sinh(),
    "tan": elementwise.Tan(),
}

TARGETS: Final[Mapping[str, TypedOp]] = {
    "Sharding": Identity(),
    **{f"mhlo.{name}": op for name, op in _FUNCTIONS.items()},
}
"""Operators of one tensor. ``Sharding`` says on which machines a tensor lies."""


@tflite_op(ROWS, "STABLEHLO_CUSTOM_CALL")
def custom_call(node: TfliteNode, wire: Wiring) -> Wired:
    """Functions of one tensor that StableHLO names ``mhlo.erf``, ``mhlo.tan`` and so on, and ``Sharding``"""
    target = node.text_of("call_target_name")
    if target not in TARGETS or len(node.outputs) != 1:
        raise Unsupported(
            f"a call of {target[:200]!r}, wanted one of {', '.join(sorted(TARGETS))}", hint="convert the model again"
        )
    return wire.tensor(0).op(TARGETS[target])
