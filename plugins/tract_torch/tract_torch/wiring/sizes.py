"""Sizes of PyTorch, which are expressions of SymPy, as sizes of the core, and other numbers that follow from them."""

from __future__ import annotations

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
        known = _known(size)
        if not expression.has(*known):
            raise
        return _dim(expression.xreplace(known), names)


def _known(size: Any) -> dict[Any, Any]:
    """The numbers that expressions are, as the program was made for no other sizes."""
    guards = size.node.shape_env.guards if isinstance(size, torch.SymInt) else ()
    equal = [guard.expr for guard in guards if isinstance(guard.expr, sympy.Eq)]
    return {one.lhs: one.rhs for one in equal if one.rhs.is_Integer}


def _dim(expression: Any, names: Names) -> Dim:
    if expression.is_Integer:
        return int(expression)
    if expression in (sympy.true, sympy.false):
        return int(bool(expression))
    if expression.is_Symbol:
        return symbol(names.get(expression.name, expression.name))
    if isinstance(expression, (theirs.TruncToInt, theirs.FloorToInt)):
        return _scaled(expression.args[0], names)
    build = _BUILDERS.get(type(expression))
    if build is None:
        raise Unsupported(f"the size {expression} has {type(expression).__name__}, which no size of a model has")
    return build(*(_dim(argument, names) for argument in expression.args))


def _power(base: Dim, exponent: Dim) -> Dim:
    if not isinstance(exponent, int) or exponent < 0:
        raise Unsupported(f"the size {base}**{exponent} is none that a model can have")
    return product([base] * exponent)


def _floor_divide(a: Dim, b: Dim) -> Dim:
    divisor = _number(b)
    return a // divisor if divisor > 0 else -a // -divisor


def _modulo(a: Dim, b: Dim) -> Dim:
    divisor = _number(b)
    return a - a // divisor * divisor


def _number(dim: Dim) -> int:
    if isinstance(dim, int):
        return dim
    raise Unsupported(f"a size is divided by {dim}, wanted a number")


def _scaled(expression: Any, names: Names) -> Dim:
    """The whole part of a size times a number, which PyTorch computes in f64.

    Raises Unsupported where no fraction gives, for all of many sizes, what the product in f64 is rounded to.
    """
    sizes: list[Dim] = [_dim(one.args[0], names) for one in expression.args if isinstance(one, theirs.ToFloat)]
    numbers = [float(one) for one in expression.args if one.is_Number]
    if not expression.is_Mul or len(sizes) != 1 or len(numbers) != 1 or len(expression.args) != 2:
        raise Unsupported(f"the size {expression} is none that a model can have")
    tried = np.arange(_TRIED)
    wanted = (tried * numbers[0]).astype(np.int64)
    for ratio in (Fraction(numbers[0]).limit_denominator(1 << 10), Fraction(numbers[0])):
        found = tried.astype(object) * ratio.numerator // ratio.denominator
        if ratio.numerator < _LARGEST and np.array_equal(found, wanted):
            return sizes[0] * ratio.numerator // ratio.denominator
    hint = "give sizes, or a factor that is a simple fraction"
    raise Unsupported(f"the size {expression} depends on how the product is rounded", hint=hint)


_TRIED: Final = 1 << 12
"""Sizes up to here must be scaled as PyTorch does."""
_LARGEST: Final = 1 << 50
"""Numbers by which sizes can be multiplied, which are of 64 bits."""

_BUILDERS: Final[dict[type, Callable[..., Dim]]] = {
    sympy.Add: lambda *dims: reduce(lambda a, b: a + b, dims),
    sympy.Mul: lambda *dims: product(dims),
    sympy.Pow: _power,
    theirs.FloorDiv: _floor_divide,
    theirs.CleanDiv: _floor_divide,
    theirs.Mod: _modulo,
    theirs.PythonMod: _modulo,
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
