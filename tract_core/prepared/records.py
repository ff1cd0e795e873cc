"""One object as the content of a file: pickled, with its arrays beside it, which are mapped and not read.

A file has a head and, behind it, arrays, each where a kernel may read it as it lies. The head begins with the digest of
its name and of the rest of the head, so that one that was cut off, changed or put in the place of another is not used;
what a `Later` holds is pickled apart, and unpickled when it is asked for.

Whoever writes such a file decides what is executed here, as with any pickle: it is only read where nobody else can have
written it (`tract_core.cache`).
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from io import BytesIO
from itertools import accumulate, pairwise
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from tract_core.digests import blake2b
from tract_core.garbage import uncollected
from tract_core.later import Later

if TYPE_CHECKING:
    from tract_core.cache.cache import Cache, Key
    from tract_core.plugins.keys import Array

ALIGNMENT: Final = 64
"""Bytes: arrays begin at multiples, as wide registers and lines of caches want it."""

SMALL: Final = 512
"""Bytes of an array that is pickled with the rest, as it takes less than its place would."""

_FORMAT: Final = b"tract plan 1"
_DIGEST_BYTES: Final = 16
_SIZES: Final = Struct("<qq")
"""The bytes of the head, and how many of them are the list of its sections and arrays."""

Part = bytes | memoryview


def found_in(cache: Cache, key: Key) -> Any:
    """What is kept under a key; ``None`` for nothing, and for what cannot be unpickled, whatever is wrong with it."""
    content = cache.mapped(key)
    try:
        with uncollected():  # classes are imported, and stay
            return None if content is None else read(key.file, content)
    except Exception:  # classes that have other fields by now, a plugin that is gone: what was kept is made anew
        return None


def keep_in(cache: Cache, key: Key, value: object) -> bool:
    """Keep something under a key, if there is room for it: whether others find it now. Raises what pickling does."""
    return cache.put_parts(key, written(key.file, value))


def written(name: str, value: object) -> list[Part]:
    """The content of the file of this name, in pieces. Raises what pickling does."""
    sections, arrays = _Sections(), _Arrays()
    sections.add(value, arrays)
    listing = pickle.dumps(([len(one) for one in sections.content], arrays.places), 5)
    head = b"".join([listing, *sections.content])
    head = _SIZES.pack(len(head), len(listing)) + head
    begin = _DIGEST_BYTES + len(head)
    return [_digest(name, head), head, bytes(-begin % ALIGNMENT), *arrays.content()]


def read(name: str, content: memoryview) -> Any:
    """What was written to the file of this name; ``None`` where that is not what is there.

    ``content``: of the file, which arrays lie in from now on. Raises what unpickling does.
    """
    sizes = content[_DIGEST_BYTES : _DIGEST_BYTES + _SIZES.size]
    if len(sizes) < _SIZES.size:
        return None
    head_bytes, listing_bytes = _SIZES.unpack(sizes)
    begin = _DIGEST_BYTES + _SIZES.size
    end = begin + head_bytes
    if not 0 <= listing_bytes <= head_bytes <= len(content) - begin:
        return None
    if bytes(content[:_DIGEST_BYTES]) != _digest(name, content[_DIGEST_BYTES:end]):
        return None
    sections, places = pickle.loads(content[begin : begin + listing_bytes])
    arrays = content[end + -end % ALIGNMENT :]
    if places and places[-1] > len(arrays):
        return None
    return _Reader(content[begin + listing_bytes : end], sections, arrays, places).section(0)


def _digest(name: str, head: Part) -> bytes:
    return blake2b(head, digest_size=_DIGEST_BYTES, key=name.encode()[:64], person=_FORMAT).digest()


class _Sections:
    """What is pickled apart: the value itself first, then what a `Later` in it holds."""

    def __init__(self) -> None:
        self.content: list[bytes] = []

    def add(self, value: object, arrays: _Arrays) -> int:
        """Returns the number of the section."""
        number = len(self.content)
        self.content.append(b"")
        file = BytesIO()
        _Pickler(file, self, arrays).dump(value)
        self.content[number] = file.getvalue()
        return number


class _Arrays:
    """The memory of arrays, each piece once. ``places``: where each piece begins, and where the last one ends."""

    def __init__(self) -> None:
        self.places: list[int] = [0]
        self._pieces: list[Array] = []
        self._numbers: dict[tuple[int, int], int] = {}

    def place(self, array: Array) -> tuple[int, int]:
        """The number of the piece that an array lies in, and the byte of it that the first element begins at."""
        begin, end = _bounds(array)
        number = self._numbers.get((begin, end))
        if number is None:
            number = self._numbers[begin, end] = len(self._pieces)
            self._pieces.append(array)
            self.places.append(self.places[-1] + _up(end - begin))
        return number, _address(array) - begin

    def content(self) -> Iterator[Part]:
        """All pieces, each as long as its place."""
        for array in self._pieces:
            memory: Any = np.asarray(_Memory(array))
            piece = memoryview(memory)
            yield piece
            yield bytes(_up(len(piece)) - len(piece))


class _Memory:
    """The memory from the first byte of an array to its last one, as NumPy takes it. It lasts as long as that."""

    def __init__(self, array: Array) -> None:
        begin, end = _bounds(array)
        self._array = array
        self.__array_interface__ = {"data": (begin, True), "shape": (end - begin,), "typestr": "|u1", "version": 3}


class _Pickler(pickle.Pickler):
    def __init__(self, file: BytesIO, sections: _Sections, arrays: _Arrays) -> None:
        super().__init__(file, 5)
        self._sections, self._arrays = sections, arrays

    def persistent_id(self, obj: Any) -> tuple[Any, ...] | None:
        """What stands for an array, or for what is made later, in the pickle."""
        if isinstance(obj, Later):
            later = cast("Later[Any]", obj)
            return (self._sections.add(later.value, self._arrays),)
        if obj.__class__ is not np.ndarray or obj.nbytes < SMALL or obj.dtype.hasobject:
            return None
        return (*self._arrays.place(obj), obj.dtype, obj.shape, obj.strides)


class _Unpickler(pickle.Unpickler):
    def __init__(self, reader: _Reader, content: memoryview) -> None:
        super().__init__(BytesIO(content))
        self._reader = reader

    def persistent_load(self, pid: Any) -> Any:
        """The array, or what is made later, that something in the pickle stands for."""
        return self._reader.later(*pid) if len(pid) == 1 else self._reader.array(*pid)


class _Reader:
    """Where the sections and the arrays of a file are."""

    def __init__(self, content: memoryview, sizes: Sequence[int], arrays: memoryview, places: Sequence[int]) -> None:
        """``sizes``: of the sections, in bytes. ``places``: where each piece of the arrays begins."""
        ends = [*accumulate(sizes, initial=0)]
        self._sections = [content[begin:end] for begin, end in pairwise(ends)]
        self._arrays, self._places = arrays, places

    def section(self, number: int) -> Any:
        """What was pickled in a section."""
        return _Unpickler(self, self._sections[number]).load()

    def later(self, number: int) -> Later[Any]:
        """What was pickled in a section, once somebody asks."""
        return Later(lambda: self.section(number))

    def array(self, number: int, first: int, dtype: Any, shape: tuple[int, ...], strides: tuple[int, ...]) -> Array:
        """An array, which nobody can write to."""
        piece = self._arrays[self._places[number] : self._places[number + 1]]
        return np.ndarray(shape, dtype, piece, first, strides)


def _bounds(array: Array) -> tuple[int, int]:
    """The addresses of the first byte of an array with elements, and of the one behind its last."""
    reach = [(size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True)]
    begin = _address(array)
    return begin + sum(min(one, 0) for one in reach), begin + sum(max(one, 0) for one in reach) + array.itemsize


def _address(array: Array) -> int:
    return array.__array_interface__["data"][0]


def _up(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
