"""Choose which tensors of a file's graph are its inputs, by name."""

from __future__ import annotations

from collections.abc import Iterable

from tract_core.analysis.inference import InferenceModel, Source
from tract_core.errors import InputError
from tract_core.model.fact import InferenceFact
from tract_core.model.graph import OutletId


def set_inputs(model: InferenceModel, names: Iterable[str]) -> None:
    """Make these tensors the inputs, in order, whatever gave them their values before; what is known of them stays.

    Raises GraphError for a name that is not there, and InputError for one that comes twice, and when an output needs
    an input that is not among them.
    """
    names = list(names)
    if len(set(names)) < len(names):
        raise InputError(f"an input is named twice: {', '.join(names)}")
    outlets = [model.outlet_named(name) for name in names]
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
