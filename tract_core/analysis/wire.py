"""Wire the nodes of an `InferenceModel`, one after the other, into a `TypedModel`."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from tract_core.analysis.turns import Turns
from tract_core.dims import Dim, symbols_of
from tract_core.errors import ContradictoryFacts, TractError
from tract_core.limits import count_node
from tract_core.model.choices import choosing, inside
from tract_core.model.fact import InferenceFact, ShapeFact, TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.inference import InferenceModel, InferenceNode, Source, Unknown
from tract_core.model.typed import TypedModel

LONGEST_PREFIX: Final = 200
"""Characters of a tensor's name in the name of a size that nobody named."""


@dataclass(slots=True)
class Analysis:
    """What wiring gave: the typed model, where each outlet of the file went, and one problem per node that failed.

    ``fresh``: symbols that stand for sizes that nobody named.
    """

    model: TypedModel
    outlets: dict[OutletId, OutletId] = field(default_factory=dict[OutletId, OutletId])
    problems: dict[str, TractError] = field(default_factory=dict[str, TractError])
    fresh: set[str] = field(default_factory=set[str])

    def is_fresh(self, dim: Dim) -> bool:
        """Whether a size mentions a symbol that nobody named."""
        return bool(symbols_of(dim) & self.fresh)


def wire_nodes(model: InferenceModel, *, persist: bool = False) -> Analysis:
    """Wire every node that the inputs and outputs need and whose inputs could be wired.

    With ``persist``, what a node would give that cannot be wired is taken from what the model says of it, so that the
    nodes that read it are looked at too; the typed model is then good for nothing else.
    """
    analysis = Analysis(TypedModel(model.symbols, model.registry))
    analysis.model.limits = model.limits
    order = model.eval_order([*model.inputs, *model.outputs])
    position = 0
    with choosing() as choices:
        turns = Turns(model, analysis, choices)
        while position < len(order):
            node = model.nodes[order[position]]
            turns.begin(position, node.id)
            _wire(model, node, analysis)
            back = turns.end(analysis.problems.get(node.name))
            if back is None and persist and node.name in analysis.problems:
                _assume(model, node, analysis)
            position = position + 1 if back is None else back
    return analysis


def _wire(model: InferenceModel, node: InferenceNode, analysis: Analysis) -> None:
    count_node()
    if isinstance(node.op, Source):
        _wire_source(model, node, analysis)
    elif isinstance(node.op, Unknown) or all(outlet in analysis.outlets for outlet in node.inputs):
        with inside(node.name):
            _wire_node(model, node, analysis)


def _wire_source(model: InferenceModel, node: InferenceNode, analysis: Analysis) -> None:
    given = node.outputs[0].fact
    fact = _complete(model, node.name, given, analysis)
    if fact is None:
        return
    if given.value is None:
        analysis.outlets[OutletId(node.id)] = analysis.model.add_source(node.name, fact)
    else:
        analysis.outlets[OutletId(node.id)] = analysis.model.add_const(node.name, given.value)


def _complete(model: InferenceModel, name: str, given: InferenceFact, analysis: Analysis) -> TypedFact | None:
    """What was said of a tensor, unnamed sizes as fresh symbols; ``None`` when its type or its rank is not known."""
    if given.datum_type is None or given.shape is None:
        return None
    shape = ShapeFact(
        _fresh(model, f"{name}_{axis}", analysis) if dim is None else dim for axis, dim in enumerate(given.shape)
    )
    return TypedFact(given.datum_type, shape, given.value)


def _assume(model: InferenceModel, node: InferenceNode, analysis: Analysis) -> None:
    """Give the readers of a node that cannot be wired what the model says of its outputs."""
    for slot, outlet in enumerate(node.outlets()):
        name = model.outlet_name(outlet)
        fact = None if outlet in analysis.outlets else _complete(model, name, node.outputs[slot].fact, analysis)
        if fact is not None:
            analysis.outlets[outlet] = analysis.model.add_source(analysis.model.unique_name(name), fact)


def _fresh(model: InferenceModel, prefix: str, analysis: Analysis) -> Dim:
    symbol = model.symbols.new_symbol(prefix[-LONGEST_PREFIX:])
    analysis.fresh |= symbols_of(symbol)
    return symbol


def _wire_node(model: InferenceModel, node: InferenceNode, analysis: Analysis) -> None:
    inputs = [analysis.outlets[outlet] for outlet in node.inputs if outlet in analysis.outlets]
    try:
        outlets = node.op.wire(analysis.model, node.name, inputs)
        for slot, (declared, wired) in enumerate(zip(node.outputs, outlets, strict=False)):
            outlet = OutletId(node.id, slot)
            analysis.outlets[outlet] = wired
            _refine(analysis.model, wired, declared.fact, is_output=outlet in model.outputs)
    except TractError as error:
        _place(error, node)
        analysis.problems[node.name] = error


def _place(error: TractError, node: InferenceNode) -> None:
    """Say where it was: at the file's node, in place of the one that it became, whose name begins with its own."""
    own_name = node.op.node_name if isinstance(node.op, Unknown) else ""
    place, where = f"node {own_name or node.name!r} ({node.op.name})", error.where or ""
    if not where.startswith(f"node {node.name!r}"[:-1]):
        error.at(place)
    elif not where.startswith(place):
        _, _, inside = where.partition("): ")
        error.where = f"{place}: {inside}" if inside else place


def _refine(model: TypedModel, outlet: OutletId, given: InferenceFact, *, is_output: bool) -> None:
    """Apply what was said about a tensor to what was found. Raises ContradictoryFacts, with both sides."""
    found = model.outlet_fact(outlet)
    if given.datum_type is None and given.shape is None:
        return
    try:
        both = InferenceFact.from_typed(found).unify(given)  # where both are symbolic, the operators know better
    except TractError:
        part = "types" if given.datum_type not in (None, found.datum_type) else "shapes"
        option = f"ignore_output_{part}" if is_output else "ignore_value_info"
        raise ContradictoryFacts(
            f"the model says {given}, its operators give {found}",
            hint=f"if the file is wrong, load it with {option}=True; else correct the facts that were given",
        ) from None
    if both.shape is not None and tuple(both.shape) != tuple(found.shape):
        shape = ShapeFact(dim for dim in both.shape if dim is not None)
        model.set_outlet_fact(outlet, replace(found, shape=shape))
