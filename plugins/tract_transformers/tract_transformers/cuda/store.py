"""Pages are copied, then the keys and values of new tokens put there."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Final

from tract_cuda.kernels.positions import THREADS
from tract_cuda.language.arch import WARP
from tract_cuda.language.kernel import Kernel, Parameter, sizes
from tract_llvm.language.types import F32, I8, I32, I64, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen
from tract_transformers.ops.paged_attention import LARGEST, LEAST


@frozen
class PageCopyPlan:
    """One thread for one element of a page, which it copies in all copies, one after the other.

    ``bits``: what elements are copied as.
    """

    bits: ElementType

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "copy_pages"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """How many elements a page has, how many copies there are, and from where to where."""
        given = (Parameter("count"), Parameter("copied"), Parameter("copies", I64), Parameter("kept", self.bits))
        return (*given, Parameter("refused", I32))

    def emit(self, k: Kernel) -> None:
        """kept[target, i] = kept[source, i]"""
        place, count = k.block() * THREADS + k.thread(), k.size("count")
        kept, copies = k.memory("kept"), k.memory("copies")
        with (
            k.when((place < count) & k.memory("refused")[0].equals(0)),
            k.loop("copy", k.size("copied")) as one,
        ):
            source, target = (k.convert(copies[one * 2 + side], k.positions) for side in range(2))
            kept[target * count + place] = kept[source * count + place]


@frozen
class GpuPageStorePlan:
    """One thread for one number of a key or a value. Keys of a page are [H,depth,page], values [H,page,width].

    ``kept``: the type of what pages hold.
    """

    kept: ElementType
    page: int
    depth: int
    width: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "store_pages"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """How far apart tokens, heads and numbers are of what is put there; the slot of each token."""
        new = [(Parameter(name, F32), *sizes(f"{name}.", 3)) for name in ("new_keys", "new_values")]
        kept = (Parameter(name, self.kept) for name in ("keys", "values"))
        counts = (Parameter("count"), Parameter("heads"))
        return (*counts, *new[0], *new[1], Parameter("slots", I64), *kept, Parameter("refused", I32))

    def emit(self, k: Kernel) -> None:
        """Of each token, head and number, the keys' first."""
        number, both = k.block() * THREADS + k.thread(), k.index(self.depth + self.width)
        with k.when((number < k.size("count")) & k.memory("refused")[0].equals(0)):
            token, head, one = k.spot(number, [both, k.size("heads"), both])
            slot = k.convert(k.memory("slots")[token], k.positions)
            place, inside = slot // self.page * k.size("heads") + head, slot % self.page
            with k.when(slot >= 0), k.either(one < self.depth) as (then, otherwise):
                with then:
                    found = self._new(k, "new_keys", (token, head, one))
                    k.memory("keys")[(place * self.depth + one) * self.page + inside] = found
                with otherwise:
                    found = self._new(k, "new_values", (token, head, one - self.depth))
                    k.memory("values")[(place * self.page + inside) * self.width + one - self.depth] = found

    def _new(self, k: Kernel, name: str, at: Sequence[Value]) -> Value:
        token, head, one = (here * k.size(f"{name}.{axis}") for axis, here in enumerate(at))
        return k.memory(name)[token + head + one]


_MOST: Final = (1 << 31) - 1
"""All bits of an f32 but its sign, by which sizes are compared as integers: what is no number is the largest one."""

_ROUNDS: Final = 1.5 * 2.0**23
"""Of an f32 to which it is added, the lowest bits are the integer that is nearest."""


@frozen
class PageBytesPlan:
    """A warp for the key, or the value, of a token and a head: integers of 8 bits, and a scale.

    ``size``: how many numbers it has, which are ``apart`` in a page; ``along``: how far apart positions are.
    """

    page: int
    size: int
    apart: int
    along: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "store_bytes"

    @property
    def threads(self) -> int:
        """Of a block."""
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """How many warps have work; how far apart tokens, heads and numbers are of ``new``; the slot of each token."""
        new = (Parameter("new", F32), *sizes("new.", 3), Parameter("slots", I64))
        kept = (Parameter("kept", I8), Parameter("scales", F32), Parameter("refused", I32))
        return (Parameter("count"), Parameter("heads"), *new, *kept)

    def emit(self, k: Kernel) -> None:
        """As `in_bytes` does it."""
        number = k.block() * (THREADS // WARP) + k.warp()
        token, head = k.divided(number, k.size("heads"))
        with k.when((number < k.size("count")) & k.memory("refused")[0].equals(0)):
            slot = k.convert(k.memory("slots")[token], k.positions)
            with k.when(slot >= 0):
                self._put(k, (token, head), slot)

    def _put(self, k: Kernel, at: tuple[Value, Value], slot: Value) -> None:
        new, (token, head, step) = k.memory("new"), k.sizes("new.", 3)
        start = at[0] * token + at[1] * head
        largest = k.variable(k.constant(0, I32))
        with k.loop("largest", self.size, k.lane(), WARP) as one:
            largest.value = _larger(k, largest.value, new[start + one * step].bits(I32) & _MOST)
        for distance in (16, 8, 4, 2, 1):
            largest.value = _larger(k, largest.value, k.shuffled_xor(largest.value, distance))
        top = largest.value.bits(F32)
        usual = (top >= LEAST) & (top < inf)
        inverse = k.select(usual, top.like(LARGEST) / top, 0.0)
        place, inside = slot // self.page * k.size("heads") + at[1], slot % self.page
        with k.loop("bytes", self.size, k.lane(), WARP) as one:
            number = k.select(usual, new[start + one * step], 0.0)
            code = k.convert((number * inverse + _ROUNDS).bits(I32), I8)
            k.memory("kept")[place * (self.page * self.size) + inside * self.along + one * self.apart] = code
        with k.when(k.lane().equals(0)):
            scale = k.select(top < LEAST, top.like(0), top * (1 / LARGEST))
            k.memory("scales")[place * self.page + inside] = scale


def _larger(k: Kernel, one: Value, other: Value) -> Value:
    return k.select(one > other, one, other)
