"""Elements in the place of others."""

from __future__ import annotations

from typing import Any

from onnx import helper

from tract_core.data import Constant
from tract_core.ops.lookup import Lookup
from tract_core.plugins.tables import Rows
from tract_onnx.operators import ML_DOMAIN
from tract_onnx.writing.elements import tensor_of
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Lookup)
def lookup(op: Lookup, node: Spelling) -> str:
    """LabelEncoder, with tensors for the keys and values"""
    told: dict[str, Any] = {"keys_tensor": _tensor(op.keys), "values_tensor": _tensor(op.values)}
    default = Constant(op.default.array.reshape(1))
    return node.add("LabelEncoder", node.input(), domain=ML_DOMAIN, default_tensor=_tensor(default), **told)


def _tensor(value: Constant) -> Any:
    return helper.make_attribute("value", tensor_of("", value)).t
