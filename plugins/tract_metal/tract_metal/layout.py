"""Tensors as MLX has them: with their axes in another order where a chain of operators is faster so.

MLX convolves with the channels last. What comes out of a convolution stays so: element-wise operators do not care, the
next convolution wants it so, and who does care gets the axes in their own order, which costs MLX a view.
"""

from __future__ import annotations

import mlx.core as mx

from tract_core.frozen import frozen


def along(vector: mx.array, axis: int, rank: int) -> mx.array:
    """A vector as a tensor of so many axes, all others of size 1."""
    return mx.reshape(vector, [-1 if other == axis else 1 for other in range(rank)])


def places_along(x: mx.array, axis: int) -> mx.array:
    """For each place on an axis of a tensor its number, in i64, in a shape that stretches to that of the tensor."""
    return along(mx.arange(x.shape[axis], dtype=mx.int64), axis, x.ndim)


@frozen
class Laid:
    """``array``: the elements. ``order``: for each axis of the array, which axis of the tensor it is."""

    array: mx.array
    order: tuple[int, ...]

    @staticmethod
    def plain(array: mx.array) -> Laid:
        """A tensor whose axes are in their own order."""
        return Laid(array, tuple(range(array.ndim)))

    @property
    def is_plain(self) -> bool:
        """Whether the axes are in their own order."""
        return self.order == tuple(range(len(self.order)))

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the tensor, with its axes in their own order."""
        return tuple(self.array.shape[self.order.index(axis)] for axis in range(len(self.order)))

    @property
    def in_order(self) -> mx.array:
        """The array with the axes in their own order."""
        if self.is_plain:
            return self.array
        return mx.transpose(self.array, [self.order.index(axis) for axis in range(len(self.order))])

    def as_laid(self, order: tuple[int, ...]) -> mx.array:
        """The array with the axes in another order."""
        if order == self.order:
            return self.array
        return mx.transpose(self.array, [self.order.index(axis) for axis in order])
