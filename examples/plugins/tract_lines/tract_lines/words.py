"""The words of the format: an operator each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_core.model.op import TypedOp
from tract_core.ops import binary, elementwise

OPERATORS: Final[Mapping[str, TypedOp]] = {
    "add": binary.Add(),
    "sub": binary.Sub(),
    "mul": binary.Mul(),
    "div": binary.Div(),
    "min": binary.Min(),
    "max": binary.Max(),
    "abs": elementwise.Abs(),
    "neg": elementwise.Neg(),
    "exp": elementwise.Exp(),
    "sqrt": elementwise.Sqrt(),
    "square": elementwise.Square(),
    "tanh": elementwise.Tanh(),
}

WORDS: Final[Mapping[TypedOp, str]] = {op: word for word, op in OPERATORS.items()}
