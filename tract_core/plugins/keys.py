"""The tables of the core, one key per question.

The type aliases are the contracts of the rows. A plugin that asks a question of its own makes a `TableKey` of its own;
nothing needs to be added here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.dims import Dim
from tract_core.plugins.tables import TableKey

if TYPE_CHECKING:
    from tract_core.model.axes import AxesMapping
    from tract_core.model.fact import TypedFact
    from tract_core.model.op import TypedOp
    from tract_core.model.rewriter import Rule
    from tract_core.runtime.session import OpState, Session

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

REFERENCE: TableKey[type[TypedOp], ReferenceFn] = TableKey("reference", "what the operator computes, in plain NumPy")
STATE: TableKey[type[TypedOp], StateFn] = TableKey("state", "how an operator that keeps state, or runs a body, runs")
SYMBOLIC: TableKey[type[TypedOp], SymbolicFn] = TableKey("symbolic", "what the operator does to arrays of sizes")
COST: TableKey[type[TypedOp], CostFn] = TableKey("cost", "how many operations, by kind, the operator takes")
AXES: TableKey[type[TypedOp], AxesFn] = TableKey("axes", "which input axis becomes which output axis")
DECLUTTER: TableKey[str, Rule] = TableKey("declutter", "a rule that brings a graph closer to its normal form")
