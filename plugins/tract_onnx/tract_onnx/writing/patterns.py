"""What stands in front of a tensor, as patterns: operators, tensors by a letter, and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Final, Protocol

import numpy as np
import onnx

from tract_core.frozen import frozen

Values = Mapping[str, str]
"""The names of tensors, by the letters that stand for them in a pattern."""

_EITHER_WAY: Final = ("Add", "Mul", "Max", "Min")
"""Operators whose two inputs may be exchanged."""


class Makers(Protocol):
    """Where patterns are looked for."""

    def maker(self, name: str) -> onnx.NodeProto | None:
        """The node that makes a tensor; ``None`` for what is there, or comes."""
        ...

    def number(self, name: str) -> float | None:
        """The one number that a constant is; ``None`` for anything else."""
        ...


@frozen
class Made:
    """A tensor that the operator ``op_type`` makes.

    ``inputs``: letters, numbers, and what is made again; "" for what is missing. A letter stands for the same tensor
    wherever it is.
    """

    op_type: str
    inputs: tuple[Made | str | float, ...]


def made(op_type: str, *inputs: Made | str | float) -> Made:
    """A pattern."""
    return Made(op_type, inputs)


def matched(pattern: Made, node: onnx.NodeProto, graph: Makers) -> Values | None:
    """The tensors that letters stand for, where a node is what the pattern says."""
    return _node(pattern, node, graph, {})


def _node(pattern: Made, node: onnx.NodeProto, graph: Makers, found: Values) -> Values | None:
    if node.op_type != pattern.op_type or len(node.input) != len(pattern.inputs):
        return None
    orders = permutations(node.input) if node.op_type in _EITHER_WAY else [tuple(node.input)]
    for names in orders:
        values = _all(pattern.inputs, names, graph, found)
        if values is not None:
            return values
    return None


def _all(terms: Sequence[Made | str | float], names: Sequence[str], graph: Makers, found: Values) -> Values | None:
    if not terms:
        return found
    first = _one(terms[0], names[0], graph, found)
    return None if first is None else _all(terms[1:], names[1:], graph, first)


def _one(term: Made | str | float, name: str, graph: Makers, found: Values) -> Values | None:
    if isinstance(term, Made):
        maker = graph.maker(name)
        return None if maker is None else _node(term, maker, graph, found)
    if isinstance(term, str):
        if not (name and term):
            return found if name == term else None
        return {**found, term: name} if found.get(term, name) == name else None
    number = graph.number(name) if name else None
    return found if number is not None and _is_same(number, term) else None


def _is_same(number: float, wanted: float) -> bool:
    """Whether a number is the wanted one as far as f32 can tell."""
    return number == wanted or np.float32(number) == np.float32(wanted)
