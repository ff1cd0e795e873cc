"""Build minima, maxima, broadcasts and comparisons of sizes in canonical form.

What can be decided is decided here: an argument that another one dominates goes away, a comparison whose answer is
certain becomes 1 or 0. ``known`` says what may be relied on besides that symbols are 0 or more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import gcd
from typing import Literal, TypeAlias

from tract_core.dims.atoms import MAX_ARGUMENTS, Atom, Kind, dim_key, too_large, weight_of
from tract_core.dims.intervals import at_least, at_most, is_never_negative
from tract_core.dims.known import NOTHING, KnownSizes, single_atom
from tract_core.dims.remainder import remainder
from tract_core.dims.tdim import Dim, TDim, factor_dim
from tract_core.errors import DimError

Comparison: TypeAlias = Literal["==", "<=", ">=", "<", ">"]
COMPARISONS: dict[str, Comparison] = {"==": "==", "<=": "<=", ">=": ">=", "<": "<", ">": ">"}
"""Every comparison by its text, for those that read it."""


def dim_min(*dims: Dim) -> Dim:
    """The smallest of ``dims``, which are one or more. Raises DimError for none."""
    return _extremum(Kind.MIN, dims, NOTHING)


def dim_max(*dims: Dim) -> Dim:
    """The largest of ``dims``, which are one or more. Raises DimError for none."""
    return _extremum(Kind.MAX, dims, NOTHING)


def broadcast(a: Dim, b: Dim) -> Dim:
    """The size of an axis when tensors of sizes ``a`` and ``b`` on that axis are combined element by element.

    1 gives way to the other size. A number other than 1 wins over an expression, which must be equal to it or 1 when
    the model runs. Raises DimError for two different numbers of which neither is 1.
    """
    if isinstance(a, int) and isinstance(b, int):
        return _broadcast_numbers(a, b)
    return _broadcast((a, b), NOTHING)


def comparison(a: Dim, op: Comparison, b: Dim) -> Dim:
    """1 where ``a op b`` holds, else 0; ``op`` is one of ``== <= >= < >``. Raises DimError for another ``op``."""
    build = _is_zero if op == "==" else _is_not_negative
    return build((comparison_difference(a, op, b),), NOTHING)


def comparison_difference(a: Dim, op: Comparison, b: Dim) -> Dim:
    """The size that is 0 where ``a == b``, for the other comparisons the one that is 0 or more where they hold.

    Raises DimError for an unknown ``op``.
    """
    difference = _DIFFERENCES.get(op)
    if difference is None:
        raise DimError(f"found the comparison {op!r}", hint=f"known comparisons are {' '.join(COMPARISONS)}")
    return difference(a, b)


def rebuild(kind: Kind, args: Sequence[Dim], known: KnownSizes = NOTHING) -> Dim:
    """The operation ``kind`` on ``args``, in canonical form, decided as far as ``known`` allows."""
    return _BUILDERS[kind](args, known)


_DIFFERENCES: dict[str, Callable[[Dim, Dim], Dim]] = {
    "==": lambda a, b: a - b,
    ">=": lambda a, b: a - b,
    "<=": lambda a, b: b - a,
    ">": lambda a, b: a - b - 1,
    "<": lambda a, b: b - a - 1,
}


def _divide(args: Sequence[Dim], known: KnownSizes) -> Dim:
    """A quotient that is the same at both ends of what the dividend can be is a number; known rests are left out."""
    dividend, divisor = args
    if not isinstance(divisor, int) or divisor <= 0:
        raise DimError(f"cannot divide by {divisor}", hint="a size is divided by a positive integer")
    low = at_least(dividend, known) if known is not NOTHING else None
    high = at_most(dividend, known) if low is not None else None
    if low is not None and high is not None and low // divisor == high // divisor:
        return low // divisor
    left_over = remainder(dividend, divisor, known) if known.remainders else None
    return (dividend - (left_over or 0)) // divisor


def _smallest(args: Sequence[Dim], known: KnownSizes) -> Dim:
    return _extremum(Kind.MIN, args, known)


def _largest(args: Sequence[Dim], known: KnownSizes) -> Dim:
    return _extremum(Kind.MAX, args, known)


def _extremum(kind: Literal[Kind.MIN, Kind.MAX], args: Sequence[Dim], known: KnownSizes) -> Dim:
    if not args:
        raise DimError(f"{kind}() has no arguments", hint=f"give it one size or more, as in {kind}(S,4)")
    kept: list[Dim] = []
    for arg in _arguments(kind, args):
        _keep_extreme(kept, arg, kind, known)
    return kept[0] if len(kept) == 1 else _apply(kind, kept)


def _keep_extreme(kept: list[Dim], arg: Dim, kind: Kind, known: KnownSizes) -> None:
    """Add ``arg`` to ``kept`` unless one there dominates it; take out those that it dominates."""
    for position in reversed(range(len(kept))):
        ahead, behind = (kept[position], arg) if kind is Kind.MAX else (arg, kept[position])
        keep_other = is_never_negative(ahead - behind, known)
        keep_this = is_never_negative(behind - ahead, known)
        if keep_other and keep_this:
            # Always equal, of two forms: the choice must not depend on the order.
            keep_other = dim_key(kept[position]) <= dim_key(arg)
        if keep_other:
            return
        if keep_this:
            del kept[position]
    kept.append(arg)


def _broadcast(args: Sequence[Dim], known: KnownSizes) -> Dim:
    numbers = 1
    symbolic: list[Dim] = []
    for arg in _arguments(Kind.BROADCAST, args):
        if isinstance(arg, int):
            numbers = _broadcast_numbers(numbers, arg)
        else:
            symbolic.append(arg)
    if numbers != 1 or not symbolic:
        for arg in symbolic:
            _check_can_broadcast(arg, numbers, known)
        return numbers
    if known is not NOTHING:
        symbolic = _left_to_choose(symbolic, known)
    return symbolic[0] if len(symbolic) == 1 else _apply(Kind.BROADCAST, symbolic)


def _left_to_choose(args: list[Dim], known: KnownSizes) -> list[Dim]:
    """Those of which one can be the broadcast of all.

    One that is 2 or more is it, as all others must equal it or be 1. Of those that are equal, the simplest one stays.
    """
    kept: list[Dim] = []
    for arg in sorted(args, key=_complexity):
        if is_never_negative(arg - 2, known):
            return [arg]
        if not any(_always_equal(arg, other, known) for other in kept):
            kept.append(arg)
    return [arg for arg in args if arg in kept]


def _always_equal(a: Dim, b: Dim, known: KnownSizes) -> bool:
    return is_never_negative(a - b, known) and is_never_negative(b - a, known)


def _complexity(dim: Dim) -> tuple[int, bool, str]:
    """Sorts sizes: simple ones first."""
    return weight_of(dim), isinstance(dim, TDim) and dim.constant != 0, dim_key(dim)


def _check_can_broadcast(dim: Dim, number: int, known: KnownSizes) -> None:
    """Raises DimError where ``dim`` can be neither ``number`` nor 1."""
    low, high = at_least(dim, known), at_most(dim, known)
    too_large = low is not None and low > max(number, 1)
    too_small = high is not None and high < min(number, 1)
    if too_large or too_small or (low is not None and low == high and low not in (number, 1)):
        raise DimError(
            f"cannot broadcast sizes {dim} and {number}: they cannot be equal, and neither can be 1",
            hint="reshape or slice one of the operands so that the sizes agree",
        )


def _broadcast_numbers(a: int, b: int) -> int:
    if b in (a, 1):
        return a
    if a == 1:
        return b
    raise DimError(
        f"cannot broadcast sizes {a} and {b}: they differ and neither is 1",
        hint="reshape or slice one of the operands so that the sizes agree",
    )


def _is_not_negative(args: Sequence[Dim], known: KnownSizes) -> Dim:
    """``g*x + c >= 0`` holds where ``x + floor(c / g) >= 0`` does."""
    (difference,) = args
    if isinstance(difference, int):
        return int(difference >= 0)
    reduced = _divide_exactly(difference, gcd(*difference.terms.values()))
    if is_never_negative(reduced, known):
        return 1
    return 0 if is_never_negative(-reduced - 1, known) else _apply(Kind.GE, [reduced])


def _is_zero(args: Sequence[Dim], known: KnownSizes) -> Dim:
    (difference,) = args
    if isinstance(difference, int):
        return int(difference == 0)
    common = gcd(*difference.terms.values())
    if difference.constant % common:
        return 0
    reduced = _divide_exactly(difference, common)
    if min(reduced.terms.items())[1] < 0:
        reduced = -reduced
    low, high = at_least(reduced, known), at_most(reduced, known)
    if low == high == 0:
        return 1
    never = (low is not None and low > 0) or (high is not None and high < 0)
    return 0 if never else _apply(Kind.EQ, [reduced])


def _divide_exactly(dim: TDim, divisor: int) -> TDim:
    """``dim / divisor``, which divides every term; the constant is rounded down."""
    if divisor == 1:
        return dim
    return TDim({product: factor // divisor for product, factor in dim.terms.items()}, dim.constant // divisor)


def _arguments(kind: Kind, args: Sequence[Dim]) -> list[Dim]:
    """``args`` without repetitions; an argument that is itself a ``kind`` is replaced by its own arguments."""
    flat: dict[Dim, None] = {}
    for arg in args:
        atom = single_atom(arg)
        for part in atom.args if atom is not None and atom.kind is kind else (arg,):
            flat[part] = None
    if len(flat) > MAX_ARGUMENTS:
        raise too_large(f"{kind} of {len(flat)} sizes, at most {MAX_ARGUMENTS} are allowed")
    return list(flat)


def _apply(kind: Kind, args: Sequence[Dim]) -> TDim:
    return factor_dim(Atom(kind, tuple(args)))


_BUILDERS: dict[Kind, Callable[[Sequence[Dim], KnownSizes], Dim]] = {
    Kind.DIV: _divide,
    Kind.MIN: _smallest,
    Kind.MAX: _largest,
    Kind.BROADCAST: _broadcast,
    Kind.GE: _is_not_negative,
    Kind.EQ: _is_zero,
}
