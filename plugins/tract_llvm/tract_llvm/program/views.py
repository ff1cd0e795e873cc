"""Where tensors are: pieces of memory, and views on them with strides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.dims import Dim, comparison, evaluate, is_one, product
from tract_core.frozen import frozen, replaced
from tract_llvm.language.types import U8, ElementType, bits_of, complex_of, numpy_type, part_of
from tract_llvm.program.loops import collapsed
from tract_llvm.program.storages import Address, Storage

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array


@frozen
class View:
    """A tensor in memory, of a shape. ``strides``: in elements, 0 along axes that repeat; ``offset``: in elements."""

    storage: Storage
    element: ElementType
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]
    offset: Dim = 0

    @staticmethod
    def contiguous(storage: Storage, element: ElementType, shape: Sequence[Dim]) -> View:
        """A tensor without gaps, the last axis innermost."""
        return View(storage, element, tuple(shape), contiguous_strides(shape))

    @property
    def address(self) -> Address:
        """Of the first element."""
        return Address(self.storage, self.offset * self.element.bytes)

    @property
    def is_contiguous(self) -> bool:
        """Whether it surely has no gaps."""
        wanted = contiguous_strides(self.shape)
        pairs = zip(self.shape, self.strides, wanted, strict=True)
        return all(is_one(size) or stride == right for size, stride, right in pairs)

    @property
    def is_near(self) -> bool:
        """Whether neighbours along the last axis surely lie side by side, or are one element."""
        long = [stride for size, stride in zip(self.shape, self.strides, strict=True) if not is_one(size)]
        return not long or long[-1] in {0, 1}

    def shaped(self, shape: Sequence[Dim]) -> View | None:
        """The same elements in another shape, where that needs no copy for sure."""
        if self.is_contiguous:
            return replaced(self, shape=tuple(shape), strides=contiguous_strides(shape))
        strides: list[Dim] = []
        for before, after in _groups(self.shape, shape):
            run = collapsed(self.shape[before], [self.strides[before]])
            if len(run) > 1:
                return None
            step = run[0].strides[0] if run else 1
            strides += [one * step for one in contiguous_strides(shape[after])]
        return replaced(self, shape=tuple(shape), strides=tuple(strides))

    def transposed(self, order: Sequence[int]) -> View:
        """With its axes in another order."""
        return replaced(
            self, shape=tuple(self.shape[one] for one in order), strides=tuple(self.strides[one] for one in order)
        )

    def stretched(self, shape: Sequence[Dim]) -> View:
        """Seen in a larger shape: axes of size 1 are repeated, and there may be more axes in front.

        A symbolic size may be 1 or not: then the stride tells, once it has its value.
        """
        added = len(shape) - len(self.shape)
        strides: list[Dim] = [0] * added
        for size, stride, wanted in zip(self.shape, self.strides, shape[added:], strict=True):
            stays = 0 if is_one(size) else 1 if size == wanted else comparison(size, ">", 1)
            strides.append(stride * stays)
        return replaced(self, shape=tuple(shape), strides=tuple(strides))

    def part(self, axis: int, start: Dim, size: Dim, step: int = 1) -> View:
        """``size`` positions of an axis, from ``start`` on, in steps that may be negative."""
        shape, strides = list(self.shape), list(self.strides)
        offset = self.offset + start * strides[axis]
        shape[axis], strides[axis] = size, strides[axis] * step
        return replaced(self, shape=tuple(shape), strides=tuple(strides), offset=offset)

    def split(self, axis: int, sizes: Sequence[Dim]) -> View:
        """One axis as several, which have as many positions together."""
        step = self.strides[axis]
        strides = [one * step for one in contiguous_strides(sizes)]
        return replaced(
            self,
            shape=(*self.shape[:axis], *sizes, *self.shape[axis + 1 :]),
            strides=(*self.strides[:axis], *strides, *self.strides[axis + 1 :]),
        )

    def as_bits(self) -> View:
        """The same elements as integers of their width, which nothing interprets."""
        return replaced(self, element=bits_of(self.element))

    def as_bytes(self) -> View:
        """The first byte of each element."""
        size = self.element.bytes
        strides = tuple(stride * size for stride in self.strides)
        return replaced(self, element=U8, strides=strides, offset=self.offset * size)

    def as_parts(self) -> View:
        """Complex numbers as pairs of real ones on one more axis."""
        strides = (*(2 * stride for stride in self.strides), 1)
        return View(self.storage, part_of(self.element), (*self.shape, 2), strides, 2 * self.offset)

    def as_complex(self) -> View | None:
        """Pairs on the last axis as complex numbers, where they surely begin at even places."""
        strides = contiguous_strides(self.shape[:-1]) if self.is_contiguous else _halves(self.strides[:-1])
        offset = _halves([self.offset])
        if self.strides[-1] != 1 or strides is None or offset is None:
            return None
        return View(self.storage, complex_of(self.element), self.shape[:-1], strides, *offset)


def seen(view: View, memory: Array, symbols: Mapping[str, int] = MappingProxyType({}), begin: int = 0) -> Array:
    """The elements of a view, in an array without gaps whose memory is that of its storage from byte ``begin`` on."""
    dtype = numpy_type(view.element)
    shape, strides = ([evaluate(dim, symbols) for dim in dims] for dims in (view.shape, view.strides))
    if 0 in shape:
        return np.empty(shape, dtype)
    flat: Any = memory.reshape(-1).view(np.uint8)
    offset = begin + evaluate(view.offset, symbols) * dtype.itemsize
    found: Array = np.ndarray(shape, dtype, flat, offset, [one * dtype.itemsize for one in strides])
    return found


def memory_order(view: View) -> tuple[int, ...] | None:
    """The axes of a tensor in the order in which they lie in memory without gaps; ``None`` where there are gaps."""
    left, found = list(range(len(view.shape))), list[int]()
    steps: Dim = 1
    while left:
        axis = next((one for one in reversed(left) if is_one(view.shape[one])), None)
        axis = next((one for one in reversed(left) if view.strides[one] == steps), None) if axis is None else axis
        if axis is None:
            return None
        left.remove(axis)
        found.append(axis)
        steps = steps * view.shape[axis]
    return tuple(reversed(found))


def contiguous_strides(shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """How far apart the elements along each axis are in a tensor without gaps, in elements."""
    strides: list[Dim] = []
    step: Dim = 1
    for size in reversed(shape):
        strides.append(step)
        step = step * size
    return tuple(reversed(strides))


def _halves(dims: Sequence[Dim]) -> tuple[Dim, ...] | None:
    halves = tuple(dim // 2 for dim in dims)
    return halves if all(half * 2 == dim for half, dim in zip(halves, dims, strict=True)) else None


def _groups(before: Sequence[Dim], after: Sequence[Dim]) -> list[tuple[slice, slice]]:
    """Axes of two shapes, group by group, where each group has as many elements in both; as many groups as are sure."""
    groups: list[tuple[slice, slice]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        ends = [(k, m) for k in range(i + 1, len(before) + 1) for m in range(j + 1, len(after) + 1)]
        same = ((k, m) for k, m in ends if product(before[i:k]) == product(after[j:m]))
        k, m = next(same, (len(before), len(after)))
        groups.append((slice(i, k), slice(j, m)))
        i, j = k, m
    return groups
