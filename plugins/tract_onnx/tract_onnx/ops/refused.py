"""Operators that are known and not taken here, each with the reason."""

from __future__ import annotations

from typing import Final

from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import MICROSOFT_DOMAIN, ONNX, OnnxFn, row_key
from tract_onnx.wiring import Wiring

ROWS = Rows()

_NCHWC: Final = (
    *("AveragePool", "Conv", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "ReorderInput", "ReorderOutput"),
    "Upsample",
)
_LAYOUT: Final = (
    "ONNX Runtime arranged the tensors for the machine on which it saved the model",
    "save the model before it is optimised, or at the level ORT_ENABLE_EXTENDED, which is for any machine",
)

REASONS: Final = {
    **dict.fromkeys((row_key(name, 1, f"{MICROSOFT_DOMAIN}.nchwc") for name in _NCHWC), _LAYOUT),
    **dict.fromkeys((row_key(name, 1, MICROSOFT_DOMAIN) for name in ("NhwcMaxPool", "QLinearConv")), _LAYOUT),
    row_key("Gradient", 1, "ai.onnx.preview.training"): (
        "it differentiates a part of the model, and models are only run here",
        "export the model for inference, or with the gradients as nodes of their own",
    ),
}
"""By the key of a row: why, and what to do instead."""


def _refuse(reason: str, hint: str) -> OnnxFn:
    def refuse(node: OnnxNode, wire: Wiring) -> OutletId:
        raise Unsupported(f"{node.op_type} is not supported: {reason}", hint=hint)

    return refuse


for _key, (_reason, _hint) in REASONS.items():
    ROWS.add(ONNX, _key, _refuse(_reason, _hint))
