"""Find the rank of an input from a fact that is known further down.

A fact is taken backwards through a node only when the node's axes map one to one: wired on an input whose sizes are
symbols of their own, it gives an output in which each of these symbols is a size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tract_core.analysis.inference import InferenceModel, InferenceNode, KnownTensor
from tract_core.data import DType
from tract_core.dims import Dim, SymbolScope, symbol
from tract_core.errors import TractError
from tract_core.limits import count_node
from tract_core.model.choices import undecided
from tract_core.model.fact import InferenceFact, TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel

Told = tuple[InferenceFact, bool]
"""A fact, and whether only the file says what it follows from."""


def facts_from_readers(model: InferenceModel, wanted: Sequence[OutletId]) -> dict[OutletId, Told]:
    """What the readers of each of these outlets, and their readers, tell about it, where they tell something."""
    if not wanted:
        return {}
    told: dict[OutletId, Told] = {}
    behind = _behind(model, wanted)
    for node_id in reversed([node for node in model.eval_order() if node in behind]):
        for outlet in model.nodes[node_id].outlets():
            count_node()
            found = next(_told_by_readers(model, outlet, told), None)
            if found is not None:
                told[outlet] = found
    return {outlet: told[outlet] for outlet in wanted if outlet in told}


def _behind(model: InferenceModel, outlets: Sequence[OutletId]) -> set[int]:
    """The nodes of these outlets, and all that read them, directly or not."""
    found: set[int] = set()
    pending = [outlet.node for outlet in outlets]
    while pending:
        node_id = pending.pop()
        if node_id not in found:
            found.add(node_id)
            pending += [inlet.node for outlet in model.nodes[node_id].outputs for inlet in outlet.successors]
    return found


def _told_by_readers(model: InferenceModel, outlet: OutletId, told: Mapping[OutletId, Told]) -> Iterator[Told]:
    for inlet in model.outlet(outlet).successors:
        reader = model.nodes[inlet.node]
        if len(reader.outputs) != 1:
            continue
        wanted, is_claim = model.said(OutletId(reader.id)), model.claim(OutletId(reader.id)) is not None
        if wanted.shape is None:
            wanted, is_claim = told.get(OutletId(reader.id), (wanted, is_claim))
        found = None if wanted.shape is None else _through(model, reader, inlet.slot, wanted)
        if found is not None:
            yield found, is_claim


def _through(model: InferenceModel, reader: InferenceNode, slot: int, wanted: InferenceFact) -> InferenceFact | None:
    assert wanted.shape is not None  # the caller checked
    given = model.said(reader.inputs[slot]).datum_type
    kind = given or wanted.datum_type
    if kind is None:
        return None
    probes = [symbol(f"probe_{axis}") for axis in range(len(wanted.shape))]
    wired = _probe(model, reader, slot, kind, probes)
    if wired is None or set(wired.shape) != set(probes) or len(wired.shape) != len(probes):
        return None
    if wanted.datum_type is not None and wired.datum_type != wanted.datum_type:
        return None
    size_of: dict[Dim, Dim | None] = dict(zip(wired.shape, wanted.shape, strict=True))
    return InferenceFact(kind, tuple(size_of[probe] for probe in probes))


def _probe(
    model: InferenceModel, reader: InferenceNode, slot: int, kind: DType, probes: Sequence[Dim]
) -> TypedFact | None:
    """The fact that ``reader`` gives for an input of these sizes; ``None`` when it cannot be told."""
    scratch = TypedModel(SymbolScope(), model.registry)
    inputs: list[OutletId] = []
    for index, outlet in enumerate(reader.inputs):
        producer = model.nodes[outlet.node]
        if index == slot:
            inputs.append(scratch.add_source("probe", TypedFact.of(kind, probes)))
        elif isinstance(producer.op, KnownTensor):
            inputs.append(scratch.add_const(producer.name, producer.op.value))
        else:
            return None
    try:
        with undecided():
            (result,) = reader.op.wire(scratch, reader.name, inputs)
    except TractError:
        return None
    return scratch.outlet_fact(result)
