"""From any model to one over a symbolic number of agents, which is found and not assumed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias, cast

from tract_core.analysis.inference import InferenceModel as CoreInferenceModel
from tract_core.api.inference_model import InferenceModel
from tract_core.api.model import Model
from tract_core.dims import symbol
from tract_core.errors import InputError, TractError, Unsupported
from tract_core.model.fact import InferenceFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_inferers.models.axes import places, ways
from tract_inferers.models.check import ONE_BY_ONE, check_rows, check_sizes
from tract_inferers.models.lifted import with_symbol
from tract_inferers.models.policy import Policy
from tract_inferers.models.wiring import in_front

AnyModel: TypeAlias = InferenceModel | Model | TypedModel


def policy_of(model: AnyModel) -> Policy:
    """The model for many agents; ``model`` itself stays as it is.

    The agents of an input are its symbolic size, whatever its name; or else one that the file does not say, or the
    first of size 1 along which they can stand. Raises Unsupported, with what to do, for a model without such an axis,
    and for one whose agents would influence each other.
    """
    untyped, typed = both(model)
    found = places(typed)
    names = list(dict.fromkeys(place.symbol for place in found if place.symbol is not None))
    name = names[0] if names else _free_symbol(typed)
    if all(place.symbol is not None for place in found):
        one = typed.substitute({other: symbol(name) for other in names[1:]})
        return _policy(one.clone(), [place.axes[0] for place in found], name, None)
    single = for_one(typed)
    problem: TractError | None = None
    for axes in ways(found, [typed.outlet_fact(outlet) for outlet in typed.inputs]):
        for made in _variants(untyped, single, axes, name):
            try:
                return _policy(made(), axes, name, single)
            except TractError as error:
                problem = problem or error
    assert problem is not None  # there is one way at least
    if isinstance(problem, Unsupported):
        raise problem
    raise Unsupported(f"does not take two agents: {problem.problem}", where=problem.where, hint=ONE_BY_ONE) from problem


def for_one(model: TypedModel) -> TypedModel:
    """The model for one agent: 1 in the place of the symbols of its inputs."""
    ones = {name: 1 for outlet in model.inputs for name in model.outlet_fact(outlet).shape.symbols()}
    return model.substitute(ones).clone().declutter()


def _variants(
    untyped: CoreInferenceModel | None, single: TypedModel, axes: Sequence[int], name: str
) -> list[Callable[[], TypedModel]]:
    """How the sizes along ``axes`` may become the symbol: by what the file's operators make of it, and by wiring anew.

    The second way goes where the file has sizes in it that were written down for one agent, as that of a reshape: in
    normal form a reshape does not name the axes that it leaves alone.
    """
    wired = [partial(with_symbol, single, axes, name)]
    return wired if untyped is None else [partial(_from_file, untyped, single, axes, name), *wired]


def both(model: AnyModel) -> tuple[CoreInferenceModel | None, TypedModel]:
    """The model as its file has it, if that is known, and typed, in normal form. Raises InputError for no model."""
    untyped, typed = _both(model)
    if "pulse.streaming_symbol" in typed.properties:
        problem = "it takes a signal in pulses, and remembers one signal; a policy forgets each call"
        raise Unsupported(problem, where="model", hint="make the policy of the model as it was before it was pulsed")
    return untyped, typed


def _both(model: AnyModel) -> tuple[CoreInferenceModel | None, TypedModel]:
    if isinstance(model, InferenceModel):
        untyped = cast("CoreInferenceModel", model.graph)
        return untyped, untyped.with_input_facts({}).into_typed().declutter()
    if isinstance(model, Model):
        return None, model.typed
    if isinstance(model, TypedModel):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
        return None, model.clone().declutter()
    hint = "load it first, as with tract_core.load(path); or InfererBuilder.from_path(path) takes a file"
    raise InputError(f"a policy is made of an InferenceModel or a Model, got {type(model).__name__}", hint=hint)


def _from_file(untyped: CoreInferenceModel, single: TypedModel, axes: Sequence[int], name: str) -> TypedModel:
    given = [outlet for outlet in untyped.inputs if untyped.contract(outlet).value is None]
    facts: dict[OutletId, InferenceFact] = {}
    for outlet, known, axis in zip(given, single.inputs, axes, strict=True):
        fact = single.outlet_fact(known)
        shape = (*fact.shape[:axis], symbol(name), *fact.shape[axis + 1 :])
        facts[outlet] = InferenceFact(fact.datum_type, shape)
    variant = untyped.with_input_facts(facts)
    variant.symbols.add(name)
    variant.strict_facts, variant.has_warned = False, True  # the file says sizes of one agent, which is as it should be
    return variant.into_typed().declutter()


def _policy(model: TypedModel, axes: Sequence[int], name: str, single: TypedModel | None) -> Policy:
    check_sizes(model, name)
    policy = Policy.around(in_front(model, axes, name).declutter(), name)
    check_rows(policy, single)
    return policy


def _free_symbol(model: TypedModel) -> str:
    """A symbol that the model does not have."""
    names = ["N", *(f"N_{number}" for number in range(len(model.symbols.names) + 1))]
    return next(name for name in names if name not in model.symbols)
