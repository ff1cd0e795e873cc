"""Graphs inside nodes, as models of their own."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from tract_core.analysis import into_body
from tract_core.analysis.inference import InferenceModel
from tract_core.frozen import frozen
from tract_core.model.fact import InferenceFact, TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_onnx.graph import GraphReader
from tract_onnx.node import OnnxNode
from tract_onnx.wiring import Wiring


@frozen
class Body:
    """A graph as a model. ``captured``: where, in the model around it, its inputs after the graph's own come from."""

    model: TypedModel
    captured: tuple[OutletId, ...]


def read_body(
    node: OnnxNode, wire: Wiring, graph: onnx.GraphProto, inputs: Sequence[TypedFact] = (), *, own_scope: bool = False
) -> Body:
    """The model of a graph inside ``node``, whose own inputs have the facts ``inputs``.

    Values that are captured from around it and known there are known in it. With ``own_scope``, what is found to be
    so wherever the graph runs, as that two sizes are equal, need not be so where it does not run. Raises ModelError.
    """
    symbols = wire.model.symbols.copy() if own_scope else wire.model.symbols
    untyped = InferenceModel(symbols, wire.model.registry)
    untyped.limits = wire.model.limits
    untyped.strict_facts = node.file.strict_facts
    place = f"node {node.name[:200]!r} ({node.op_type[:200]})"
    reader = GraphReader(node.file.inside(place), graph, untyped)
    names = [info.name for info in graph.input]
    outer = {name: outlet for name, outlet in wire.outer.items() if name not in names}
    for name, outlet in outer.items():
        reader.add_outer(name, InferenceFact.from_typed(wire.fact(outlet)))
    reader.add_all({name: InferenceFact.from_typed(fact) for name, fact in zip(names, inputs, strict=False)})
    own = untyped.inputs[len(outer) :]
    untyped.inputs = own + untyped.inputs[: len(outer)]
    typed = into_body(untyped, wire.model, place)
    wire.model.symbols.add_symbols(typed.symbols)
    # What is known is a constant in the body, and no input of it.
    return Body(typed, tuple(outlet for outlet in outer.values() if wire.fact(outlet).value is None))
