"""Which of the tensors that lie in files have copies in memory: as many as fit, those that are used."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Self

import torch

from tract_core.errors import InputError
from tract_torch.arguments import chosen, of_type
from tract_torch.weights.offload import OffloadedTensor


class ResidencyStrategy(StrEnum):
    """Which copy makes room for another one."""

    LRU = "lru"
    """That which was used longest ago."""

    FIXED = "fixed"
    """None: what does not fit any more is read from its file."""


class AccessMode(StrEnum):
    """What a tensor is acquired for."""

    READ = "read"
    READ_WRITE = "read_write"


@dataclass(slots=True)
class _Copy:
    """``read``: what one thread reads, and others wait for. ``users``: how many hold it, by leases and pins.

    ``changed``: whether the file is to be written.
    """

    source: OffloadedTensor
    read: Future[torch.Tensor] = field(default_factory=Future[torch.Tensor])
    users: int = 0
    changed: bool = False

    @property
    def tensor(self) -> torch.Tensor:
        """The copy, once it was read. Raises what reading it raised."""
        return self.read.result()


class TensorResidencyPool:
    """Copies in memory of tensors in files, for code that uses them over and over. Threads may share one.

    ``max_cached_bytes``: how much all copies may take; None bounds nothing. What does not fit is used where it is
    mapped from its file. ``max_workers``: how many threads read what `prefetch` asks for. ``strategy``: which copy
    makes room; those that are pinned or acquired never do. It is a context manager, which closes it.
    """

    def __init__(
        self,
        max_cached_bytes: int | None = None,
        max_workers: int = 1,
        strategy: ResidencyStrategy | str = ResidencyStrategy.LRU,
    ) -> None:
        """Raises InputError for numbers and strategies that are none."""
        if max_cached_bytes is not None and max_cached_bytes < 0:
            raise InputError(f"max_cached_bytes is {max_cached_bytes}, wanted None, 0 or more")
        if max_workers < 1:
            raise InputError(f"max_workers is {max_workers}, wanted 1 or more")
        self.max_cached_bytes = max_cached_bytes
        self.strategy = chosen(ResidencyStrategy, strategy, "strategy")
        self._lock = threading.RLock()
        self._copies: OrderedDict[Path, _Copy] = OrderedDict()
        self._readers = ThreadPoolExecutor(max_workers)

    @property
    def cached_bytes(self) -> int:
        """How much the copies take."""
        with self._lock:
            return sum(one.source.nbytes for one in self._copies.values())

    def prefetch(self, *tensors: OffloadedTensor) -> None:
        """Have tensors read by other threads, which this does not wait for. What fails there is tried again when used.

        Raises InputError for what is no tensor in a file.
        """
        for tensor in tensors:
            of_type(tensor, OffloadedTensor, "the tensor", "an OffloadedTensor")
            self._readers.submit(self._copy, tensor)

    def resolve(self, tensor: OffloadedTensor) -> torch.Tensor:
        """An ordinary tensor to read: the copy, which is made where there is none, or what is mapped from the file."""
        found = self._copy(tensor)
        return tensor.plain() if found is None else found.tensor

    @contextmanager
    def acquire(self, tensor: OffloadedTensor, mode: AccessMode | str = AccessMode.READ) -> Generator[torch.Tensor]:
        """Inside, an ordinary tensor that stays in memory, if there is room.

        ``mode``: with "read_write", what is changed of it is written to the file by `flush`, or when it makes room.
        """
        writes = chosen(AccessMode, mode, "mode") is AccessMode.READ_WRITE
        found = self._copy(tensor, users=1)
        try:
            yield tensor.plain() if found is None else found.tensor
        finally:
            if found is not None:
                with self._lock:
                    found.users -= 1
                    found.changed |= writes

    def pin(self, tensor: OffloadedTensor) -> None:
        """Keep a copy until `unpin` was called as often. Raises InputError where there is no room for it."""
        if self._copy(tensor, users=1) is None:
            raise InputError(f"{tensor.label!r} does not fit: {tensor.nbytes} bytes of {self.max_cached_bytes}")

    def unpin(self, tensor: OffloadedTensor) -> None:
        """Let the copy make room again. Raises InputError where it is not pinned."""
        with self._lock:
            found = self._copies.get(tensor.path)
            if found is None or not found.users:
                raise InputError(f"{tensor.label!r} is not pinned")
            found.users -= 1

    @contextmanager
    def scope(self) -> Generator[Self]:
        """Afterwards there are no copies but those that were there before, and those that are pinned."""
        with self._lock:
            before = set(self._copies)
        try:
            yield self
        finally:
            with self._lock:
                self._forget([path for path in self._copies if path not in before])

    def flush(self) -> None:
        """Write to the files what was changed."""
        with self._lock:
            for one in self._copies.values():
                self._write(one)

    def evict(self, tensor: OffloadedTensor | None = None) -> None:
        """Forget the copy of a tensor, or of all that are not in use; what was changed is written before."""
        with self._lock:
            self._forget(list(self._copies) if tensor is None else [tensor.path])

    def close(self) -> None:
        """Wait for readers, write what was changed, and forget all copies."""
        self._readers.shutdown(cancel_futures=True)
        self.flush()
        with self._lock:
            self._copies.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _copy(self, source: OffloadedTensor, users: int = 0) -> _Copy | None:
        """The copy of a tensor, with so many users more; None where there is no room. Raises InputError for another."""
        of_type(source, OffloadedTensor, "the tensor", "an OffloadedTensor")
        with self._lock:
            found = there = self._copies.get(source.path)
            if found is None:
                if not self._has_room(source.nbytes):
                    return None
                found = self._copies[source.path] = _Copy(source)
            self._copies.move_to_end(source.path)
            found.users += users
        if there is None:
            self._read(found)
        return found

    def _read(self, one: _Copy) -> None:
        """Without the lock, so that several are read at once, and others are used meanwhile."""
        try:
            one.read.set_result(one.source.reload())
        except BaseException as error:
            with self._lock:
                del self._copies[one.source.path]
            one.read.set_exception(error)
            raise

    def _has_room(self, wanted: int) -> bool:
        """Whether so many bytes fit, once others made room."""
        if self.max_cached_bytes is None:
            return True
        if self.strategy is ResidencyStrategy.LRU and wanted <= self.max_cached_bytes:
            for path in list(self._copies):
                if self.cached_bytes + wanted <= self.max_cached_bytes:
                    break
                self._forget([path])
        return self.cached_bytes + wanted <= self.max_cached_bytes

    def _forget(self, paths: list[Path]) -> None:
        for path in paths:
            found = self._copies.get(path)
            if found is not None and not found.users and found.read.done():
                self._write(found)
                del self._copies[path]

    @staticmethod
    def _write(one: _Copy) -> None:
        if one.changed:
            one.source.update_values(one.tensor)
            one.changed = False
