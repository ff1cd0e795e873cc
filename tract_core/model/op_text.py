"""Operators and models as text, for people: large things in short."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

from tract_core.errors import FactError
from tract_core.model.bodies import bodies_of
from tract_core.model.fields import field_names, parts_of
from tract_core.model.typed import TypedModel
from tract_core.texts import printable


def model_text(model: TypedModel, indent: str = "") -> str:
    """A line for each node, in order of execution: operator, inputs, facts; those of its bodies behind it."""
    return "\n".join(_lines(model, indent))


def _lines(model: TypedModel, indent: str) -> Iterator[str]:
    for node_id in model.eval_order():
        node = model.nodes[node_id]
        facts = " ".join(str(model.outlet_fact(outlet)) for outlet in node.outlets())
        inputs = ", ".join(map(str, node.inputs))
        yield f"{indent}{node.id:>4} {node.name} {node.op.name}({describe(node.op)}) {inputs or '-'} -> {facts}"
        for body in bodies_of(node.op):
            yield from _lines(body, f"{indent}     ")
    yield f"{indent}outputs {', '.join(map(str, model.outputs))}"


def describe(op: Any) -> str:
    """The attributes of an operator, as ``axis=1, start=0``; large things in short."""
    if not is_dataclass(op):
        return str(op)
    return ", ".join(f"{name}={text}" for name, text in attributes_of(op))


def attributes_of(op: Any) -> list[tuple[str, str]]:
    """The same one by one: name and text of each field of an operator that is not ``None``; none of what has none."""
    named = ((name, getattr(op, name)) for name in (field_names(op) if is_dataclass(op) else ()))
    return [(name, _short(value)) for name, value in named if value is not None]


def _short(value: Any) -> str:
    kind: type = value.__class__
    if isinstance(value, TypedModel):
        return f"<{len(value.nodes)} nodes>"
    if isinstance(value, Enum):
        return value.name
    if is_dataclass(value) and kind.__str__ is object.__str__:
        return f"{kind.__name__}({describe(value)})"
    parts = _parts(value)
    if parts is not None:
        left, right = _BRACKETS.get(kind, "()")
        pairs = isinstance(value, Mapping)
        items = [f"{_short(part[0])}: {_short(part[1])}" if pairs else _short(part) for part in parts]
        return f"{left}{', '.join(items)}{',' if left == '(' and len(items) == 1 else ''}{right}"
    text = printable(str(value))
    return text if len(text) <= 120 else f"{text[:117]}..."


_BRACKETS: Final[Mapping[type, str]] = {list: "[]", set: "{}", frozenset: "{}", dict: "{}", MappingProxyType: "{}"}


def _parts(value: Any) -> Sequence[Any] | None:
    """What a container holds; ``None`` for what shows itself, as those containers do that only nodes of a file hold."""
    try:
        return None if is_dataclass(value) else parts_of(value)
    except FactError:
        return None
