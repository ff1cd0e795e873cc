"""Matrices of small integers, or of narrow floats, with scales beside them: what folders hold that were quantised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from math import gcd
from typing import Final

import numpy as np

from tract_core.data.blocks import Blocks
from tract_core.errors import TractError, Unsupported
from tract_core.frozen import frozen
from tract_core.plugins.keys import Array

LEAST_BLOCK: Final = 16
"""Shorter blocks are not made of longer ones: scales would take as much memory as what they scale."""


@frozen
class Quantised:
    """The matrix ``(codes - zero) * scale``, [N,K], with a scale and a zero for ``block`` neighbours of a row each.

    ``codes``: [N,K], integers or narrow floats. ``scale``: floats [N, ceil(K / block)]; ``zero``: likewise, of the
    type of codes. ``order``: the column of the matrix that each of codes is; ``None`` where they lie in order. Several
    matrices together have an axis more, the first one.
    """

    codes: Array = field(compare=False, repr=False)
    scale: Array = field(compare=False, repr=False)
    zero: Array = field(compare=False, repr=False)
    block: int
    order: Array | None = field(default=None, compare=False, repr=False)

    def in_whole_blocks(self) -> Quantised:
        """The same, in shorter blocks where a row ends in the middle of one, unless these would be very short."""
        columns = self.codes.shape[1]
        block = gcd(self.block, columns)
        if block == self.block or (block < LEAST_BLOCK and block < columns):
            return self
        scale, zero = (
            np.repeat(one, self.block // block, axis=1)[:, : columns // block] for one in (self.scale, self.zero)
        )
        return replace(self, scale=scale, zero=zero, block=block)

    def rows(self, numbers: Array) -> Quantised:
        """The rows of these numbers, in that order."""
        codes, scale, zero = (one[numbers] for one in (self.codes, self.scale, self.zero))
        return replace(self, codes=codes, scale=scale, zero=zero)


def together(parts: Sequence[Quantised]) -> Quantised:
    """Several matrices of the same sizes. Raises Unsupported where they were not quantised in the same way."""
    first = parts[0]
    if any(one.order is not None for one in parts):
        raise Unsupported("several matrices have columns in other orders, which products do not follow")
    if len({(one.block, one.codes.dtype, one.scale.dtype) for one in parts}) > 1:
        raise Unsupported("several matrices that belong together are quantised to other types, or by other groups")
    codes, scale, zero = (np.stack([getattr(one, name) for one in parts]) for name in ("codes", "scale", "zero"))
    return replace(first, codes=codes, scale=scale, zero=zero)


@frozen
class QuantisedTensor:
    """A tensor of a folder. ``name``, ``shape``: of it; ``kind``: the method; ``make``: what takes its parts apart."""

    name: str
    kind: str
    shape: tuple[int, ...]
    make: Callable[[], Quantised | Blocks] = field(compare=False, repr=False)

    def stored(self) -> Quantised | Blocks:
        """The matrix: codes in a byte each are made of those that share words. Raises ModelError."""
        try:
            return self.make()
        except TractError as error:
            raise error.at(f"tensor {self.name!r:.80}") from error.__cause__

    def rows(self, numbers: Array) -> QuantisedTensor:
        """The rows of these numbers, in that order. Raises ModelError where they cannot be taken, when it is asked."""

        def make() -> Quantised:
            found = self.make()
            if isinstance(found, Blocks):
                raise Unsupported(f"rows of blocks of {found.format.name} are not taken")
            return found.rows(numbers)

        return replace(self, make=make)
