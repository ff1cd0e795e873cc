"""Symbolic sizes: the expression type and its arithmetic.

A size (``Dim``) is an ``int`` or a ``TDim``. A ``TDim`` is a sum of products in canonical form and is never constant:
an operation with a constant result returns an ``int``. Symbols stand for integers that are 0 or more, and
simplification relies on it; they are known by name only, what else holds of them is the business of ``SymbolScope``.

Canonical means that equal polynomials are equal objects. Floor divisions are brought to one form where that keeps
them readable, so two different forms can still always have the same value: ask ``same_dim``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from math import gcd
from operator import index
from typing import NoReturn, TypeAlias, final

from tract_core.dims.atoms import MAX_TERMS, Atom, Factor, Kind, Monomial, multiply_monomials, too_large
from tract_core.dims.names import check_name
from tract_core.errors import DimError

_MAX_PRODUCTS = 1 << 16


@final
class TDim:
    """An expression over symbols; immutable, hashable, picklable.

    It takes part in ``+ - *`` with sizes, and in ``//`` and ``%`` by a positive ``int``, which round down. ``==`` asks
    whether two expressions have the same form; whether they always have the same value is asked with ``same_dim``.
    It has no truth value and no order: DimError and TypeError say so.
    """

    __slots__ = ("_hash", "_symbols", "_text", "constant", "terms")

    terms: Mapping[Monomial, int]
    """The factor of each product, none 0, in the order in which they were first written; never empty."""
    constant: int
    _hash: int  # this and those below: found when they are first asked for
    _text: str
    _symbols: frozenset[str]

    def __init__(self, terms: Mapping[Monomial, int], constant: int) -> None:
        """For this package: ``terms`` are in canonical form, not empty, and not changed afterwards."""
        _keep(self, "terms", terms)
        _keep(self, "constant", constant)

    def __add__(self, other: Dim) -> Dim:
        if type(other) is TDim:
            return _add(self, other, 1)
        number = other if other.__class__ is int else _integer(other)
        if number is None:
            return NotImplemented
        return TDim(self.terms, self.constant + number) if number else self

    __radd__ = __add__

    def __sub__(self, other: Dim) -> Dim:
        if type(other) is TDim:
            return _add(self, other, -1)
        number = other if other.__class__ is int else _integer(other)
        if number is None:
            return NotImplemented
        return TDim(self.terms, self.constant - number) if number else self

    def __rsub__(self, other: int) -> Dim:
        number = other if other.__class__ is int else _integer(other)
        if number is None:
            return NotImplemented
        return TDim({product: -factor for product, factor in self.terms.items()}, number - self.constant)

    def __neg__(self) -> TDim:
        return TDim({product: -factor for product, factor in self.terms.items()}, -self.constant)

    def __pos__(self) -> TDim:
        return self

    def __mul__(self, other: Dim) -> Dim:
        if type(other) is TDim:
            return _multiply(self, other)
        number = other if other.__class__ is int else _integer(other)
        if number is None:
            return NotImplemented
        if number == 0:
            return 0
        if number == 1:
            return self
        return TDim({product: factor * number for product, factor in self.terms.items()}, self.constant * number)

    __rmul__ = __mul__

    def __floordiv__(self, divisor: int) -> Dim:
        """Rounds down. Raises DimError unless ``divisor`` is a positive ``int``."""
        return _floor_divide(self, _divisor(self, divisor))

    def __rfloordiv__(self, dividend: int) -> NoReturn:
        raise _bad_divisor(dividend, self)

    def __mod__(self, divisor: int) -> Dim:
        """What ``//`` leaves, from 0 to ``divisor - 1``. Raises DimError unless ``divisor`` is a positive ``int``."""
        return self - _floor_divide(self, _divisor(self, divisor)) * divisor

    def __rmod__(self, dividend: int) -> NoReturn:
        raise _bad_divisor(dividend, self)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not TDim:
            return False
        return self.constant == other.constant and (self.terms is other.terms or self.terms == other.terms)

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            _keep(self, "_hash", hash((frozenset(self.terms.items()), self.constant)))
            return self._hash

    def __bool__(self) -> NoReturn:
        raise DimError(
            f"whether {self} is true depends on its symbols",
            hint="ask same_dim(size, 0) or positive(size), which answer yes, no or None",
        )

    def __index__(self) -> int:
        raise DimError(
            f"{self} is not a number yet: it depends on {', '.join(sorted(self.symbols))}",
            hint="give its symbols values: evaluate(size, {'S': 12})",
        )

    __int__ = __index__

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a TDim cannot change: {name}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a TDim cannot change: {name}")

    def __reduce__(self) -> tuple[object, ...]:
        # Not the cached hash: the hash of a string differs between processes.
        return TDim, (self.terms, self.constant)

    def __copy__(self) -> TDim:
        return self

    def __deepcopy__(self, memo: object) -> TDim:
        return self

    @property
    def symbols(self) -> frozenset[str]:
        """The names of all symbols in it, at any depth."""
        try:
            return self._symbols
        except AttributeError:
            _keep(self, "_symbols", frozenset(_names(self)))
            return self._symbols

    def __str__(self) -> str:
        try:
            return self._text
        except AttributeError:
            from tract_core.dims.text import format_sum

            _keep(self, "_text", format_sum(self.terms, self.constant))
            return self._text

    def __repr__(self) -> str:
        return f"TDim({str(self)!r})"


Dim: TypeAlias = int | TDim
"""A size: known, or an expression over symbols."""

_keep = object.__setattr__


@lru_cache(maxsize=1024)
def symbol(name: str) -> TDim:
    """The size named ``name``, an integer that is 0 or more.

    Any text of 1 to 256 characters is a name. Raises DimError for other texts.
    """
    check_name(name)
    return TDim({(name,): 1}, 0)


def make_dim(terms: dict[Monomial, int], constant: int) -> Dim:
    """The sum of ``terms`` (canonical products, with factors that may be 0) and ``constant``; takes ``terms`` over."""
    if 0 in terms.values():
        terms = {product: factor for product, factor in terms.items() if factor}
    if not terms:
        return constant
    if len(terms) > MAX_TERMS:
        raise too_large(f"a sum of {len(terms)} terms, at most {MAX_TERMS} are allowed")
    return TDim(terms, constant)


def _integer(value: object) -> int | None:
    """``value`` as an ``int``, also where another library brought it; ``None`` where it is not one."""
    try:
        return index(value)  # pyright: ignore[reportArgumentType]  # the failure is the answer
    except TypeError:
        return None


def _add(left: TDim, right: TDim, sign: int) -> Dim:
    terms = dict(left.terms)
    for product, factor in right.terms.items():
        terms[product] = terms.get(product, 0) + sign * factor
    return make_dim(terms, left.constant + sign * right.constant)


def _multiply(left: TDim, right: TDim) -> Dim:
    if len(left.terms) * len(right.terms) > _MAX_PRODUCTS:
        raise too_large(f"a product of {len(left.terms)} by {len(right.terms)} terms")
    terms: dict[Monomial, int] = {}
    for a, m in left.terms.items():
        for b, n in right.terms.items():
            product = multiply_monomials(a, b)
            terms[product] = terms.get(product, 0) + m * n
        if right.constant:
            terms[a] = terms.get(a, 0) + m * right.constant
    if left.constant:
        for b, n in right.terms.items():
            terms[b] = terms.get(b, 0) + n * left.constant
    return make_dim(terms, left.constant * right.constant)


def _divisor(dividend: Dim, divisor: object) -> int:
    number = None if isinstance(divisor, TDim) else _integer(divisor)
    if number is None or number <= 0:
        raise _bad_divisor(dividend, divisor)
    return number


def _bad_divisor(dividend: object, divisor: object) -> DimError:
    return DimError(
        f"cannot divide {dividend} by {divisor}: a size is divided by a positive integer",
        hint="exact_div(a, b) divides by an expression where nothing is left over",
    )


def _floor_divide(dim: TDim, divisor: int) -> Dim:
    """``floor(dim / divisor)``, with the terms that divide evenly taken out of the rounding."""
    if divisor == 1:
        return dim
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    common = divisor
    for product, factor in dim.terms.items():
        if factor % divisor:
            rest[product] = factor
            common = gcd(common, factor)
        else:
            whole[product] = factor // divisor
    quotient, remainder = divmod(dim.constant, divisor)
    if not rest:
        return make_dim(whole, quotient)
    if common > 1:
        rest = {product: factor // common for product, factor in rest.items()}
        remainder //= common
        divisor //= common
    fraction = _proper_fraction(rest, remainder, divisor)
    return fraction if not whole and quotient == 0 else fraction + make_dim(whole, quotient)


def _proper_fraction(terms: dict[Monomial, int], constant: int, divisor: int) -> Dim:
    """The floor division of a sum with nothing left to take out; ``0 <= constant < divisor``."""
    if _leads_negative(terms):
        # floor(-x / n) = -ceil(x / n), so that S and -S share one form
        opposite = {product: -factor for product, factor in terms.items()}
        return -_proper_fraction(opposite, divisor - 1 - constant, divisor)
    inner = _only_division(terms)
    if inner is None:
        return factor_dim(Atom(Kind.DIV, (TDim(terms, constant), divisor)))
    # floor((floor(a / m) + b) / n) = floor((a + m * b) / (m * n)) for whole numbers a and b
    (inner_numerator, inner_divisor) = inner.args
    others = make_dim({product: factor for product, factor in terms.items() if product != (inner,)}, constant)
    merged = inner_numerator + others * inner_divisor
    return merged // (_divisor(merged, inner_divisor) * divisor)


def _leads_negative(terms: Mapping[Monomial, int]) -> bool:
    """Whether the opposite sum is the one to write; does not depend on the order of the terms."""
    total = sum(terms.values())
    return total < 0 or (total == 0 and terms[min(terms)] < 0)


def _only_division(terms: Mapping[Monomial, int]) -> Atom | None:
    """The division that stands alone with the factor 1, where there is exactly one."""
    found: Atom | None = None
    for product, factor in terms.items():
        first = product[0]
        if factor == 1 and len(product) == 1 and isinstance(first, Atom) and first.kind is Kind.DIV:
            if found is not None:
                return None
            found = first
    return found


def factor_dim(factor: Factor) -> TDim:
    """The size that is a symbol, or an operation, and nothing else."""
    return TDim({(factor,): 1}, 0)


def _names(dim: TDim) -> set[str]:
    names: set[str] = set()
    for product in dim.terms:
        for factor in product:
            names |= {factor} if isinstance(factor, str) else factor.symbols
    return names
