"""Choose which tensors of a file's graph are its inputs and its outputs, by name."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tract_core.analysis.inference import InferenceModel, Source
from tract_core.errors import InputError
from tract_core.model.fact import InferenceFact
from tract_core.model.graph import Graph, OutletId


def outlet_named(model: Graph[Any, Any], name: str) -> OutletId:
    """The tensor of that label or node name (``NAME:SLOT`` for a later output). Raises GraphError with near names."""
    for outlet, label in model.outlet_labels.items():
        if label == name:
            return outlet
    if not model.has_node(name):
        base, _, slot = name.rpartition(":")
        if slot.isdigit() and model.has_node(base):
            outlet = OutletId(model.node_by_name(base).id, int(slot))
            model.outlet(outlet)
            return outlet
    return OutletId(model.node_by_name(name).id)


def set_inputs(model: InferenceModel, names: Iterable[str]) -> None:
    """Make these tensors the inputs, in order, whatever gave them their values before; what is known of them stays.

    Raises GraphError for a name that is not there, and InputError for one that comes twice, and when an output needs
    an input that is not among them.
    """
    names = list(names)
    if len(set(names)) < len(names):
        raise InputError(f"an input is named twice: {', '.join(names)}")
    outlets = [outlet_named(model, name) for name in names]
    _check_complete(model, set(outlets))
    facts = [model.outlet_fact(outlet) for outlet in outlets]
    model.inputs = []
    for outlet, name, fact in zip(outlets, names, facts, strict=True):
        readers = list(model.outlet(outlet).successors)
        label = model.outlet_name(outlet)
        model.rename(outlet.node, f"{label}.cut")
        source = model.add_source(name, InferenceFact(fact.datum_type, fact.shape))
        for inlet in readers:
            model.reconnect(inlet, source)
        model.set_outputs(source if output == outlet else output for output in model.outputs)


def _check_complete(model: InferenceModel, inputs: set[OutletId]) -> None:
    """Raise InputError when the outputs need a source that is not behind one of ``inputs``."""
    pending, seen = [outlet for outlet in model.outputs if outlet not in inputs], set[int]()
    missing: list[str] = []
    while pending:
        node = model.nodes[pending.pop().node]
        if node.id in seen:
            continue
        seen.add(node.id)
        if isinstance(node.op, Source):
            missing.append(node.name)
        pending += [outlet for outlet in node.inputs if outlet not in inputs]
    if missing:
        raise InputError(
            f"the outputs need {', '.join(repr(name) for name in sorted(missing))} too",
            hint="name it as well, or a tensor that is computed from it",
        )
