"""The axes of a sum of products, by what they are to a product of matrices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tract_core.dims import Dim, is_one
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.ops.einsum import EinSum


@frozen
class ProductAxes:
    """The axes by what they are, each by the name that the operator has for it.

    ``pairs``: in both factors and the result; ``rows``: in the left one and the result; ``columns``: in the right one
    and the result; ``inner``: summed. ``left``, ``right``: which input is which.
    """

    pairs: str
    rows: str
    columns: str
    inner: str
    left: int
    right: int

    def notes(self) -> Iterator[str]:
        """What they are."""
        named = {"pairs": self.pairs, "rows": self.rows, "columns": self.columns, "summed": self.inner}
        axes = ", ".join(f"{what} {names}" for what, names in named.items() if names)
        yield f"{axes or 'no axes'}; the left factor is input {self.left}"

    @staticmethod
    def of(op: EinSum, shapes: Sequence[Sequence[Dim]]) -> ProductAxes:
        """``op``: of two factors; ``shapes``: theirs, as `stretched_shapes` says."""
        terms, (output,) = op.axes.inputs, op.axes.outputs
        a, b = (_long(term, shape) for term, shape in zip(terms, shapes, strict=True))
        pairs = "".join(name for name in output if name in a and name in b)
        only = [
            "".join(name for name in output if name in own and name not in other) for own, other in ((a, b), (b, a))
        ]
        inner = "".join(name for name in terms[0] if name in a and name in b and name not in output)
        last = last_axis(output, a | b)
        left = 1 if last and last in only[0] else 0
        return ProductAxes(pairs, only[left], only[1 - left], inner, left, 1 - left)

    def with_right(self, slot: int) -> ProductAxes:
        """The axes of the product whose right factor is that input: transposed, if it was the left one."""
        if slot == self.right:
            return self
        return ProductAxes(self.pairs, self.columns, self.rows, self.inner, self.right, self.left)


def _long(term: str, shape: Sequence[Dim]) -> set[str]:
    return {name for name, size in zip(term, shape, strict=True) if not is_one(size)}


def last_axis(output: str, names: set[str]) -> str:
    """The last axis of the result that is one of some."""
    return next((name for name in reversed(output) if name in names), "")


def is_product_of_two(op: EinSum, facts: Sequence[TypedFact]) -> bool:
    """Whether a sum of products has two factors, no diagonals, and no sum over an axis of one factor only."""
    if len(facts) != 2 or any(len(set(term)) < len(term) for term in op.axes.inputs):
        return False
    terms, kept = op.axes.inputs, set(op.axes.outputs[0])
    return all(
        _long(term, fact.shape) <= kept | set(other)
        for term, fact, other in zip(terms, facts, terms[::-1], strict=True)
    )


def is_rows_by_matrix(op: EinSum, axes: ProductAxes) -> bool:
    """Whether the right factor is one matrix for all rows, whose columns are the last axis of the result."""
    (output,), term = op.axes.outputs, op.axes.inputs[axes.right]
    one_each = not axes.pairs and len(axes.inner) == len(axes.columns) == 1 and output[-1:] == axes.columns
    return one_each and sorted(term) == sorted(axes.inner + output[-1])


def stretched_shapes(op: EinSum, facts: Sequence[TypedFact]) -> list[list[Dim]]:
    """The factors. An axis is repeated where its size is 1, or turns out to be, and another one in the other factor.

    Not one of size 1 that the result has, as such an axis is none; symbolic sizes of one that is summed over are equal.
    """
    sizes, (output,) = op.sizes(facts), op.axes.outputs
    return [
        [sizes[name] if is_one(size) != (name in output) else size for name, size in zip(term, fact.shape, strict=True)]
        for term, fact in zip(op.axes.inputs, facts, strict=True)
    ]


def moves_only(op: EinSum, facts: Sequence[TypedFact], result: TypedFact) -> bool:
    """Whether there is one factor of the type of the result, of whose axes only some of size 1 are left out."""
    (fact, *others), (output,) = facts, op.axes.outputs
    left_out = [size for name, size in zip(op.axes.inputs[0], fact.shape, strict=True) if name not in output]
    return not others and fact.datum_type == result.datum_type and all(map(is_one, left_out))
