"""Go through a size, and put other sizes in the place of its symbols."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

from tract_core.dims.atoms import BOOLEAN, Atom, Factor, Monomial
from tract_core.dims.build import rebuild
from tract_core.dims.known import NOTHING, KnownSizes, single_atom
from tract_core.dims.remainder import without_whole_divisions
from tract_core.dims.tdim import Dim, TDim, factor_dim


def comparisons_in(dim: Dim) -> Iterator[Atom]:
    """The comparisons in a size, at any depth."""
    if isinstance(dim, TDim):
        for product in dim.terms:
            for factor in product:
                if isinstance(factor, Atom):
                    if factor.kind in BOOLEAN:
                        yield factor
                    for arg in factor.args:
                        yield from comparisons_in(arg)


def substitute(dim: Dim, mapping: Mapping[str, Dim]) -> Dim:
    """``dim`` with sizes in the place of symbols, all at the same time; other symbols stay.

    Raises DimError where a broadcast gets two different numbers, or the result grows too large.
    """
    return rewrite(dim, mapping)


def with_factor_replaced(dim: TDim, factor: Factor, by: Dim) -> Dim:
    """``dim`` with ``by`` in the place of ``factor`` where that is multiplied or added, not inside of operations."""
    result: Dim = dim.constant
    for term, many in dim.terms.items():
        product: Dim = many
        for one in term:
            product = product * (by if one == factor else factor_dim(one))
        result = result + product
    return result


class Values(Protocol):
    """What stands for symbols, and where anything is known of sizes also for operations."""

    def get(self, key: Any, /) -> Dim | None:
        """What stands for a symbol or an operation, if anything does."""
        ...


def rewrite(dim: Dim, mapping: Values, known: KnownSizes = NOTHING) -> Dim:
    """``substitute``, also for operations, and decide what ``known`` allows to decide."""
    if isinstance(dim, int):
        return dim
    result: Dim = dim.constant
    same: dict[Monomial, int] = {}
    changed = False
    for product, factor in dim.terms.items():
        replaced = _rewrite_product(product, mapping, known)
        if replaced is None:
            same[product] = factor
            continue
        changed = True
        if same:
            result, same = result + TDim(same, 0), {}
        result = result + replaced * factor
    if not changed:
        return without_whole_divisions(dim, known)
    return without_whole_divisions(result + TDim(same, 0) if same else result, known)


def _rewrite_product(product: Monomial, mapping: Values, known: KnownSizes) -> Dim | None:
    """``None`` where nothing changes."""
    replaced = [_rewrite_factor(factor, mapping, known) for factor in product]
    if all(part is None for part in replaced):
        return None
    result: Dim = 1
    for factor, part in zip(product, replaced, strict=True):
        result = result * (factor_dim(factor) if part is None else part)
    return result


def _rewrite_factor(factor: Factor, mapping: Values, known: KnownSizes) -> Dim | None:
    if isinstance(factor, str):
        return mapping.get(factor)
    if known is NOTHING:
        args = [rewrite(arg, mapping) for arg in factor.args]
        same = all(new is old for new, old in zip(args, factor.args, strict=True))
        return None if same else rebuild(factor.kind, args)
    rebuilt = rebuild(factor.kind, [rewrite(arg, mapping, known) for arg in factor.args], known)
    atom = single_atom(rebuilt)
    stands_for = None if atom is None else mapping.get(atom)
    return rebuilt if stands_for is None else stands_for
