"""What must hold of every program of kernels: its memory is there, and each piece is written before it is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tract_core.frozen import frozen
from tract_llvm.program.storages import Kind, Storage, storage_text


@frozen
class Touched:
    """The memory that a step ``reads``, and to which it ``writes``. One piece may be in both."""

    reads: frozenset[Storage]
    writes: frozenset[Storage]


def storage_faults(steps: Sequence[Touched], counts: Mapping[Kind, int]) -> Iterator[str]:
    """Memory that is not there. ``counts``: how many storages there are of a kind."""
    for place, step in enumerate(steps):
        for storage in sorted(step.reads | step.writes, key=storage_text):
            count = counts.get(storage.kind, 0)
            if not 0 <= storage.number < count:
                yield f"step {place} mentions {storage_text(storage)}, of which there are {count}"


def constant_faults(written: Iterable[Iterable[Storage]]) -> Iterator[str]:
    """Constants that are written. ``written``: the memory whose elements each step writes."""
    for place, storages in enumerate(written):
        for storage in storages:
            if storage.kind is Kind.CONSTANT:
                yield f"step {place} writes to {storage_text(storage)}, which nobody may"


def order_faults(steps: Sequence[Touched], fresh: Iterable[Kind]) -> Iterator[str]:
    """Memory that is read before any step writes there. ``fresh``: kinds of memory in which nothing is at first."""
    written, kinds = set[Storage](), set(fresh)
    for place, step in enumerate(steps):
        for storage in sorted(step.reads - written, key=storage_text):
            if storage.kind in kinds:
                yield f"step {place} reads {storage_text(storage)}, to which no step before it writes"
        written |= step.writes
