"""One thread for one position of some loops: what most kernels that move elements have in common."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_cuda.language.kernel import Kernel, Parameter, sizes

THREADS: Final = 256


def counted(rank: int) -> tuple[Parameter, ...]:
    """How many threads have work, and the size of each loop."""
    return (Parameter("count"), *sizes("size", rank))


def strided(name: str, element: ElementType, rank: int) -> tuple[Parameter, ...]:
    """A tensor, and how far apart its elements are in two rounds of each loop."""
    return (Parameter(name, element), *sizes(f"{name}.", rank))


@contextmanager
def position(k: Kernel, rank: int) -> Generator[list[Value]]:
    """Where this thread is along each loop, if there is work for it."""
    number = k.block() * k.threads + k.thread()
    with k.when(number < k.size("count")):
        yield k.spot(number, k.sizes("size", rank))


def place(k: Kernel, name: str, at: Sequence[Value]) -> Value:
    """Where the element of a tensor is."""
    found = k.index(0)
    for here, stride in zip(at, k.sizes(f"{name}.", len(at)), strict=True):
        found = found + here * stride
    return found
