"""Weights of convolutions, in the order in which their kernel reads them.

They are packed once where they are part of the model, else in every run, by the same description: views on them, and
where each goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import cast

import numpy as np
from tract_llvm.language.types import ElementType, numpy_type
from tract_llvm.program.storages import NOWHERE
from tract_llvm.program.views import View, seen

from tract_core.data import DatumType
from tract_core.dims import Dim, ceil_div, product
from tract_core.frozen import frozen
from tract_core.plugins.keys import Array
from tract_cpu.aligned import lasting
from tract_cpu.draft.lowering import Lowering
from tract_cpu.kernels.dots import GROUPED, DotGrouping
from tract_cpu.products.dots import of_narrow


@frozen
class Weights:
    """``view``: output channels, input channels of a group, window.

    ``array``: the elements of its storage, one behind the other, where they are part of the model. ``element``: the
    type in which they are packed.
    """

    view: View
    element: ElementType
    array: Array | None = None

    @staticmethod
    def of_array(lowering: Lowering, array: Array) -> Weights | None:
        """Weights that are part of the model, however their axes lie; ``None`` where native code cannot read them."""
        order = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
        element = lowering.element(DatumType.from_numpy(array.dtype))
        plain = array.transpose(order)
        back = [order.index(axis) for axis in range(array.ndim)]
        view = element and View.contiguous(NOWHERE, element, plain.shape).transposed(back)
        return view and Weights(view, lowering.held(view.element), plain)

    @property
    def outputs(self) -> int:
        """How many output channels there are."""
        return cast("int", self.view.shape[0])  # whoever made it asked

    @property
    def inputs(self) -> Dim:
        """How many input channels a group has."""
        return self.view.shape[1]

    @property
    def window(self) -> tuple[int, ...]:
        """How many positions windows have along each axis."""
        return cast("tuple[int, ...]", self.view.shape[2:])

    @property
    def bytes(self) -> Dim:
        """What they take in memory."""
        return product(self.view.shape) * self.element.bytes

    def of_taps(self, axis: int, taps: Sequence[int]) -> Weights:
        """Those for some positions of the window along an axis, all as far apart."""
        apart = taps[1] - taps[0] if len(taps) > 1 else 1
        return replace(self, view=self.view.part(axis, taps[0] if taps else 0, len(taps), apart))


def packed(
    lowering: Lowering,
    weights: Weights,
    groups: int,
    width: int,
    block: int,
    *,
    grouping: DotGrouping | None = None,
    whole_blocks: bool = False,
) -> View:
    """The weights as [groups, runs of output channels, ...]: packed by now, or by steps that are added.

    ``width``: output channels of a run; ``block``: input channels that follow each other, of which ``grouping`` takes
    some together: of weights that are part of the model only. ``whole_blocks``: whether there are zeros for the
    channels that the last block of these lacks.
    """
    element = weights.element
    runs = ceil_div(weights.outputs // groups, width)
    if grouping is not None:
        even = block if whole_blocks else grouping.size
        return _in_groups(lowering, weights, (groups, int(runs), width), (block, even), grouping)
    shape = (groups, runs, weights.inputs * prod(weights.window) * width)
    if weights.array is not None:
        whole = View.contiguous(NOWHERE, element, shape)
        pairs = list(_pieces(weights.view, whole, width, block))
        return lowering.made(shape, element, lambda array: _arranged(array, whole, pairs), weights.array)
    whole = View.contiguous(lowering.room(product(shape) * element.bytes), element, shape)
    for source, target in _pieces(weights.view, whole, width, block):
        lowering.copy(source, target)
    return whole


def _in_groups(
    lowering: Lowering, weights: Weights, runs: tuple[int, int, int], blocks: tuple[int, int], grouping: DotGrouping
) -> View:
    """Weights in groups of input channels.

    ``runs``: groups of channels, runs of each, output channels of these. ``blocks``: how many input channels follow
    each other, and what their number is a multiple of.
    """
    assert weights.array is not None  # others are packed in no groups
    even = ceil_div(weights.inputs, blocks[1]) * blocks[1]
    steps = even // grouping.size * prod(weights.window) + int(grouping.flips)
    shape = (*runs[:2], steps * runs[2])

    def made(array: Array) -> Array:
        return _grouped(seen(weights.view, np.ascontiguousarray(array)), runs, blocks, grouping)

    return lowering.made(shape, GROUPED, made, weights.array)


def _grouped(array: Array, runs: tuple[int, int, int], blocks: tuple[int, int], grouping: DotGrouping) -> Array:
    """[output channels, input channels, window] as [groups, runs, places], a place for some neighbouring channels.

    Places are in the order in which they are read: blocks, window, channels of a block, output channels of a run.
    """
    (groups, count, width), (block, whole) = runs, blocks
    outputs, inputs, size = array.shape[0] // groups, array.shape[1], grouping.size
    plain = array.reshape(groups, outputs, inputs, -1)
    missing = ((0, 0), (0, count * width - outputs), (0, -inputs % whole), (0, 0))
    even = np.pad(of_narrow(plain, grouping.right), missing)
    even = even.reshape(groups, count, width, *even.shape[2:])
    parts: list[Array] = []
    for first, many, depth in _cuts(even.shape[3], block):
        part = even[:, :, :, int(first) : int(first + many * depth)]
        part = part.reshape(groups, count, width, many, depth // size, size, -1).transpose(0, 1, 3, 6, 4, 2, 5)
        parts.append(np.ascontiguousarray(part).view(np.int32).reshape(groups, count, -1))
    if grouping.flips:
        start = np.zeros((groups, count * width), np.int64)
        start[:, :outputs] = plain.sum(axis=(2, 3), dtype=np.int64) * grouping.half
        parts.insert(0, start.astype(np.int32).reshape(groups, count, width))
    found: Array = np.concatenate(parts, axis=2)
    return found


def _arranged(array: Array, whole: View, pairs: Sequence[tuple[View, View]]) -> Array:
    """An array for a view, with the pieces of another one in it, and zeros where these leave gaps."""
    source = np.ascontiguousarray(array)
    made = lasting(cast("tuple[int, ...]", whole.shape), numpy_type(whole.element))
    for out_of, into in pairs:
        seen(into, made)[...] = seen(out_of, source)
    return made


def _pieces(kernel: View, packed: View, width: int, block: int) -> Iterator[tuple[View, View]]:
    """Parts of the weights, and where these go, both as [groups, runs, blocks, window, input channels, width].

    What whole runs and whole blocks leave over are parts of their own.
    """
    groups, window = packed.shape[0], kernel.shape[2:]
    outputs, inputs, taps = kernel.shape[0] // cast("int", groups), kernel.shape[1], product(window)
    by_group = kernel.split(0, (groups, outputs))
    inner = range(5, 5 + len(window))
    for first, blocks, depth in _cuts(inputs, block):
        deep = by_group.part(2, first, blocks * depth).split(2, (blocks, depth))
        begin, size = first * taps * width, blocks * depth * taps * width
        read = packed.part(2, begin, size).split(2, (blocks, *window, depth, width))
        for output, runs, lanes in _cuts(outputs, width):
            source = deep.part(1, output, runs * lanes).split(1, (runs, lanes))
            target = read.part(1, output // width, runs).part(len(read.shape) - 1, 0, lanes)
            yield source.transposed([0, 1, 3, *inner, 4, 2]), target


def _cuts(size: Dim, block: int) -> list[tuple[Dim, Dim, Dim]]:
    """The whole blocks of an axis, then what is left over: where they begin, how many there are, how long each is."""
    whole, rest = size // block, size % block
    return [cut for cut in ((0, whole, block), (whole * block, 1, rest)) if cut[1] != 0 and cut[2] != 0]
