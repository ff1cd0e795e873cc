"""Graphs of a file that say how two elements become one."""

from __future__ import annotations

from tract_core.errors import Unsupported
from tract_tensorflow.tflite.node import TfliteNode

REPLACED = "the second"
"""What a body is that gives its second input."""

_PREFIX = "STABLEHLO_"


def joining(node: TfliteNode, option: str) -> str:
    """The operator of the graph that an option names, as ``ADD``; or `REPLACED`. Raises Unsupported for another one."""
    graph = node.file.graph(node.integer(option, 0))
    inputs, outputs = graph.numbers("inputs").tolist(), graph.numbers("outputs").tolist()
    operators = list(graph.tables("operators"))
    if len(inputs) == 2 and outputs == inputs[1:] and not operators:
        return REPLACED
    if len(operators) == 1 and len(inputs) == 2:
        read, written = (operators[0].numbers(name).tolist() for name in ("inputs", "outputs"))
        code = operators[0].integer("opcode_index")
        if sorted(read) == sorted(inputs) and written == outputs and code < len(node.file.codes):
            return node.file.codes[code].removeprefix(_PREFIX)
    raise Unsupported(f"{node.op_type} by a graph of {len(operators)} operators, wanted one of two inputs")
