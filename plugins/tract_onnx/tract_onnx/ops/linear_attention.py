"""Recurrent forms of attention that ONNX Runtime had (domain ``com.microsoft``) before the standard took them over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tract_core.errors import Unsupported
from tract_core.ops.wired import Results
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.ops.function_body import function_body
from tract_onnx.registry import DEFAULT_DOMAIN, MICROSOFT_DOMAIN, onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()

SINCE: Final = 27
"""The version of the standard that has these operators."""

_BEYOND: Final[Mapping[str, Mapping[str, int]]] = {
    "LinearAttention": {"state_window": 0},
    "CausalConvWithState": {
        "ndim": 1,
        "dilation": 1,
        "channels_last": 0,
        "state_window": 0,
        "state_length": 0,
        "state_channels_last": -1,
        "state_update_capacity": 0,
        "input_channels": 0,
        "input_channel_offset": 0,
    },
}
"""Attributes that the standard does not have, and what they are where they say nothing."""


@onnx_op(ROWS, "LinearAttention", "CausalConvWithState", domain=MICROSOFT_DOMAIN)
def as_in_the_standard(node: OnnxNode, wire: Wiring) -> Results:
    """The operator of the same name in version 27 of the standard"""
    beyond = _BEYOND[node.op_type]
    for name, neutral in beyond.items():
        value = node.integer(name, neutral)
        if value != neutral:
            raise Unsupported(f"{node.op_type} with {name}={value}, which the standard does not have")
    attributes = {name: given for name, given in node.attributes.items() if name not in beyond}
    return function_body(replace(node, domain=DEFAULT_DOMAIN, version=SINCE, attributes=attributes), wire)
