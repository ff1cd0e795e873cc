"""Sizes of PyTorch, which are expressions of SymPy, as sizes of the core, and other numbers that follow from them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from typing import Any, Final

import numpy as np
import sympy
import torch
from torch.utils._sympy import functions as theirs

from tract_core.data import DatumType
from tract_core.dims import Dim, comparison, dim_max, dim_min, product, symbol
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Div, Mul, Pow
from tract_core.ops.elementwise import Sqrt
from tract_core.ops.node_wiring import NodeWiring
from tract_torch.wiring.multiples import multiples, of_multiples

Names = Mapping[str, str]
"""What symbols of PyTorch are called in the model."""


def is_size(value: Any) -> bool:
    """Whether this is a size, or a comparison of sizes."""
    return isinstance(value, (int, torch.SymInt, torch.SymBool))


def expression_of(value: Any) -> Any:
    """The expression of a number of PyTorch."""
    return value.node.expr if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)) else sympy.sympify(value)


def dim_of(size: Any, names: Names) -> Dim:
    """The size of an integer, a symbolic integer, or an expression; 1 or 0 for a comparison of sizes.

    Raises Unsupported for an expression that no size can say.
    """
    if isinstance(size, int):
        return int(size)
    expression = expression_of(size)
    try:
        return _dim(expression, names)
    except Unsupported:
        simpler = _by_guards(expression, size)
        if simpler == expression:
            raise
        return _dim(simpler, names)


def _by_guards(expression: Any, size: Any) -> Any:
    """The same for all sizes that the program was made for: numbers, where it was made for no others."""
    guards = [guard.expr for guard in size.node.shape_env.guards] if isinstance(size, torch.SymInt) else []
    numbers = {one.lhs: one.rhs for one in guards if isinstance(one, sympy.Eq) and one.rhs.is_Integer}
    return of_multiples(expression.xreplace(numbers), multiples(guards))


def _dim(expression: Any, names: Names) -> Dim:
    if expression.is_Integer:
        return int(expression)
    if expression in (sympy.true, sympy.false):
        return int(bool(expression))
    if expression.is_Symbol:
        return symbol(names.get(expression.name, expression.name))
    if isinstance(expression, (theirs.TruncToInt, theirs.FloorToInt, theirs.CeilToInt)):
        return _rounded(expression.args[0], names, up=isinstance(expression, theirs.CeilToInt))
    divide = _DIVISIONS.get(type(expression))
    if divide is not None:
        number, divisor = expression.args
        return divide(number, divisor, names)
    if isinstance(expression, (sympy.Add, sympy.Mul)):
        above, below = _without_fractions(expression)
        if below != 1:
            return _dim(above, names) // below
    build = _BUILDERS.get(type(expression))
    if build is None:
        raise _unsaid(expression, f"it is computed by {type(expression).__name__}")
    return build(*(_dim(argument, names) for argument in expression.args))


def _without_fractions(expression: Any) -> tuple[Any, int]:
    """What a sum or a product is a quotient of, and by which number: 1 where it has no fractions in it.

    A size is a whole number, so that its parts need not be: ``S/7 + T/7`` is ``(S + T)//7``.
    """
    if all(number.is_Integer for number in expression.atoms(sympy.Rational)):
        return expression, 1
    above, below = sympy.fraction(sympy.together(expression))
    return (above, int(below)) if below.is_Integer else (expression, 1)


def _unsaid(expression: object, reason: str) -> Unsupported:
    """The error for a size that the core has no expression for."""
    hint = "leave the sizes that it is made of out of dynamic_shapes: they are numbers then"
    return Unsupported(f"a model cannot say the size {expression}: {reason}", hint=hint)


def _power(base: Dim, exponent: Dim) -> Dim:
    if not isinstance(exponent, int) or exponent < 0:
        raise _unsaid(f"{base}**{exponent}", "the exponent is no number")
    return product([base] * exponent)


def _floor_divide(a: Any, b: Any, names: Names) -> Dim:
    """The whole part of a quotient. Raises Unsupported where a size is divided by one that is no factor of it."""
    if not b.is_Integer:
        a, b = _cancelled(a, b, names)
    size, divisor = _dim(a, names), int(b)
    return size // divisor if divisor > 0 else -size // -divisor


def _modulo(a: Any, b: Any, names: Names) -> Dim:
    """What is left of a size divided by another. Raises as the quotient does."""
    return _dim(a, names) - product([_floor_divide(a, b, names), _dim(b, names)])


def _cancelled(a: Any, b: Any, names: Names) -> tuple[Any, Any]:
    """The same quotient without common factors, below of which a number is left. Raises Unsupported where none is."""
    above, below = sympy.fraction(sympy.cancel(_exact_quotients(a) / _exact_quotients(b)))
    if not below.is_Integer:
        raise _unsaid(f"{_dim(a, names)}//({_dim(b, names)})", "the divisor is no number")
    return above, below


def _exact_quotients(expression: Any) -> Any:
    """The same, in which quotients by what is a factor are what they are, as ``S**2//S`` is S."""

    def exact(above: Any, below: Any) -> Any:
        top, bottom = sympy.fraction(sympy.cancel(above / below))
        return top if bottom == 1 else theirs.FloorDiv(above, below)

    return expression.replace(theirs.FloorDiv, exact)


def _rounded(expression: Any, names: Names, *, up: bool = False) -> Dim:
    """The whole part of a number that PyTorch computes in f64 from one size; the next integer from there ``up``.

    Raises Unsupported where no fraction gives, for all of many sizes, what the number in f64 is rounded to.
    """
    sizes: list[Any] = []
    tried = np.arange(_TRIED)
    with np.errstate(all="ignore"):
        numbers = _computed(expression, tried.astype(np.float64), float, sizes)
    if len(set(sizes)) != 1 or not np.isfinite(numbers).all():
        raise _unsaid(expression, "it is no product of one size and a number")
    wanted, size = (np.ceil(numbers) if up else np.trunc(numbers)).astype(np.int64), _dim(sizes[0], names)
    for number in (_near, _exact):
        try:
            offset, one = (_computed(expression, Fraction(place), number, []) for place in (0, 1))
        except ZeroDivisionError:
            raise Unsupported(f"the size {expression} is none that a model can have") from None
        below = math.lcm(offset.denominator, one.denominator)
        factor, more = int((one - offset) * below), int(offset * below) + (below - 1 if up else 0)
        found = (tried.astype(object) * factor + more) // below
        if abs(factor) < _LARGEST and np.array_equal(found[wanted >= 0], wanted[wanted >= 0]):
            return (size * factor + more) // below
    hint = "give sizes, or a factor that is a simple fraction"
    raise Unsupported(f"the size {expression} depends on how the product is rounded", hint=hint)


def _near(number: Any) -> Fraction:
    return Fraction(float(number)).limit_denominator(1 << 10)


def _exact(number: Any) -> Fraction:
    return Fraction(float(number))


def _computed(expression: Any, size: Any, number: Callable[[Any], Any], sizes: list[Any]) -> Any:
    """The value of an expression in which ``size`` stands for each size, which are noted, and ``number`` makes numbers.

    Raises Unsupported for other operators than those between real numbers.
    """
    if expression.is_Number:
        return number(expression)
    if isinstance(expression, theirs.ToFloat) or expression.is_integer:
        sizes.append(expression.args[0] if isinstance(expression, theirs.ToFloat) else expression)
        return size
    operation = _OF_NUMBERS.get(type(expression))
    if operation is None:
        raise _unsaid(expression, f"it is computed by {type(expression).__name__}")
    return reduce(operation, (_computed(one, size, number, sizes) for one in expression.args))


_OF_NUMBERS: Final[dict[type, Callable[[Any, Any], Any]]] = {
    sympy.Add: operator.add,
    sympy.Mul: operator.mul,
    theirs.FloatTrueDiv: operator.truediv,
    theirs.IntTrueDiv: operator.truediv,
}
_TRIED: Final = 1 << 12
"""Sizes up to here must be scaled as PyTorch does."""
_LARGEST: Final = 1 << 50
"""Numbers by which sizes can be multiplied, which are of 64 bits."""

_DIVISIONS: Final[dict[type, Callable[[Any, Any, Names], Dim]]] = {
    theirs.FloorDiv: _floor_divide,
    theirs.CleanDiv: _floor_divide,
    theirs.Mod: _modulo,
    theirs.PythonMod: _modulo,
}

_BUILDERS: Final[dict[type, Callable[..., Dim]]] = {
    sympy.Add: lambda *dims: reduce(lambda a, b: a + b, dims),
    sympy.Mul: lambda *dims: product(dims),
    sympy.Pow: _power,
    theirs.Max: dim_max,
    theirs.Min: dim_min,
    theirs.PowByNatural: _power,
    sympy.Eq: lambda a, b: comparison(a, "==", b),
    sympy.Ne: lambda a, b: 1 - comparison(a, "==", b),
    sympy.Ge: lambda a, b: comparison(a, ">=", b),
    sympy.Gt: lambda a, b: comparison(a, ">", b),
    sympy.Le: lambda a, b: comparison(a, "<=", b),
    sympy.Lt: lambda a, b: comparison(a, "<", b),
    sympy.And: lambda *dims: product(dims),
    sympy.Or: lambda *dims: reduce(dim_max, dims),
    sympy.Not: lambda dim: 1 - dim,
}


def wire_number(value: Any, names: Names, wire: NodeWiring) -> OutletId:
    """A number as a tensor without axes: i64 for sizes, bool for comparisons of sizes, else f64.

    Raises Unsupported for an expression that cannot be computed.
    """
    if isinstance(value, (bool, torch.SymBool)):
        return wire.cast(wire.const(dim_of(value, names)), DatumType.BOOL)
    if is_size(value):
        return wire.const(dim_of(value, names))
    return _wire_real(expression_of(value), names, wire)


def _wire_real(expression: Any, names: Names, wire: NodeWiring) -> OutletId:
    """An expression of sizes, in f64."""
    if expression.is_Number and not expression.is_Integer:
        return wire.const(np.array(float(expression)))
    if type(expression) is theirs.ToFloat or expression.is_integer:
        size = expression.args[0] if type(expression) is theirs.ToFloat else expression
        return wire.cast(wire.const(_dim(size, names)), DatumType.F64)
    operation = _REAL.get(type(expression))
    if operation is None:
        raise Unsupported(
            f"the number {expression} has {type(expression).__name__}, which is not computed from sizes here",
            hint="compute with a tensor in its place: torch.tensor(x.shape[0])",
        )
    return operation(wire, *(_wire_real(argument, names, wire) for argument in expression.args))


def _folded(op: Callable[[], Any]) -> Callable[..., OutletId]:
    return lambda wire, *terms: reduce(lambda a, b: wire.binary(op(), a, b), terms)


_REAL: Final[dict[type, Callable[..., OutletId]]] = {
    sympy.Add: _folded(Add),
    sympy.Mul: _folded(Mul),
    sympy.Pow: _folded(Pow),
    theirs.FloatPow: _folded(Pow),
    theirs.IntTrueDiv: _folded(Div),
    theirs.FloatTrueDiv: _folded(Div),
    theirs.OpaqueUnaryFn_sqrt: lambda wire, x: wire.op(Sqrt(), x),
}
