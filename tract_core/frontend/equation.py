"""Sums of products written as text, as ``"ij,jk->ik"``: what einsum takes in NumPy and all frontends."""

from __future__ import annotations

from tract_core.errors import CorruptModel
from tract_core.model.axes import AxesMapping, letters


def parse_equation(equation: str, ranks: list[int]) -> AxesMapping:
    """The mapping that an expression names, for inputs of these ranks.

    ``...`` stands for the axes that have no name, aligned at the last; without an output, that is these and the names
    that occur once, in alphabetical order. Raises CorruptModel when the expression does not fit the inputs.
    """
    text = "".join(equation.split())
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks) or any(not _is_term(term) for term in (*terms, right)):
        raise CorruptModel(f"the equation {equation[:200]!r} does not fit {len(ranks)} inputs")
    unnamed = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    for term, count, rank in zip(terms, unnamed, ranks, strict=True):
        if count < 0 or (count > 0 and "..." not in term):
            raise CorruptModel(f"the term {term[:80]!r} of {equation[:200]!r} does not fit an input of {rank} axes")
    fresh = (name for name in letters() if name not in text)
    batch = "".join(next(fresh) for _ in range(max(unnamed)))
    inputs = [term.replace("...", batch[len(batch) - count :]) for term, count in zip(terms, unnamed, strict=True)]
    if not arrow:
        names = sorted(set(left) - set(".,"))
        right = "..." + "".join(name for name in names if left.count(name) == 1)
    output = right.replace("...", batch)
    if len(set(output)) < len(output) or not set(output) <= set("".join(inputs)):
        raise CorruptModel(f"the output of {equation[:200]!r} has an axis twice, or one that no input has")
    return AxesMapping(tuple(inputs), (output,))


def _is_term(term: str) -> bool:
    named = term.replace("...", "", 1)
    return named.isascii() and (named == "" or named.isalpha())
