"""What stands in a place after it was written to, as `tract_core.ops.scatter` means it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tract_core.ops.binary import Add, Max, Min, Mul
from tract_llvm.elements.binary import add, larger, multiply, smaller
from tract_llvm.language.values import Value

COMBINED: Final[Mapping[str, Callable[[Value, Value], Value]]] = {
    "add": lambda old, new: add(Add(), old, new),
    "mul": lambda old, new: multiply(Mul(), old, new),
    "min": lambda old, new: smaller(Min(), old, new),
    "max": lambda old, new: larger(Max(), old, new),
}
"""What stands in a place after it was written to, by the name of the reduction; without one, the new element."""
