"""Graphs of a file that others call, as models of their own."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.analysis import into_body
from tract_core.analysis.inference import InferenceModel
from tract_core.errors import CorruptModel
from tract_core.model.fact import InferenceFact, TypedFact
from tract_core.model.typed import TypedModel
from tract_tensorflow.tflite.graph import GraphReader
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.variables import Variables
from tract_tensorflow.tflite.wiring import Wiring


def read_body(
    node: TfliteNode, wire: Wiring, index: int, inputs: Sequence[TypedFact], *, own_scope: bool = False
) -> TypedModel:
    """The model of the graph of that number, whose inputs have these facts; one that is known is no input of it.

    What the node's graphs do with variables (`Handed`) comes behind: what these hold is the last inputs, and what those
    that are assigned hold then, the last outputs. With ``own_scope``, what is found to be so wherever the graph runs
    need not be so where it does not run. Raises ModelError.
    """
    symbols = wire.model.symbols.copy() if own_scope else wire.model.symbols
    untyped = InferenceModel(symbols, wire.model.registry)
    untyped.limits = wire.model.limits
    calls, variables = node.calls, Variables()
    reader = GraphReader(node.file.inside(index), untyped, variables, handles=calls.handles)
    count = len(inputs) - len(calls.held)
    if len(reader.inputs) != count:
        raise CorruptModel(f"graph {index} has {len(reader.inputs)} inputs, it is called with {count}")
    facts = [InferenceFact.from_typed(fact) for fact in inputs]
    reader.add_inputs(facts[:count])
    for name, fact in zip(calls.held, facts[count:], strict=True):
        variables.held[name] = untyped.add_source(name, fact)
    reader.add_nodes()
    after = [variables.held[name] for name in calls.held[: calls.assigned]]
    untyped.set_outputs([*reader.results(), *after])
    typed = into_body(untyped, wire.model, f"node {wire.name[:200]!r} ({node.op_type})")
    wire.model.symbols.add_symbols(typed.symbols)
    return typed
