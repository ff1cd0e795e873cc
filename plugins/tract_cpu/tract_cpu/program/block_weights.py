"""Weights in blocks that are part of a program, in panels as `tract_cpu.kernels.in_blocks.weights` reads them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
from tract_llvm.language.types import U8, ElementType, numpy_type

from tract_core.frozen import frozen
from tract_core.plugins.keys import Array
from tract_cpu.aligned import lasting
from tract_cpu.kernels.in_blocks.weights import GROUP, WORD, BlockForm, place_of

_AT_ONCE: Final = 1 << 22
"""How many codes are taken apart at once, at the most: each takes a byte meanwhile."""


class BlockParts(NamedTuple):
    """What some columns of weights are made of.

    ``codes``: of 8 bits [columns, depth], of which as many of the lowest count as the form says; ``heads``: scales
    [columns, blocks], and offsets if there are such; ``tops``: what some blocks have in common, likewise.
    """

    codes: Array
    heads: tuple[Array, ...]
    tops: tuple[Array, ...] = ()


@frozen
class BlockWeights:
    """Matrices in blocks along the axis that is summed, part of the model. ``columns``, ``depth``: sizes of each.

    ``source``: the array that most of them lies in; ``parts``: of some columns, ``(first, last)``, where those of one
    matrix follow those of the one before. ``matrices``: how many there are.
    """

    form: BlockForm
    columns: int
    depth: int
    source: Array
    parts: Callable[[int, int], BlockParts]
    matrices: int = 1

    def shape(self, width: int) -> tuple[int, int, int]:
        """Of panels of so many columns: panels of all matrices, blocks with a scale in common, bytes of these."""
        form = self.form
        return self.matrices * -(-self.columns // width), self.depth // (form.length * form.over), width * form.whole


@frozen
class NarrowWeights:
    """A matrix [columns, depth], or several, of f16 or bf16, part of the model, which stands for numbers in f32."""

    array: Array


def in_block_panels(weights: BlockWeights, width: int) -> Array:
    """Panels of ``width`` columns, bytes of a shape as `BlockWeights.shape` says. What the last one lacks is zeros.

    Panels of a matrix are followed by those of the next one.
    """
    made, columns, matrices = lasting(weights.shape(width), np.uint8), weights.columns, weights.matrices
    if not columns % width:
        columns, matrices = columns * matrices, 1  # as if they were one
    panels = -(-columns // width)
    for matrix in range(matrices):
        _lay(weights, width, range(matrix * columns, (matrix + 1) * columns), made[matrix * panels :][:panels])
    return made


def _lay(weights: BlockWeights, width: int, columns: range, made: Array) -> None:
    """Panels of some columns, one after the other."""
    form, count = weights.form, len(made)
    step = max(_AT_ONCE // max(weights.depth * width, 1), 1)
    for first in range(0, count, step):
        last = min(first + step, count)
        mine = columns[first * width : last * width]
        parts = weights.parts(mine.start, mine.stop)
        kinds = [form.scale] if form.offset is None else [form.scale, form.offset]
        heads = [_line(one, width, kind) for one, kind in zip(parts.heads, kinds, strict=True)]
        blocks = np.concatenate([*heads, _lines(_words(parts.codes, form), width, heads[0].shape[1])], axis=2)
        blocks = blocks.reshape(last - first, made.shape[1], form.over * blocks.shape[2])
        tops = [_line(one, width, form.top) for one in parts.tops]
        np.concatenate([*tops, blocks], axis=2, out=made[first:last])


def _line(numbers: Array, width: int, element: ElementType) -> Array:
    """[columns, blocks] as bytes [panels, blocks, of a line]."""
    return _lines(np.asarray(numbers, numpy_type(element)), width, numbers.shape[1])


def _words(codes: Array, form: BlockForm) -> Array:
    """[columns, depth] as words [columns, words], unit by unit, and in each plane by plane."""
    columns, found, shift = len(codes), list[Array](), 0
    for bits in form.planes:
        each = WORD // bits
        plane = codes.view(np.uint8) >> shift if shift else codes.view(np.uint8)
        plane = plane if bits == U8.bits else plane & ((1 << bits) - 1)
        groups = np.ascontiguousarray(plane).view("<u4").reshape(columns, -1, form.unit // each, each // GROUP)
        words = groups[..., 0].copy()
        for number in range(1, groups.shape[-1]):
            words |= groups[..., number] << place_of(number * GROUP, bits)
        found.append(words)
        shift += bits
    return found[0].reshape(columns, -1) if len(found) == 1 else np.concatenate(found, axis=2).reshape(columns, -1)


def _lines(numbers: Array, width: int, blocks: int) -> Array:
    """[columns, numbers] as bytes [panels, blocks, lines of them]."""
    filled = np.pad(numbers, ((0, -len(numbers) % width), (0, 0)))
    lines = filled.reshape(-1, width, blocks, numbers.shape[1] // blocks).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(lines).view(np.uint8).reshape(len(lines), blocks, -1)
