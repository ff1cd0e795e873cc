"""From an `InferenceModel` to a `TypedModel`: shape inference is wiring.

`into_typed` wires every node and refuses what it cannot; `analyse` does the same on a scratch model, goes on where it
can, and notes what it found.
"""

from __future__ import annotations

from tract_core.analysis.backward import facts_from_readers
from tract_core.analysis.wire import Analysis, wire_nodes
from tract_core.errors import ContradictoryFacts, FactError, ModelError, TractError, Unsupported, UntypableModel
from tract_core.limits import watching
from tract_core.model.fact import InferenceFact
from tract_core.model.graph import OutletId
from tract_core.model.inference import InferenceModel
from tract_core.model.typed import TypedModel

__all__ = ["analyse", "into_typed", "look_at_all", "typed_from"]


def analyse(model: InferenceModel) -> Analysis:
    """Note in ``model`` every fact that wiring finds. Raises ModelError for contradictions; gaps stay gaps."""
    analysis = _settle(model)
    contradictions = [error for error in analysis.problems.values() if not isinstance(error, Unsupported)]
    if contradictions:
        raise _together(contradictions)
    for outlet, wired in analysis.outlets.items():
        fact = InferenceFact.from_typed(analysis.model.outlet_fact(wired))
        model.set_outlet_fact(outlet, _without_fresh(fact, analysis).unify(model.outlet_fact(outlet)))
    _forget_fresh(model, analysis)
    return analysis


def into_typed(model: InferenceModel) -> TypedModel:
    """The model in core operators, with the same inputs, outputs and names. Raises ModelError with every problem."""
    return typed_from(model, _settle(model))


def look_at_all(model: InferenceModel) -> Analysis:
    """Wire whatever can be wired, going on behind nodes that cannot, for a report of all that is wrong."""
    return _settle(model, persist=True)


def typed_from(model: InferenceModel, analysis: Analysis) -> TypedModel:
    """What an analysis wired, as a model. Raises ModelError with every problem that it found."""
    if analysis.problems:
        raise _together(list(analysis.problems.values()))
    if any(outlet not in analysis.outlets for outlet in [*model.inputs, *model.outputs]):
        raise _undetermined(model, analysis)
    return _finish(model, analysis)


def _settle(model: InferenceModel, *, persist: bool = False) -> Analysis:
    """Wire; while a source's rank is unknown and a fact further down tells it, note that and wire again.

    Raises LimitExceeded when it takes more than the model's limits allow.
    """
    with watching(model.limits):
        while True:
            analysis = wire_nodes(model, persist=persist)
            found = facts_from_readers(model, [one for one in model.inputs if one not in analysis.outlets])
            for outlet, fact in found.items():
                try:
                    both = model.outlet_fact(outlet).unify(fact)
                except FactError as error:
                    where = f"input {model.outlet_name(outlet)!r}"
                    raise ContradictoryFacts(
                        f"what reads it wants something else: {error.problem}", where=where
                    ) from None
                model.set_outlet_fact(outlet, both)
            if not found:
                return analysis
            _forget_fresh(model, analysis)


def _finish(model: InferenceModel, analysis: Analysis) -> TypedModel:
    typed = analysis.model
    typed.inputs = [analysis.outlets[outlet] for outlet in model.inputs]
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
    shape = tuple(None if dim is None or analysis.is_fresh(dim) else dim for dim in fact.shape)
    return InferenceFact(fact.datum_type, shape, None)


def _forget_fresh(model: InferenceModel, analysis: Analysis) -> None:
    """Take the symbols back that were made for sizes without a name, so that the next analysis names them alike."""
    model.symbols = model.symbols.restrict(set(model.symbols.names) - analysis.fresh)


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
    """One error for all problems: the only one itself, or one that lists them, those with one text together."""
    if len(problems) == 1:
        return _of_model(problems[0])
    places: dict[str, list[str]] = {}
    for problem in problems:
        places.setdefault(problem.problem, []).append(problem.where or "model")
    shown = [f"  {_listed(where)}: {text}" for text, where in list(places.items())[:50]]
    listed = "\n".join(shown)
    more = f"\n  and {len(places) - 50} more problems" if len(places) > 50 else ""
    kind = Unsupported if all(isinstance(problem, Unsupported) for problem in problems) else ModelError
    hint = problems[0].hint if len({problem.hint for problem in problems}) == 1 else ModelError.advice
    error = kind(f"{len(problems)} nodes cannot be wired:\n{listed}{more}", where="model", hint=hint)
    error.__cause__ = ExceptionGroup("the nodes' own errors", problems)
    return error


def _of_model(problem: TractError) -> TractError:
    """``problem`` as one of the model."""
    if isinstance(problem, ModelError):
        return problem
    kind = UntypableModel if isinstance(problem, FactError) else ModelError
    error = kind(problem.problem, where=problem.where, hint=problem.hint)
    error.__cause__ = problem
    return error


def _listed(places: list[str]) -> str:
    more = f" and {len(places) - 5} more" if len(places) > 5 else ""
    return ", ".join(places[:5]) + more
