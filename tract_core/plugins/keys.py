"""The tables of the core, one key per question.

The type aliases are the contracts of the rows. A plugin that asks a question of its own makes a `TableKey` of its own;
nothing needs to be added here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.dims import Dim
from tract_core.plugins.tables import TableKey, function_row

if TYPE_CHECKING:
    from pathlib import Path

    from tract_core.model.axes import AxesMapping
    from tract_core.model.fact import TypedFact
    from tract_core.model.op import TypedOp
    from tract_core.model.rewriter import Rule
    from tract_core.model.session import OpState, Session

Array = np.ndarray[Any, Any]

ReferenceFn = Callable[..., "Array | tuple[Array, ...]"]
"""``(op, *arrays) -> array`` (or a tuple of arrays, for several outputs). Attributes hold no symbols by then."""

SymbolicFn = Callable[..., Array]
"""``(op, *arrays) -> array``: like the NumPy meaning, on small arrays of Python objects whose elements are sizes."""

StateFn = Callable[["Any", "Session"], "OpState"]
"""``(op, session) -> OpState``: a fresh state for one node of one running model."""

CostFn = Callable[["Any", "Sequence[TypedFact]", "Sequence[TypedFact]"], Mapping[str, Dim]]
"""``(op, input facts, output facts) -> {"FMA(F32)": count, ...}``; counts are exact and may be symbolic."""

AxesFn = Callable[["Any", "Sequence[TypedFact]", "Sequence[TypedFact]"], "AxesMapping"]
"""``(op, input facts, output facts) -> AxesMapping``: which axis of which input becomes which axis of which output."""

REFERENCE: TableKey[type[TypedOp], ReferenceFn] = TableKey(
    "reference", "what the operator computes, in plain NumPy", function_row
)
STATE: TableKey[type[TypedOp], StateFn] = TableKey(
    "state", "how an operator that keeps state, or runs a body, runs", function_row, rival=REFERENCE
)
SYMBOLIC: TableKey[type[TypedOp], SymbolicFn] = TableKey(
    "symbolic", "what the operator does to arrays of sizes", function_row
)


def _counts(found: Any, *_: Any) -> str | None:
    return None if isinstance(found, Mapping) else f"it is a {type(found).__name__}, wanted a dictionary of counts"


def _mapping(found: Any, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> str | None:
    from tract_core.model.axes import AxesMapping

    if not isinstance(found, AxesMapping):
        return f"it is a {type(found).__name__}, wanted an AxesMapping"
    wanted = [fact.rank for fact in inputs], [fact.rank for fact in outputs]
    ranks = [len(term) for term in found.inputs], [len(term) for term in found.outputs]
    return None if ranks == wanted else f"{found} maps tensors of ranks {ranks}, wanted {wanted}"


COST: TableKey[type[TypedOp], CostFn] = TableKey(
    "cost", "how many operations, by kind, the operator takes", function_row, answer=_counts
)
AXES: TableKey[type[TypedOp], AxesFn] = TableKey(
    "axes", "which input axis becomes which output axis", function_row, answer=_mapping
)


PartnerFn = Callable[["Path", Mapping[str, Array]], Mapping[str, Array]]
"""``(path, inputs by name) -> tensors by name``: run the model of a file in another engine.

The tensors are all that the engine can show, intermediate ones too, under the names of the file. Raises PluginError,
with the ``pip install`` that would help, when the engine is not there, and RunError when it fails.
"""

PARTNERS: TableKey[str, PartnerFn] = TableKey(
    "partners", "how another engine runs a model file, for comparison", function_row
)


def _rule_row(key: str, value: Any) -> str | None:
    from tract_core.model.rewriter import Rule, what_is_wrong_with_types

    if not isinstance(value, Rule):
        return f"is a {type(value).__name__}, wanted a Rule (decorate it with tract_core.model.rewriter.rewrites)"
    if value.name != key:
        return f"is a rule named {value.name}, wanted one named {key}"
    return what_is_wrong_with_types(value.on)


DECLUTTER: TableKey[str, Rule] = TableKey(
    "declutter", "how one node is rewritten, to bring a graph closer to its normal form", _rule_row
)
