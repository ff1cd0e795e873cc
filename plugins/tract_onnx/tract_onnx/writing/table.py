"""The table ``onnx_write``: how each operator of the core is written as nodes of ONNX.

A function takes the operator and its surroundings, adds nodes, and returns the name of the tensor that is the result,
or one name for each result; ``None`` where the version of the operators that is written has no words for it:

    @ROWS.row(ONNX_WRITE, Trilu)
    def trilu(op: Trilu, node: Spelling) -> str: ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tract_core.plugins.tables import TableKey, function_row

if TYPE_CHECKING:
    from tract_onnx.writing.spelling import Spelling

OnnxWriteFn = Callable[[Any, "Spelling"], "str | Sequence[str] | None"]

ONNX_WRITE: TableKey[type, OnnxWriteFn] = TableKey("onnx_write", "how an operator is written in ONNX", function_row)
