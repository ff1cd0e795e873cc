"""Weights in blocks that are part of a program, in panels as `tract_cpu.kernels.in_blocks.weights` reads them."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import CFUNCTYPE, c_int64, c_void_p
from functools import cache
from typing import Any, Final, NamedTuple

import numpy as np
from tract_llvm.isa import chosen, of_this_machine
from tract_llvm.language.types import ElementType, numpy_type
from tract_llvm.objects.library import library_of

from tract_core.frozen import frozen
from tract_core.plugins.keys import Array
from tract_cpu.aligned import lasting
from tract_cpu.kernels.code import code_of
from tract_cpu.kernels.in_blocks.lay import CodesForm, LayCodesPlan
from tract_cpu.kernels.in_blocks.weights import BlockForm
from tract_cpu.program.arguments import arguments

_AT_ONCE: Final = 1 << 22
"""How many codes are taken apart at once, at the most: each takes a byte meanwhile."""


class StoredCodes(NamedTuple):
    """Codes as files have them. ``blocks``: bytes [columns, blocks, bytes of a block], in which ``form`` finds them."""

    form: CodesForm
    blocks: Array


class BlockParts(NamedTuple):
    """What some columns of weights are made of.

    ``codes``: of 8 bits [columns, depth], of which as many of the lowest count as the form says, or as they are stored;
    ``heads``: scales [columns, blocks], and offsets if there are such; ``tops``: what some blocks have in common,
    likewise.
    """

    codes: Array | StoredCodes
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
    count = len(made)
    step = max(_AT_ONCE // max(weights.depth * width, 1), 1)
    for first in range(0, count, step):
        last = min(first + step, count)
        mine = columns[first * width : last * width]
        parts = weights.parts(mine.start, mine.stop)
        _lay_heads(weights.form, width, parts, made[first:last])
        _lay_codes(weights.form, width, parts.codes, made[first:last])


def _lay_heads(form: BlockForm, width: int, parts: BlockParts, made: Array) -> None:
    """Scales and offsets, in front of the codes of their blocks, and those that some blocks have in common."""
    kinds = [form.scale] if form.offset is None else [form.scale, form.offset]
    heads = [_line(one, width, kind) for one, kind in zip(parts.heads, kinds, strict=True)]
    above, panels = width * form.above, made.reshape(*made.shape[:2], -1)
    blocks = panels[..., above:].reshape(*made.shape[:2], form.over, width * form.size)
    place = 0
    for one in heads:
        blocks[..., place : place + one.shape[-1]] = one.reshape(*blocks.shape[:3], -1)
        place += one.shape[-1]
    place = 0
    for one in (_line(top, width, form.top) for top in parts.tops):
        panels[..., place : place + one.shape[-1]] = one
        place += one.shape[-1]


def _lay_codes(form: BlockForm, width: int, codes: Array | StoredCodes, made: Array) -> None:
    """Codes as words, by native code of this machine."""
    if not isinstance(codes, StoredCodes):
        plain = np.ascontiguousarray(codes).view(np.uint8)
        codes = StoredCodes(CodesForm.plain(form.length), plain.reshape(len(plain), -1, form.length))
    plan, (columns, blocks, _) = LayCodesPlan(codes.form, form, width), codes.blocks.shape
    source = np.ascontiguousarray(codes.blocks)
    places = {"source": source.ctypes.data, "panels": made.ctypes.data}
    given = np.array(arguments(plan, columns=columns, blocks=blocks, **places), np.int64)
    kernel: Any = CFUNCTYPE(None, c_void_p, c_int64, c_int64, c_void_p, c_void_p)(_address(plan))
    kernel(given.ctypes.data, 0, len(made), None, None)


@cache
def _address(plan: LayCodesPlan) -> int:
    """The native function. Raises Unsupported where there is none for this machine, whatever a program is made for."""
    chosen("")
    isa = [one for one in of_this_machine() if not one.tiles][-1]  # of which the kernel has no use
    return library_of(isa).address(code_of(plan, isa))


def _line(numbers: Array, width: int, element: ElementType) -> Array:
    """[columns, blocks] as bytes [panels, blocks, of a line]."""
    filled = np.asarray(numbers, numpy_type(element))
    if len(filled) % width:
        filled = np.pad(filled, ((0, -len(filled) % width), (0, 0)))
    lines = np.ascontiguousarray(filled.reshape(-1, width, numbers.shape[1]).swapaxes(1, 2))
    return lines.view(np.uint8).reshape(*lines.shape[:2], -1)
