"""Symbolic sizes: expressions over named, non-negative integers.

A size is a ``Dim``: an ``int``, or a ``TDim`` such as ``(S+3)/4``. Operators build sums, products and floor divisions;
functions build the rest, compare with three answers, and put values in the place of symbols.
"""

from tract_core.dims.assertion import Assertion, parse_assertion
from tract_core.dims.bounds import bounds
from tract_core.dims.build import Comparison, broadcast, comparison, dim_max, dim_min
from tract_core.dims.compare import less_or_equal, not_negative, positive, same_dim
from tract_core.dims.division import ceil_div, exact_div, product
from tract_core.dims.known import Interval
from tract_core.dims.parse import parse_dim
from tract_core.dims.scope import SymbolScope
from tract_core.dims.solve import bind, linear_in_one_symbol, symbol_name
from tract_core.dims.tdim import Dim, TDim, symbol
from tract_core.dims.walk import evaluate, is_one, is_symbolic, substitute, symbols_of

__all__ = [  # noqa: RUF022 - grouped by what they are for
    # what a size is
    "Dim",
    "TDim",
    "symbol",
    "is_one",
    "is_symbolic",
    "symbols_of",
    # build
    "broadcast",
    "ceil_div",
    "comparison",
    "Comparison",
    "dim_max",
    "dim_min",
    "exact_div",
    "product",
    # compare
    "bounds",
    "Interval",
    "less_or_equal",
    "not_negative",
    "positive",
    "same_dim",
    # read
    "parse_assertion",
    "parse_dim",
    # the symbols of a model
    "Assertion",
    "SymbolScope",
    # give values
    "bind",
    "linear_in_one_symbol",
    "symbol_name",
    "evaluate",
    "substitute",
]
