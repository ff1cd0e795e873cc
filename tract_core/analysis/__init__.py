"""From an `InferenceModel` to a `TypedModel`: shape inference is wiring.

`into_typed` wires every node and refuses what it cannot; `analyse` does the same on a scratch model, goes on where it
can, and notes what it found.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace

from tract_core.analysis.backward import facts_from_readers
from tract_core.analysis.inference import InferenceModel
from tract_core.analysis.result import Analysis
from tract_core.analysis.said import in_one
from tract_core.analysis.wire import wire_nodes
from tract_core.dims import SymbolScope, symbols_of
from tract_core.errors import (
    ContradictoryFacts,
    FactError,
    ModelError,
    ModelWarning,
    TractError,
    Unsupported,
    UntypableModel,
    together,
)
from tract_core.garbage import uncollected
from tract_core.limits import spending
from tract_core.model.fact import InferenceFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.plugins.callers import level_of_caller

__all__ = ["analyse", "into_body", "into_typed", "look_at_all", "typed_from"]


def analyse(model: InferenceModel) -> Analysis:
    """Note in ``model`` every fact that wiring finds. Raises ModelError for contradictions; gaps stay gaps."""
    analysis = _settle(model, model.symbols.copy())
    contradictions = [error for error in analysis.problems.values() if not isinstance(error, Unsupported)]
    if contradictions:
        raise _together(contradictions)
    found = {
        outlet: _without_fresh(InferenceFact.from_typed(analysis.model.outlet_fact(wired)), analysis)
        for outlet, wired in analysis.outlets.items()
    }
    model.set_found(found)
    _warn(model, analysis.model)
    return analysis


def into_typed(model: InferenceModel) -> TypedModel:
    """The model in core operators, with the same inputs, outputs and names.

    Raises ModelError with every problem. Warns, once for a model, with a ModelWarning of what the file says of its
    tensors and what had to be set aside.
    """
    before = model.symbols.copy()
    try:
        typed = typed_from(model, _settle(model, model.symbols))
    except TractError:
        model.symbols.reset(before)
        raise
    _warn(model, typed)
    return typed


def into_body(model: InferenceModel, around: TypedModel, place: str) -> TypedModel:
    """As `into_typed`, for a graph inside a node: what is remarked of it is remarked of the model around it."""
    typed = typed_from(model, _settle(model, model.symbols))
    around.remarks += [error.at(place) for error in typed.remarks]
    return typed


def look_at_all(model: InferenceModel) -> Analysis:
    """Wire whatever can be wired, going on behind nodes that cannot, for a report of all that is wrong."""
    return _settle(model, model.symbols, persist=True)


def typed_from(model: InferenceModel, analysis: Analysis) -> TypedModel:
    """What an analysis wired, as a model. Raises ModelError with every problem that it found."""
    if analysis.problems:
        raise _together(list(analysis.problems.values()))
    if any(outlet not in analysis.outlets for outlet in [*model.inputs, *model.outputs]):
        raise _undetermined(model, analysis)
    return _finish(model, analysis)


def _settle(model: InferenceModel, scope: SymbolScope, *, persist: bool = False) -> Analysis:
    """Wire; while a rank or a size of an input is not known and what was said further down tells it, wire again.

    The symbols that wiring makes belong to ``scope``. Raises LimitExceeded when it takes more than the model's limits
    allow.
    """
    before, given = scope.copy(), dict[OutletId, InferenceFact]()
    with spending(model.limits), uncollected():
        while True:
            analysis = wire_nodes(model, scope, given, persist=persist)
            known = {outlet: given.get(outlet, model.contract(outlet)) for outlet in model.inputs}
            better = _with_sizes(known, analysis) | _with_ranks(model, known, analysis)
            if not better:
                return analysis
            given.update(better)
            scope.reset(before)


def _with_sizes(known: Mapping[OutletId, InferenceFact], analysis: Analysis) -> dict[OutletId, InferenceFact]:
    """The inputs some of whose sizes follow from what was said of other tensors."""
    better: dict[OutletId, InferenceFact] = {}
    for name, size in analysis.settled.items():
        outlet, axis = analysis.fresh[name]
        fact = better.get(outlet, known[outlet])
        assert fact.shape is not None  # it has an axis of a fresh size
        better[outlet] = replace(fact, shape=(*fact.shape[:axis], size, *fact.shape[axis + 1 :]))
    return better


def _with_ranks(
    model: InferenceModel, known: Mapping[OutletId, InferenceFact], analysis: Analysis
) -> dict[OutletId, InferenceFact]:
    """The inputs whose rank or type follows from what was said of other tensors. Raises ContradictoryFacts."""
    better: dict[OutletId, InferenceFact] = {}
    found = facts_from_readers(model, [one for one in model.inputs if one not in analysis.outlets])
    for outlet, (fact, is_claim) in found.items():
        try:
            both = known[outlet].unify(fact)
        except FactError as error:
            if is_claim and not model.strict_facts:
                continue
            where = f"input {model.outlet_name(outlet)!r}"
            raise ContradictoryFacts(f"what reads it wants something else: {error.problem}", where=where) from None
        if both != known[outlet]:
            better[outlet] = both
    return better


def _warn(model: InferenceModel, typed: TypedModel) -> None:
    """Say once what was set aside."""
    aside = {str(error): error for error in typed.remarks if isinstance(error, ContradictoryFacts)}
    if aside and not model.has_warned:
        model.has_warned, model.warning = True, in_one(list(aside.values()))
        warnings.warn(model.warning, ModelWarning, stacklevel=level_of_caller())


def _finish(model: InferenceModel, analysis: Analysis) -> TypedModel:
    typed = analysis.model
    typed.inputs = [analysis.outlets[outlet] for outlet in model.inputs if model.contract(outlet).value is None]
    typed.set_outputs(analysis.outlets[outlet] for outlet in model.outputs)
    typed.properties.update(model.properties)
    for outlet, label in model.outlet_labels.items():
        if outlet in analysis.outlets:
            typed.outlet_labels.setdefault(analysis.outlets[outlet], label)
    return typed


def _without_fresh(fact: InferenceFact, analysis: Analysis) -> InferenceFact:
    """Sizes that only have a symbol because nobody named them are still unknown to the user."""
    if fact.shape is None:
        return fact
    shape = tuple(None if dim is None or symbols_of(dim) & analysis.fresh.keys() else dim for dim in fact.shape)
    return InferenceFact(fact.datum_type, shape, None)


def _undetermined(model: InferenceModel, analysis: Analysis) -> ModelError:
    unknown = [o for o in model.inputs if o not in analysis.outlets] or [
        OutletId(node, 0) for node in model.eval_order() if OutletId(node, 0) not in analysis.outlets
    ]
    names = ", ".join(repr(model.outlet_name(outlet)) for outlet in unknown[:3])
    return ModelError(
        f"the rank or the element type of {names} is not known",
        where="model",
        hint="give it with set_input_fact, or -i NAME:1,3,224,224,f32 on the command line",
    )


def _together(problems: list[TractError]) -> TractError:
    """One error for all problems: the only one itself, or one that lists them."""
    if len(problems) == 1:
        return _of_model(problems[0])
    kind = Unsupported if all(isinstance(problem, Unsupported) for problem in problems) else ModelError
    return together(problems, kind, f"{len(problems)} nodes cannot be wired", where="model", hint=ModelError.advice)


def _of_model(problem: TractError) -> TractError:
    """``problem`` as one of the model."""
    if isinstance(problem, ModelError):
        return problem
    kind = UntypableModel if isinstance(problem, FactError) else ModelError
    error = kind(problem.problem, where=problem.where, hint=problem.hint)
    error.__cause__ = problem
    return error
