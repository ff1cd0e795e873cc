"""How sizes are printed.

What is printed can be parsed again to an equal expression. Terms come in the order in which they were first written,
the constant last; the factors of a product come sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tract_core.dims.atoms import Atom, Factor, Kind, Monomial
from tract_core.dims.names import write_name


def format_sum(terms: Mapping[Monomial, int], constant: int) -> str:
    """A sum of products, each with its factor, as text, such as ``2*S+1`` or ``(S+3)/4``; empty for 0."""
    text = "".join(_signed_term(product, factor) for product, factor in terms.items())
    if constant:
        text += f"{constant:+d}"
    if text.startswith("+"):
        return text[1:]
    product = next(iter(terms), None)
    if product is not None and terms[product] == -1 and _is_division(product):
        # A leading minus binds tighter than the division: -S/2 would be (-S)/2
        term = _term(product, 1)
        return f"-({term}){text[1 + len(term) :]}"
    return text


def _signed_term(product: Monomial, factor: int) -> str:
    return ("-" if factor < 0 else "+") + _term(product, abs(factor))


def _term(product: Monomial, factor: int) -> str:
    """``factor * product`` for a positive ``factor``."""
    if factor == 1 and len(product) == 1:
        return _factor(product[0])
    parts = [f"({_factor(part)})" if _is_division((part,)) else _factor(part) for part in product]
    return "*".join(parts if factor == 1 else [str(factor), *parts])


def _is_division(product: Monomial) -> bool:
    first = product[0]
    return len(product) == 1 and isinstance(first, Atom) and first.kind is Kind.DIV


def _factor(factor: Factor) -> str:
    return write_name(factor) if isinstance(factor, str) else _WRITERS[factor.kind](factor)


def _division(atom: Atom) -> str:
    numerator, divisor = atom.args
    alone = isinstance(numerator, int) or (len(numerator.terms) == 1 and numerator.constant == 0)
    text = str(numerator)
    return f"{text}/{divisor}" if alone else f"({text})/{divisor}"


def _call(atom: Atom) -> str:
    return f"{atom.kind}({','.join(map(str, atom.args))})"


def _broadcast(atom: Atom) -> str:
    return f"({'#'.join(map(str, atom.args))})"


def _comparison(atom: Atom) -> str:
    """Both sides without a minus: ``S-P-1`` compared to 0 is written as ``S`` compared to ``P+1``."""
    (difference,) = atom.args
    terms: Mapping[Monomial, int] = {} if isinstance(difference, int) else difference.terms
    constant = difference if isinstance(difference, int) else difference.constant
    left = format_sum({product: factor for product, factor in terms.items() if factor > 0}, max(constant, 0))
    right = format_sum({product: -factor for product, factor in terms.items() if factor < 0}, max(-constant, 0))
    return f"({left or 0}{atom.kind}{right or 0})"


_WRITERS: dict[Kind, Callable[[Atom], str]] = {
    Kind.DIV: _division,
    Kind.MIN: _call,
    Kind.MAX: _call,
    Kind.BROADCAST: _broadcast,
    Kind.GE: _comparison,
    Kind.EQ: _comparison,
}
