"""The graph of an operator's NumPy meaning, made once per operator and facts of its inputs, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import TractError
from tract_core.frozen import frozen
from tract_core.model.bodies import bodies_of
from tract_core.model.fact import TypedFact
from tract_core.model.fact import ShapeFact
from tract_core.model.op import TypedOp
from tract_core.model.substitute import symbols_in
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import REFERENCE, STATE
from tract_cpu.tracing.check import check_meaning
from tract_cpu.tracing.code import Reader, check_operator, names_in
from tract_cpu.tracing.refused import Refused
from tract_cpu.tracing.trace import Trace
from tract_cpu.tracing.traced import Traced

MOST_KEPT: Final = 256
"""How many answers are remembered."""

MOST_NODES: Final = 500
"""Graphs of more operators are not worth it: they come from long loops."""


@frozen
class Meaning:
    """``body``: the graph, whose inputs and outputs are those of the operator. ``why``: why there is none."""

    body: TypedModel | None = None
    why: str = ""


_KNOWN: dict[Any, Meaning] = {}


def meaning_of(model: TypedModel, op: TypedOp, facts: Sequence[TypedFact]) -> Meaning:
    """The graph for a node of a model, whose inputs have these facts. Whatever a meaning raises is no error here."""
    function = model.registry[REFERENCE].find(type(op))
    key = (op, id(function), tuple(fact.without_value() for fact in facts))
    known = _KNOWN.get(key)
    if known is None:
        if len(_KNOWN) >= MOST_KEPT:
            _KNOWN.clear()
        try:
            known = Meaning(_traced(model, op, function, key[-1]))
        except Refused as error:
            known = Meaning(why=error.reason)
        except Exception as error:
            known = Meaning(why=f"its meaning raises {type(error).__name__} when it is traced: {_told(error)}")
        _KNOWN[key] = known
    return known


def _told(error: Exception) -> str:
    return error.problem if isinstance(error, TractError) else str(error)


def _traced(model: TypedModel, op: TypedOp, function: Any, facts: Sequence[TypedFact]) -> TypedModel:
    """The graph. Raises Refused, or what the meaning raises."""
    _check_op(model, op, facts)
    if function is None:
        raise Refused("it has no NumPy meaning")
    reader = Reader()
    copied = reader.function(function)
    check_operator(op, names_in(function.__code__) if hasattr(function, "__code__") else frozenset(), reader)
    body = model.empty_like()
    trace = Trace(body, op.name.lower())
    inputs = [Traced(trace, body.add_source(f"x{slot}", fact), own=False) for slot, fact in enumerate(facts)]
    sources = [one.outlet for one in inputs]
    with np.errstate(all="ignore"):
        try:
            results = copied(op, *inputs)
        except Exception:
            if trace.refusal is not None:
                raise Refused(trace.refusal) from None
            raise
    if trace.refusal is not None:
        raise Refused(trace.refusal)
    body.set_outputs(_outlets(trace, op, facts, results if isinstance(results, tuple) else (results,)))
    if len(body.nodes) > MOST_NODES:
        raise Refused(f"its meaning is {len(body.nodes)} operators, more than {MOST_NODES}")
    _check_conditions(model, body)
    assert body.inputs == sources
    check_meaning(body, partial(function, op), facts, open_zeros=trace.open_zeros)
    return body


def _check_op(model: TypedModel, op: TypedOp, facts: Sequence[TypedFact]) -> None:
    if model.registry[STATE].find(type(op)) is not None or not op.pure or op.draws:
        raise Refused("it keeps state, or gives other results for equal inputs")
    if bodies_of(op) or op.checks or op.announces or op.judges:
        raise Refused("it refuses runs, or tells sizes, by what it finds in its inputs")
    if symbols_in(op):
        raise Refused("its attributes hold sizes that only a run knows")
    for fact in facts:
        kind = fact.datum_type
        if not isinstance(kind, DatumType) or not (kind.is_bool() or kind.is_integer() or kind.is_float()):
            raise Refused(f"its meaning is of {kind.short}, of which native code knows no functions")


def _outlets(trace: Trace, op: TypedOp, facts: Sequence[TypedFact], results: Sequence[Any]) -> list[Any]:
    """The results as outlets. Raises Refused where they are not what the operator announced."""
    wanted = op.output_facts(facts)
    if len(results) != len(wanted):
        raise Refused(f"its meaning gives {len(results)} results, its output_facts say {len(wanted)}")
    outlets = [trace.array(one).outlet for one in results]
    for outlet, fact in zip(outlets, wanted, strict=True):
        found = trace.wire.fact(outlet)
        if found.datum_type != fact.datum_type or ShapeFact(found.shape).same(fact.shape) is not True:
            raise Refused(f"its meaning gives {found.without_value()}, its output_facts say {fact}")
    return outlets


def _check_conditions(model: TypedModel, body: TypedModel) -> None:
    """Raises Refused where the graph wants something of sizes that the model does not want."""
    for condition, _ in body.conditions:
        if not model.conditions.answer(condition, model.symbols):
            raise Refused(f"its meaning wants this of sizes, which differ from run to run: {condition}")
