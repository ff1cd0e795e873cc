"""Sizes of PyTorch, which are expressions of SymPy, as sizes of the core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, Final

import sympy
import torch
from torch.utils._sympy.functions import CleanDiv, FloorDiv, Max, Min, Mod, PythonMod

from tract_core.dims import Dim, dim_max, dim_min, product, symbol
from tract_core.errors import Unsupported

Names = Mapping[str, str]
"""What symbols of PyTorch are called in the model."""


def dim_of(size: Any, names: Names) -> Dim:
    """The size of an integer, a symbolic integer, or an expression. Raises Unsupported for one that no size can say."""
    if isinstance(size, int):
        return size
    expression: Any = size.node.expr if isinstance(size, torch.SymInt) else sympy.sympify(size)
    return _dim(expression, names)


def _dim(expression: Any, names: Names) -> Dim:
    if expression.is_Integer:
        return int(expression)
    if expression.is_Symbol:
        return symbol(names.get(expression.name, expression.name))
    build = _BUILDERS.get(type(expression))
    if build is None:
        raise Unsupported(f"the size {expression} has {type(expression).__name__}, which no size of a model has")
    return build(*(_dim(argument, names) for argument in expression.args))


def _power(base: Dim, exponent: Dim) -> Dim:
    if not isinstance(exponent, int) or exponent < 0:
        raise Unsupported(f"the size {base}**{exponent} is none that a model can have")
    return product([base] * exponent)


def _floor_divide(a: Dim, b: Dim) -> Dim:
    return a // _number(b)


def _modulo(a: Dim, b: Dim) -> Dim:
    divisor = _number(b)
    return a - a // divisor * divisor


def _number(dim: Dim) -> int:
    if isinstance(dim, int):
        return dim
    raise Unsupported(f"a size is divided by {dim}, wanted a number")


_BUILDERS: Final[dict[type, Callable[..., Dim]]] = {
    sympy.Add: lambda *dims: reduce(lambda a, b: a + b, dims),
    sympy.Mul: lambda *dims: product(dims),
    sympy.Pow: _power,
    FloorDiv: _floor_divide,
    CleanDiv: _floor_divide,
    Mod: _modulo,
    PythonMod: _modulo,
    Max: dim_max,
    Min: dim_min,
}
