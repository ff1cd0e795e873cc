"""What ``cook`` compares: the outputs of two models for random inputs, with several sizes of their symbols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tract_core.cli.assertions import Assertions
from tract_core.cli.readings import SEED, Bindings, ValueRange
from tract_core.cli.signals import outputs_for
from tract_core.cli.values import random_array
from tract_core.data import DatumType
from tract_core.dims import symbol_name, symbols_of
from tract_core.errors import InputError, TractError
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.runtime.streams import Streams
from tract_core.testing.tolerance import distances, mismatch

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_core.runtime.protocol import Plan

Array = np.ndarray[Any, Any]

SIZES: Final = (3, 1, 7, 16, 33, 64, 224)
"""Sizes of the first symbol that are tried, until `ENOUGH` of them are such as the model takes."""

ENOUGH: Final = 3


@frozen
class CookComparison:
    """The outputs of both for inputs of some sizes. ``largest``: of the differences; ``problem``: what is too large."""

    sizes: Mapping[str, int]
    largest: float
    problem: str | None = None


def compare_models(
    request: Request, source: TypedModel, other: TypedModel, flags: Mapping[str, Any]
) -> list[CookComparison]:
    """Run both on random inputs of the first. Raises InputError where there is no size that ``source`` takes.

    Where the second takes pulses of what the first takes whole, it gets all of it, pulse by pulse.
    """
    inputs = _places(source, source.inputs, other, other.inputs, "input")
    outputs = _places(source, source.outputs, other, other.outputs, "output")
    plans = request.prepare(source), request.prepare(other)
    in_pulses = Streams.of(other) is not None and Streams.of(source) is None
    assertions = Assertions.of(flags)
    found: list[CookComparison] = []
    refused: TractError | None = None
    for symbols in _trials(source, flags["sizes"]):
        try:
            arrays = _random(source, symbols, flags["ranges"])
            wanted = _run(plans[0], arrays)
        except TractError as error:
            refused = error  # of a size that the model does not take
            continue
        given = [_as_type(arrays[slot], other, outlet) for slot, outlet in zip(inputs, other.inputs, strict=True)]
        found_outputs = outputs_for(request, other, given) if in_pulses else _run(plans[1], given)
        results = zip(found_outputs, [wanted[slot] for slot in outputs], strict=True)
        found.append(_comparison(symbols, list(results), other, assertions))
        if len(found) == ENOUGH:
            break
    if not found:
        hint = "give a size of each symbol with --size SYM=INT, or compare nothing with --no-compare"
        raise InputError(f"it could not be compared: {refused.problem if refused else 'there is no size'}", hint=hint)
    return found


def _places(
    source: TypedModel, first: Sequence[OutletId], other: TypedModel, second: Sequence[OutletId], what: str
) -> list[int]:
    """Where the tensors of the second model are among those of the first: in the same order where they are as many."""
    if len(first) == len(second):
        return list(range(len(first)))
    names = [source.outlet_name(outlet) for outlet in first]
    wanted = [other.outlet_name(outlet) for outlet in second]
    missing = [name for name in wanted if name not in names]
    if missing:
        hint = "a transform changed what the model is called with: --no-compare writes it all the same"
        raise InputError(f"it cannot be compared: MODEL has no {what} {missing[0]!r}", hint=hint)
    return [names.index(name) for name in wanted]


def _trials(model: TypedModel, given: Bindings) -> Iterator[Mapping[str, int]]:
    """Values of the symbols in the inputs: no two of a trial are alike, so that what is mistaken for another shows.

    Each trial is repeated with the sizes that conditions of the model name, as it may take no others.
    """
    sizes = (symbols_of(dim) for outlet in model.inputs for dim in model.outlet_fact(outlet).shape)
    names = sorted(frozenset[str]().union(*sizes))
    free = [name for name in names if name not in given.values]
    named = _named_sizes(model)
    for size in islice(SIZES, None if free else 1):
        trial = {name: size + place * (size > 1) for place, name in enumerate(free)}
        yield {**trial, **given.values}
        if any(name in named for name in free):
            yield {**trial, **{name: named[name] for name in free if name in named}, **given.values}


def _named_sizes(model: TypedModel) -> dict[str, int]:
    """The numbers that symbols must be equal to, or may be stretched to, by the conditions of a model."""
    found: dict[str, int] = {}
    for condition in (one for one, _ in model.conditions if one.relation != "<="):
        for one, other in ((condition.left, condition.right), (condition.right, condition.left)):
            name = symbol_name(one)
            if name is not None and isinstance(other, int) and other > 0:
                found[name] = other
    return found


def _random(model: TypedModel, symbols: Mapping[str, int], ranges: Sequence[ValueRange]) -> list[Array]:
    generator = np.random.default_rng(SEED)
    limits = {one.name: one for one in ranges}
    named = [(model.outlet_name(outlet), model.outlet_fact(outlet)) for outlet in model.inputs]
    return [random_array(generator, name, fact, symbols, limits.get(name) or limits.get("")) for name, fact in named]


def _run(plan: Plan, arrays: Sequence[Array]) -> Sequence[Array]:
    return [np.array(one) for one in plan.spawn().run(list(arrays))]


def _as_type(array: Array, model: TypedModel, outlet: OutletId) -> Array:
    """An input as the second model takes it: with -t, that may be a narrower type."""
    return array.astype(model.outlet_fact(outlet).datum_type.storage.numpy)


def _comparison(
    symbols: Mapping[str, int],
    pairs: Sequence[tuple[Array, Array]],
    model: TypedModel,
    assertions: Assertions,
) -> CookComparison:
    largest, problem = 0.0, None
    for (found, wanted), outlet in zip(pairs, model.outputs, strict=True):
        tolerance = assertions.tolerance(DatumType.from_numpy(found.dtype))
        differs = mismatch(found, wanted, tolerance)
        both = distances(found, wanted)
        largest = max(largest, both[0] if both else 0.0)
        if differs is not None and problem is None:
            problem = f"output {model.outlet_name(outlet)!r}: {differs}"
    return CookComparison(dict(symbols), largest, problem)
