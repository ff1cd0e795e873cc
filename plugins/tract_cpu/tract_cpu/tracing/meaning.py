"""The graph of an operator's NumPy meaning, made once per operator and facts of its inputs, or why there is none."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import LimitExceeded, TractError
from tract_core.frozen import frozen
from tract_core.model.bodies import bodies_of
from tract_core.model.fact import ShapeFact, TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.substitute import symbols_in
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import REFERENCE, STATE
from tract_cpu.tracing.check import check_meaning, results_of
from tract_cpu.tracing.code import Reader, check_operator, names_in
from tract_cpu.tracing.refused import NotTraced
from tract_cpu.tracing.table import FUNCTIONS
from tract_cpu.tracing.trace import Trace
from tract_cpu.tracing.traced import Traced

MOST_KEPT: Final = 256
"""How many answers are remembered."""

MOST_NODES: Final = 500
"""Graphs of more operators are not worth it: they come from long loops."""


@frozen
class Meaning:
    """``function``: the row; ``body``: its graph, in the place of the operator; ``why``: why there is none."""

    function: Any
    body: TypedModel | None = None
    why: str = ""


_KNOWN: dict[Any, Meaning] = {}


def meaning_of(model: TypedModel, op: TypedOp, facts: Sequence[TypedFact]) -> Meaning:
    """The graph for a node of a model, whose inputs have these facts. Whatever a meaning raises is no error here."""
    function = model.registry[REFERENCE].find(type(op))
    facts = [fact.without_value() for fact in facts]
    key = (op, id(function), tuple(facts), _known_of_sizes(model, facts))
    found = _KNOWN.get(key)
    if found is not None and found.function is function:
        return found
    try:
        found = Meaning(function, _traced(model, op, function, facts))
    except NotTraced as error:
        found = Meaning(function, why=error.reason)
    except LimitExceeded as error:  # another time, there may be more room
        return Meaning(function, why=f"its meaning is beyond what the limits allow: {error.problem}")
    except Exception as error:
        found = Meaning(function, why=f"its meaning raises {type(error).__name__} when it is traced: {_told(error)}")
    if len(_KNOWN) >= MOST_KEPT:
        _KNOWN.clear()
    _KNOWN[key] = found
    return found


def _known_of_sizes(model: TypedModel, facts: Sequence[TypedFact]) -> Any:
    """What a graph may rely on besides the facts, where sizes in them are symbols."""
    if all(fact.shape.is_concrete for fact in facts):
        return None
    return frozenset(map(str, model.symbols)), frozenset(condition for condition, _ in model.conditions)


def _told(error: Exception) -> str:
    return error.problem if isinstance(error, TractError) else str(error)


def _traced(model: TypedModel, op: TypedOp, function: Any, facts: Sequence[TypedFact]) -> TypedModel:
    """The graph. Raises NotTraced, or what the meaning raises."""
    _check_op(model, op, facts)
    reader = Reader()
    copied = reader.function(function)
    check_operator(op, names_in(function.__code__) if hasattr(function, "__code__") else frozenset(), reader)
    body = model.empty_like()
    body.symbols = model.symbols.copy()  # who only tries adds nothing to it
    trace = Trace(body, op.name.lower(), FUNCTIONS)
    sources = [body.add_source(f"x{slot}", fact) for slot, fact in enumerate(facts)]
    results = _called(trace, reader, copied, op, sources)
    body.set_outputs(_outlets(trace, op, facts, results_of(results)))
    if len(body.nodes) > MOST_NODES:
        raise NotTraced(f"its meaning is {len(body.nodes)} operators, more than {MOST_NODES}")
    _check_conditions(model, body)
    check_meaning(body, partial(function, op), facts, open_zeros=trace.open_zeros)
    return body


def _called(trace: Trace, reader: Reader, function: Any, op: TypedOp, sources: Sequence[OutletId]) -> Any:
    """What the meaning gives of symbolic arrays. Raises NotTraced, also where the meaning did not let that pass."""
    with np.errstate(all="ignore"):
        try:
            found = function(op, *(Traced(trace, outlet, own=False) for outlet in sources))
        except Exception as error:
            found = error
    refusal = trace.refusal or reader.refusal
    if refusal is not None:
        raise NotTraced(refusal)
    if isinstance(found, Exception):
        raise found
    return found


def _check_op(model: TypedModel, op: TypedOp, facts: Sequence[TypedFact]) -> None:
    if model.registry[STATE].find(type(op)) is not None or not op.pure or op.draws:
        raise NotTraced("it keeps state, or gives other results for equal inputs")
    if bodies_of(op) or op.checks or op.announces or op.judges:
        raise NotTraced("it refuses runs, or tells sizes, by what it finds in its inputs")
    if symbols_in(op):
        raise NotTraced("its attributes hold sizes that only a run knows")
    for fact in facts:
        kind = fact.datum_type
        if not isinstance(kind, DatumType) or not (kind.is_bool() or kind.is_integer() or kind.is_float()):
            raise NotTraced(f"its meaning is of {kind.short}, of which native code knows no functions")


def _outlets(trace: Trace, op: TypedOp, facts: Sequence[TypedFact], results: Sequence[Any]) -> list[Any]:
    """The results as outlets. Raises NotTraced where they are not what the operator announced."""
    wanted = op.output_facts(facts)
    if len(results) != len(wanted):
        raise NotTraced(f"its meaning gives {len(results)} results, its output_facts say {len(wanted)}")
    outlets = [trace.array(one).outlet for one in results]
    for outlet, fact in zip(outlets, wanted, strict=True):
        found = trace.wire.fact(outlet)
        if found.datum_type != fact.datum_type or ShapeFact(found.shape).same(fact.shape) is not True:
            raise NotTraced(f"its meaning gives {found.without_value()}, its output_facts say {fact}")
    return outlets


def _check_conditions(model: TypedModel, body: TypedModel) -> None:
    """Raises NotTraced where the graph wants something of sizes that the model does not want."""
    for condition, _ in body.conditions:
        if not model.conditions.answer(condition, model.symbols):
            raise NotTraced(f"its meaning wants this of sizes, which differ from run to run: {condition}")
