"""Weights in blocks, laid out in panels as `tract_cpu.kernels.block_weights` reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from tract_llvm.language.types import numpy_type

from tract_core.frozen import frozen
from tract_core.plugins.keys import Array
from tract_cpu.aligned import lasting
from tract_cpu.kernels.block_weights import BlockForm

_AT_ONCE: Final = 1 << 22
"""How many codes are taken apart at once, at the most: each takes a byte meanwhile."""

Parts = tuple[Array, Array, Array | None]
"""Codes of 8 bits [columns, depth], scales [columns, blocks], and offsets, in the types of the form."""


@frozen
class BlockWeights:
    """A matrix in blocks along the axis that is summed, part of the model. ``columns``, ``depth``: its sizes.

    ``source``: the array that most of it lies in; ``parts``: of it, those of some columns, ``(first, last)``. Codes
    are integers of 8 bits, of which the lowest bits count.
    """

    form: BlockForm
    columns: int
    depth: int
    source: Array
    parts: Callable[[int, int], Parts]


def in_block_panels(weights: BlockWeights, width: int) -> Array:
    """Panels of ``width`` columns: bytes [panels, blocks, of a block]. Columns that the last one lacks are zeros."""
    form, columns = weights.form, weights.columns
    panels, blocks = -(-columns // width), weights.depth // form.length
    made = lasting((panels, blocks, width * form.size), np.uint8)
    step = max(_AT_ONCE // max(weights.depth * width, 1), 1)
    for first in range(0, panels, step):
        last = min(first + step, panels)
        codes, scale, offset = weights.parts(first * width, min(last * width, columns))
        part, start = made[first:last], width * form.scale.bytes
        part[..., :start] = _heads(scale, width, numpy_type(form.scale))
        if offset is not None and form.offset is not None:
            part[..., start : width * form.head] = _heads(offset, width, numpy_type(form.offset))
        part[..., width * form.head :] = _lines(_words(codes, form), width, blocks)
    return made


def _heads(numbers: Array, width: int, kind: np.dtype[np.generic]) -> Array:
    """[columns, blocks] as bytes [panels, blocks, of a line]."""
    filled = _whole(np.asarray(numbers, kind), width)
    lines = filled.reshape(-1, width, filled.shape[1]).transpose(0, 2, 1)
    return np.ascontiguousarray(lines).view(np.uint8)


def _words(codes: Array, form: BlockForm) -> Array:
    """[columns, depth] as words [columns, words]."""
    several = codes.view(np.uint8).reshape(len(codes), -1, form.codes)
    if form.bits == 8:
        return np.ascontiguousarray(several).view("<u4")[..., 0]
    both = (several[..., :4] & 15) | several[..., 4:] << 4
    return np.ascontiguousarray(both).view("<u4")[..., 0]


def _lines(words: Array, width: int, blocks: int) -> Array:
    """Words [columns, words] as bytes [panels, blocks, lines of them]."""
    filled = _whole(words, width)
    lines = filled.reshape(-1, width, blocks, words.shape[1] // blocks).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(lines).view(np.uint8).reshape(len(lines), blocks, -1)


def _whole(rows: Array, width: int) -> Array:
    """With zeros behind, so that there are whole panels."""
    return np.pad(rows, ((0, -len(rows) % width), (0, 0)))
