"""From any model to one over a symbolic number of agents, which is found and not assumed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, cast

from tract_core.analysis.inference import InferenceModel as CoreInferenceModel
from tract_core.api.inference_model import InferenceModel
from tract_core.api.model import Model
from tract_core.dims import Dim, symbol
from tract_core.errors import InputError, TractError, Unsupported
from tract_core.model.fact import InferenceFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_inferers.models.axes import Place, places, ways
from tract_inferers.models.policy import Policy
from tract_inferers.models.wiring import in_front

AnyModel: TypeAlias = InferenceModel | Model | TypedModel


def policy_of(model: AnyModel) -> Policy:
    """The model for many agents; ``model`` itself stays as it is.

    Raises Unsupported, with what to do, for one whose inputs and outputs do not have an axis of agents.
    """
    untyped, typed = both(model)
    found = places(typed)
    names = list(dict.fromkeys(place.symbol for place in found if place.symbol is not None))
    name = names[0] if names else _free_symbol(typed)
    if all(place.symbol is not None for place in found):
        one = typed.substitute({other: symbol(name) for other in names[1:]}).clone()
        return _policy(one, [place.axes[0] for place in found], name)
    facts = [typed.outlet_fact(outlet) for outlet in typed.inputs]
    problem: TractError | None = None
    for axes in ways(found, facts):
        try:
            return _policy(_with_symbol(untyped, typed, found, axes, name), axes, name)
        except TractError as error:
            problem = problem or error
    assert problem is not None  # there is one way at least
    raise problem


def both(model: AnyModel) -> tuple[CoreInferenceModel | None, TypedModel]:
    """The model as its file has it, if that is known, and typed, in normal form. Raises InputError for no model."""
    if isinstance(model, InferenceModel):
        untyped = cast("CoreInferenceModel", model.graph)
        return untyped, untyped.with_input_facts({}).into_typed().declutter()
    if isinstance(model, Model):
        return None, model.typed
    if isinstance(model, TypedModel):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
        return None, model.clone().declutter()
    raise InputError(f"a policy is made of an InferenceModel or a Model, got {type(model).__name__}")


def _with_symbol(
    untyped: CoreInferenceModel | None, typed: TypedModel, found: Sequence[Place], axes: Sequence[int], name: str
) -> TypedModel:
    """The model with the symbol for the number of agents along ``axes``."""
    if untyped is None:
        raise Unsupported("is for one agent", where="model")
    given = [outlet for outlet in untyped.inputs if untyped.contract(outlet).value is None]
    facts: dict[OutletId, InferenceFact] = {}
    for outlet, known, axis in zip(given, typed.inputs, axes, strict=True):
        fact = typed.outlet_fact(known)
        shape: list[Dim | None] = list(fact.shape)
        shape[axis] = symbol(name)
        facts[outlet] = InferenceFact(fact.datum_type, tuple(shape))
    variant = untyped.with_input_facts(facts)
    variant.symbols.add(name)
    return variant.into_typed().declutter()


def _policy(model: TypedModel, axes: Sequence[int], name: str) -> Policy:
    return Policy.around(in_front(model, axes, name).declutter(), name)


def _free_symbol(model: TypedModel) -> str:
    """A symbol that the model does not have."""
    names = ["N", *(f"N_{number}" for number in range(len(model.symbols.names) + 1))]
    return next(name for name in names if name not in model.symbols)
