"""One element of the operators that quantised networks are rewritten to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tract_core.ops.binary import Add, Binary, Mul, Sub
from tract_core.ops.quantize import DequantizeLinear, QuantizeLinear
from tract_core.ops.rounding import limits
from tract_core.plugins.tables import Rows
from tract_llvm.elements.expressions import elements
from tract_llvm.elements.quantize import dequantize, nearest, quantize, within
from tract_llvm.functions.rounding import whole
from tract_llvm.language.convert import cut_off
from tract_llvm.language.types import F32, I32
from tract_llvm.language.values import Value
from tract_llvm.llvm_only.on_steps import Dequantize, OfDequantized, Quantize, Requantize, SumOfSteps

ROWS = Rows()


@elements(ROWS, "fiu", Quantize)
def quantize_element(op: Quantize, x: Value, scale: Value, zero: Value) -> Value:
    """As of `QuantizeLinear`."""
    return quantize(QuantizeLinear(op.to), x, scale, zero)


@elements(ROWS, "fiu", Requantize)
def requantize(op: Requantize, x: Value, factor: Value, offset: Value, zero: Value) -> Value:
    """The nearest integer to x * factor + offset, halves to even, plus zero: in the type of the factor."""
    convert, compute = x.function.convert, factor.type
    found = convert(x, compute).times_plus(factor, offset)
    if compute is F32:
        return nearest(found, zero, op.to)
    return cut_off(within(whole(found) + convert(zero, compute), *limits(op.to)), I32)


@elements(ROWS, "fiu", SumOfSteps)
def sum_of_steps(op: SumOfSteps, *inputs: Value) -> Value:
    """The nearest integer to the sum of both products and the offset, halves to even, plus zero."""
    x, factor, y, other, offset, zero = inputs
    wide, more = (one.function.convert(one, F32) for one in (x, y))
    return nearest(wide.times_plus(factor, more.times_plus(other, offset)), zero, op.to)


@elements(ROWS, "fiu", Dequantize)
def dequantize_element(op: Dequantize | OfDequantized, x: Value, scale: Value, zero: Value) -> Value:
    """As of `DequantizeLinear`."""
    return dequantize(DequantizeLinear(op.to), x, scale, zero)


_COMPUTED: Final[dict[type[Binary], Callable[[Value, Value], Value]]] = {
    Add: lambda a, b: a + b,
    Sub: lambda a, b: a - b,
    Mul: lambda a, b: a * b,
}


@elements(ROWS, "fiu", OfDequantized)
def of_dequantized(op: OfDequantized, *inputs: Value) -> Value:
    """The operator on the numbers."""
    given = iter(inputs)
    operands = [
        dequantize_element(op, next(given), next(given), next(given)) if one else next(given) for one in op.dequantized
    ]
    return _COMPUTED[type(op.op)](*operands)
