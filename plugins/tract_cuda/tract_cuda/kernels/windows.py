"""The windows of a convolution as the rows of a matrix, which is read without being anywhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_cuda.language.kernel import Kernel, Parameter, sizes

_ALONG = ("input", "positions", "stride", "dilation", "before", "step")


@frozen
class Windows:
    """A matrix [groups, batch and positions, window and channels of a group], of data with channels side by side.

    Or [batch, positions, window and channels], where there is one group.

    ``window``: its sizes along the spatial axes. ``whole``: whether what a tile has of the depth is always one position
    of the window.
    """

    window: tuple[int, ...]
    whole: bool

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """How many channels a group has; elements from one pair, and one of the batch, to the next; along spatial axes.

        These are: the size of the data, how many positions there are, the steps of windows, and in them, the padding,
        and elements from one position of the data to the next.
        """
        along = [sizes(f"window.{name}", len(self.window)) for name in _ALONG]
        steps = (Parameter("window.channels"), Parameter("window.pair"), Parameter("window.batch"))
        return (*steps, *(one for group in along for one in group))

    def opened(self, k: Kernel, pair: Value, rows: Sequence[Value]) -> OpenWindows:
        """For the rows of a pair that a thread reads."""
        found = list[_Row]()
        for row in rows:
            batch, *spots = k.spot(row, [row, *k.sizes("window.positions", len(self.window))])
            begin = batch * k.size("window.batch") + pair * k.size("window.pair")
            along = [
                spot * k.size(f"window.stride{axis}") - k.size(f"window.before{axis}")
                for axis, spot in enumerate(spots)
            ]
            found.append(_Row(begin, along))
        return OpenWindows(self, k, found)


@dataclass(frozen=True, slots=True, eq=False)
class _Row:
    """Where the data of one row begins, and at which position of the data its window does, which may be outside."""

    begin: Value
    along: list[Value]


@dataclass(frozen=True, slots=True, eq=False)
class OpenWindows:
    """The rows that a thread reads of a matrix of windows."""

    windows: Windows
    k: Kernel
    rows: list[_Row]

    def at(self, number: int, depth: Value, inner: Value) -> tuple[Value, Value]:
        """Where an element of a row is in the data, and whether it is inside. ``depth``: of the tile."""
        k, row, channels = self.k, self.rows[number], self.k.size("window.channels")
        if self.windows.whole:
            tap, first = k.divided(depth, channels)
            channel = first + inner
        else:
            tap, channel = k.divided(depth + inner, channels)
        taps = list[Value]()
        for size in reversed(self.windows.window[1:]):
            tap, one = k.divided(tap, k.index(size))
            taps.append(one)
        taps = [tap, *reversed(taps)] if self.windows.window else []
        place, within = row.begin + channel, k.index(0).equals(0)
        for axis, (one, begin) in enumerate(zip(taps, row.along, strict=True)):
            spot = begin + one * k.size(f"window.dilation{axis}")
            within = within & (spot >= 0) & (spot < k.size(f"window.input{axis}"))
            place = place + spot * k.size(f"window.step{axis}")
        return place, within
