"""The tables of the core, one key per question.

The type aliases are the contracts of the rows. The facts, sessions and mappings that they speak of are those of
`tract_core.model`, which asks the tables and which nothing here knows. A plugin that asks a question of its own makes a
`TableKey` of its own; nothing needs to be added here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tract_core.dims import Dim
from tract_core.plugins.tables import TableKey, function_row

Array = np.ndarray[Any, Any]

ReferenceFn = Callable[..., "Array | tuple[Array, ...]"]
"""``(op, *arrays) -> array`` (or a tuple of arrays, for several outputs). Attributes hold no symbols by then."""

SymbolicFn = Callable[..., Array]
"""``(op, *arrays) -> array``: like the NumPy meaning, on small arrays of Python objects whose elements are sizes."""

StateFn = Callable[[Any, Any], Any]
"""``(op, session) -> OpState``: a fresh state for one node of one running model, see `tract_core.model.session`."""

CostFn = Callable[[Any, Sequence[Any], Sequence[Any]], Mapping[str, Dim]]
"""``(op, input facts, output facts) -> {"FMA(F32)": count, ...}``; counts are exact and may be symbolic."""

MemoryFn = Callable[..., int]
"""``(op, made, *arrays) -> bytes``: ``made`` is how many of them the outputs take, as far as that is known before."""

AxesFn = Callable[[Any, Sequence[Any], Sequence[Any]], Any]
"""``(op, input facts, output facts) -> AxesMapping``: which axis of which input becomes which axis of which output."""

REFERENCE: TableKey[type, ReferenceFn] = TableKey(
    "reference", "what the operator computes, in plain NumPy", function_row
)
STATE: TableKey[type, StateFn] = TableKey(
    "state", "how an operator that keeps state, or runs a body, runs", function_row, rival=REFERENCE
)
SYMBOLIC: TableKey[type, SymbolicFn] = TableKey("symbolic", "what the operator does to arrays of sizes", function_row)


def _counts(found: Any, *_: Any) -> str | None:
    return None if isinstance(found, Mapping) else f"it is a {type(found).__name__}, wanted a dictionary of counts"


@runtime_checkable
class _MapsAxes(Protocol):
    """What the table asks of a `tract_core.model.axes.AxesMapping`."""

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def axes(self) -> Any: ...


def _mapping(found: object, inputs: Sequence[Any], outputs: Sequence[Any]) -> str | None:
    if not isinstance(found, _MapsAxes):
        return f"it is a {type(found).__name__}, wanted an AxesMapping"
    wanted = [fact.rank for fact in inputs], [fact.rank for fact in outputs]
    ranks = [len(term) for term in found.inputs], [len(term) for term in found.outputs]
    return None if ranks == wanted else f"{found} maps tensors of ranks {ranks}, wanted {wanted}"


MEMORY: TableKey[type, MemoryFn] = TableKey(
    "memory", "how many bytes the NumPy meaning takes at most, with its outputs and without its inputs", function_row
)
COST: TableKey[type, CostFn] = TableKey(
    "cost", "how many operations, by kind, the operator takes", function_row, answer=_counts
)
AXES: TableKey[type, AxesFn] = TableKey(
    "axes", "which input axis becomes which output axis", function_row, answer=_mapping
)


PartnerFn = Callable[[Path, Mapping[str, Array], Mapping[str, Any]], Mapping[str, Array]]
"""``(path, inputs by name, options) -> tensors by name``: run the model of a file in another engine.

``options``: the keywords that its loader here was given, by flags of its format.

The tensors are all that the engine can show, intermediate ones too, under the names of the file. Raises PluginError,
with the ``pip install`` that would help, when the engine is not there, and RunError when it fails.
"""

PARTNERS: TableKey[str, PartnerFn] = TableKey(
    "partners", "how another engine runs a model file, for comparison", function_row
)


def what_is_wrong_with_types(on: tuple[object, ...]) -> str | None:
    """Why a rule cannot look at operators of these types, or ``None``."""
    other = next((one for one in on if not isinstance(one, type)), None)
    if other is not None:
        return f"is given {getattr(other, '__name__', other)!r}, wanted types of operators"
    return None if on else "is given no type of operator, so that it never looks at anything"


def _rule_row(key: str, value: Any) -> str | None:
    name, on = getattr(value, "name", None), getattr(value, "on", None)
    if not callable(value) or name is None or on is None:
        return f"is a {type(value).__name__}, wanted a Rule (decorate it with tract_core.model.rewriter.rewrites)"
    if name != key:
        return f"is a rule named {name}, wanted one named {key}"
    return what_is_wrong_with_types(on)


def table_of_rules(name: str, meaning: str) -> TableKey[str, Any]:
    """A table whose rows are `tract_core.model.rewriter.Rule`, by their names: see `tract_core.model.declutter`."""
    return TableKey(name, meaning, _rule_row, types=lambda rule: rule.on)


DECLUTTER: TableKey[str, Any] = table_of_rules(
    "declutter", "how one node is rewritten, to bring a graph closer to its normal form"
)
