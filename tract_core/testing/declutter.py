"""Check that simplifying a model keeps what it means."""

from __future__ import annotations

import zlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from tract_core.dims import evaluate
from tract_core.model.fact import TypedFact
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.knowledge import Conditions
from tract_core.model.typed import TypedModel
from tract_core.plugins.registry import rows_may_raise
from tract_core.rules import declutter
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.tolerance import Tolerance, mismatch, rounding_of

Array = np.ndarray[Any, Any]


def checked_declutter(
    model: TypedModel, sizes: Mapping[str, int] | None = None, *, inputs: Sequence[Array] | None = None, **options: Any
) -> TypedModel:
    """``model``, simplified. It stays as it is; a copy is simplified with a check after every patch.

    ``sizes``: values of the symbols for the comparison. ``inputs``: arrays to compare on, instead of random ones.
    ``options``: as for `same_outputs`. Raises AssertionError, saying what differs, when the simplified model gives
    other outputs, has another interface, or is not in normal form; and what a rule raises.
    """
    with rows_may_raise():
        simplified = declutter(model.clone(), check=True)
        assert interface(simplified) == interface(model)
        again = declutter(simplified.clone(), check=True)
    assert operators(again) == operators(simplified), "simplifying twice gives something else than once"
    given = inputs or random_inputs(model, sizes or {})
    same_outputs(simplified, model, given, **options)
    return simplified


def sources(*facts: str) -> tuple[TypedModel, list[OutletId]]:
    """A new model with inputs ``x0``, ``x1`` ... of these facts (as ``"B,3,f32"``), and their outlets."""
    model = TypedModel()
    return model, [
        model.add_source(f"x{slot}", parse_typed_fact(fact, model.symbols)) for slot, fact in enumerate(facts)
    ]


@contextmanager
def unaware(model: TypedModel) -> Generator[None]:
    """What is wired inside knows nothing of the conditions before it, so that it may contradict them."""
    conditions, model.conditions = model.conditions, Conditions()
    yield
    for condition, origin in model.conditions:
        conditions.add(condition, origin)
    model.conditions = conditions


def same_outputs(
    found: TypedModel, wanted: TypedModel, inputs: Sequence[Array], *, tolerance: Tolerance | None = None
) -> None:
    """Raises AssertionError unless two models give the same outputs, up to rounding in the type of each output."""
    facts = [wanted.outlet_fact(outlet) for outlet in wanted.outputs]
    results = [TypedSimplePlan(model).run(inputs) for model in (found, wanted)]
    for fact, left, right in zip(facts, *results, strict=True):
        assert left.dtype == right.dtype
        problem = mismatch(left, right, tolerance or rounding_of(fact.datum_type.storage))
        assert problem is None, problem


def interface(model: TypedModel) -> list[list[tuple[str, str]]]:
    """Names and element types and ranks of inputs and outputs."""
    return [
        [(model.outlet_name(outlet), _kind(model.outlet_fact(outlet))) for outlet in outlets]
        for outlets in (model.inputs, model.outputs)
    ]


def _kind(fact: TypedFact) -> str:
    return f"{fact.datum_type.short} of rank {fact.rank}"


def operators(model: TypedModel) -> list[str]:
    """The names of the operators, sources and constants left out, in an order of evaluation."""
    names = [model.nodes[node].op.name for node in model.eval_order()]
    return [name for name in names if name not in ("TypedSource", "Const")]


def random_inputs(model: TypedModel, sizes: Mapping[str, int], low: float = -2.0, high: float = 2.0) -> list[Array]:
    """Arrays for the inputs of a model, which depend on their names only."""
    return [
        random_array(model.outlet_fact(outlet), sizes, model.outlet_name(outlet), low, high) for outlet in model.inputs
    ]


def random_array(fact: TypedFact, sizes: Mapping[str, int], seed: str, low: float = -2.0, high: float = 2.0) -> Array:
    """Random elements between ``low`` and ``high``, for a fact whose symbols have the values ``sizes``."""
    random = np.random.default_rng(zlib.crc32(seed.encode()))
    shape = [evaluate(dim, sizes) for dim in fact.shape]
    kind = fact.datum_type.storage
    if kind.is_bool():
        return random.integers(0, 2, shape).astype(np.bool_)
    if kind.is_integer():
        return random.integers(0 if kind.is_unsigned() else int(low), int(high) + 1, shape).astype(kind.numpy)
    return random.uniform(low, high, shape).astype(kind.numpy)
