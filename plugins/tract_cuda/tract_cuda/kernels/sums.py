"""Sums of products, and what is computed of each sum and of the operands at its position before it is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tract_llvm.elements.expressions import Expression, rounded
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_cuda.kernels.positions import place, strided
from tract_cuda.language.kernel import Kernel, Parameter


def multiply_add(x: Value, y: Value, total: Value) -> Value:
    """A sum and one more product: of floats, rounded once."""
    return x.times_plus(y, total) if total.type.kind == "f" else x * y + total


def results(expression: Expression, rank: int) -> tuple[Parameter, ...]:
    """The result and the operands, each with its strides along so many axes."""
    tensors = [("result", expression.result), *operands_of(expression)]
    return tuple(one for name, element in tensors for one in strided(name, element, rank))


def operands_of(expression: Expression) -> Iterator[tuple[str, ElementType]]:
    """The operands, which are the inputs behind the sum: the name and the type of each."""
    for number, element in enumerate(expression.inputs[1:]):
        yield f"operand{number}", element


def inputs_at(k: Kernel, expression: Expression, total: Value, at: Sequence[Value]) -> list[Value]:
    """What is computed of at a position: the sum, rounded to the type of the first input, and the operands."""
    first = rounded(total, expression.inputs[0])
    return [first, *(k.memory(name)[place(k, name, at)] for name, _ in operands_of(expression))]


def give(k: Kernel, expression: Expression, total: Value, at: Sequence[Value]) -> None:
    """Write what becomes of the sum at a position."""
    k.memory("result")[place(k, "result", at)] = expression.compute(inputs_at(k, expression, total, at))
