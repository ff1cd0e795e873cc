"""Wire the nodes of an `InferenceModel`, one after the other, into a `TypedModel`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_core.analysis.inference import InferenceModel, InferenceNode, Source, Unknown, place_of
from tract_core.analysis.result import Analysis
from tract_core.analysis.retries import Retries
from tract_core.analysis.said import Said, settled, wire_check
from tract_core.dims import SymbolScope, symbols_of
from tract_core.errors import ContradictoryFacts, TractError
from tract_core.limits import count_node
from tract_core.model.choices import choosing, inside
from tract_core.model.conditions import on_behalf_of
from tract_core.model.fact import InferenceFact, ShapeFact, TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.refine import simplify_sizes
from tract_core.model.typed import TypedModel
from tract_core.ops.wiring import wire_cast

LONGEST_PREFIX: Final = 200
"""Characters of a tensor's name in the name of a size that nobody named."""


def wire_nodes(
    model: InferenceModel,
    scope: SymbolScope,
    given: Mapping[OutletId, InferenceFact],
    *,
    persist: bool = False,
) -> Analysis:
    """Wire every node that the inputs and outputs need and whose inputs could be wired.

    ``scope``: where the symbols of the typed model are, and those of sizes that nobody named will be. ``given``: facts
    of inputs that are known better than the model has them.

    With ``persist``, what a node would give that cannot be wired is taken from what the model says of it, so that the
    nodes that read it are looked at too; the typed model is then good for nothing else.
    """
    analysis = Analysis(TypedModel(scope, model.registry))
    analysis.model.limits = model.limits
    order = model.eval_order([*model.inputs, *model.outputs])
    position = 0
    with choosing() as choices:
        retries = Retries(model, analysis, choices)
        while position < len(order):
            node = model.nodes[order[position]]
            retries.begin(position, node.id)
            _wire(model, node, given, analysis)
            back = retries.end(analysis.problems.get(node.name) or analysis.doubt)
            if back is None and persist and node.name in analysis.problems:
                _assume(model, node, analysis)
            if back is None:
                analysis.model.remarks += analysis.set_aside
            position = position + 1 if back is None else back
    simplify_sizes(analysis.model)
    return analysis


def _wire(
    model: InferenceModel, node: InferenceNode, given: Mapping[OutletId, InferenceFact], analysis: Analysis
) -> None:
    count_node()
    analysis.set_aside, analysis.doubt = [], None
    if isinstance(node.op, Source):
        outlet = OutletId(node.id)
        _wire_source(model, outlet, given.get(outlet, model.contract(outlet)), analysis)
    elif isinstance(node.op, Unknown) or all(outlet in analysis.outlets for outlet in node.inputs):
        with inside(node.name):
            _wire_node(model, node, analysis)


def _wire_source(model: InferenceModel, outlet: OutletId, given: InferenceFact, analysis: Analysis) -> None:
    fact = _complete(model, outlet, given, analysis)
    if fact is None:
        return
    if given.value is None:
        analysis.outlets[outlet] = analysis.model.add_source(model.nodes[outlet.node].name, fact)
    else:
        name = model.nodes[outlet.node].name
        value = analysis.model.add_const(name, given.value)
        # Sizes with symbols are of 64 bits by themselves.
        analysis.outlets[outlet] = wire_cast(analysis.model, name, value, fact.datum_type)


def _complete(model: InferenceModel, outlet: OutletId, given: InferenceFact, analysis: Analysis) -> TypedFact | None:
    """What was said of a tensor, unnamed sizes as fresh symbols; ``None`` when its type or its rank is not known."""
    if given.datum_type is None or given.shape is None:
        return None
    shape = list(given.shape)
    for axis, dim in enumerate(shape):
        if dim is None:
            prefix = f"{model.outlet_name(outlet)}_{axis}"[-LONGEST_PREFIX:]
            shape[axis] = fresh = analysis.model.symbols.new_symbol(prefix)
            analysis.fresh.update(dict.fromkeys(symbols_of(fresh), (outlet, axis)))
    return TypedFact(given.datum_type, ShapeFact(dim for dim in shape if dim is not None), given.value)


def _assume(model: InferenceModel, node: InferenceNode, analysis: Analysis) -> None:
    """Give the readers of a node that cannot be wired what the model says of its outputs."""
    for outlet in node.outlets():
        fact = None if outlet in analysis.outlets else _complete(model, outlet, model.said(outlet), analysis)
        if fact is not None:
            analysis.outlets[outlet] = analysis.model.add_source(model.outlet_name(outlet), fact)


def _wire_node(model: InferenceModel, node: InferenceNode, analysis: Analysis) -> None:
    inputs = [analysis.outlets[outlet] for outlet in node.inputs if outlet in analysis.outlets]
    try:
        place = place_of(node)
        with on_behalf_of(place), analysis.model.noting_conditions(place):
            outlets = node.op.wire(analysis.model, node.name, inputs)
        for slot, wired in enumerate(outlets[: len(node.outputs)]):
            analysis.outlets[OutletId(node.id, slot)] = wired
            _apply_what_was_said(model, node, slot, analysis)
    except TractError as error:
        _place(error, node)
        analysis.problems[node.name] = error


def _place(error: TractError, node: InferenceNode) -> None:
    """Say where it was: at the file's node, in place of the one that it became, whose name begins with its own."""
    place, where = place_of(node), error.where or ""
    if not where.startswith(f"node {node.name!r}"[:-1]):
        error.at(place)
    elif not where.startswith(place):
        _, _, inside = where.partition("): ")
        error.where = f"{place}: {inside}" if inside else place


def _apply_what_was_said(model: InferenceModel, node: InferenceNode, slot: int, analysis: Analysis) -> None:
    """Rely on what was said of an output of a node, and have it checked in the run.

    Raises ContradictoryFacts; a claim of the file is set aside instead, unless the model is strict.
    """
    outlet, typed = OutletId(node.id, slot), analysis.model
    claim, name = model.claim(outlet), model.outlet_name(outlet)
    said = Said(name, claim or model.contract(outlet), claim is not None, outlet in model.outputs)
    found = typed.outlet_fact(analysis.outlets[outlet])
    try:
        sizes = said.beyond(typed, found)
    except ContradictoryFacts as error:
        if name != node.name:
            error.at(f"tensor {name!r}")
        if claim is None or model.strict_facts:
            raise
        _place(error, node)
        analysis.set_aside.append(error)
        if said.rank not in (None, found.rank):
            analysis.doubt = error
        return
    for symbol, size in settled(found, sizes, analysis.fresh).items():
        analysis.settled.setdefault(symbol, size)
    if any(size is not None for size in sizes):
        analysis.outlets[outlet] = wire_check(typed, analysis.outlets[outlet], said, sizes)
