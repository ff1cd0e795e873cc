"""Tensors of a file: what the header says of them, and where their elements lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import prod
from typing import Final, NamedTuple

import numpy as np

from tract_core.data import DatumType
from tract_core.data.blocks import Blocks
from tract_core.data.stored import checked_shape
from tract_core.errors import CorruptModel, LimitExceeded, Unsupported
from tract_core.frozen import frozen
from tract_core.ops.blocks import FORMATS
from tract_core.plugins.keys import Array
from tract_gguf.reading.cursor import Cursor, numbers_in_time

MAX_RANK: Final = 4
"""Axes of a tensor of ggml."""

MAX_NAME: Final = 1024
"""Characters of the name of a tensor; those of ggml have up to 63."""

LEAST: Final = 24
"""Bytes that the header has for a tensor at least."""


class Storage(NamedTuple):
    """How elements are stored: the name of their type in ggml, how many make a block, and the bytes of one."""

    name: str
    length: int
    size: int


_KINDS: Final = {
    0: Storage("f32", 1, 4),
    1: Storage("f16", 1, 2),
    28: Storage("f64", 1, 8),
    30: Storage("bf16", 1, 2),
    24: Storage("i8", 1, 1),
    25: Storage("i16", 1, 2),
    26: Storage("i32", 1, 4),
    27: Storage("i64", 1, 8),
    2: Storage("q4_0", 32, 18),
    3: Storage("q4_1", 32, 20),
    6: Storage("q5_0", 32, 22),
    7: Storage("q5_1", 32, 24),
    8: Storage("q8_0", 32, 34),
    9: Storage("q8_1", 32, 36),
    10: Storage("q2_k", 256, 84),
    11: Storage("q3_k", 256, 110),
    12: Storage("q4_k", 256, 144),
    13: Storage("q5_k", 256, 176),
    14: Storage("q6_k", 256, 210),
    15: Storage("q8_k", 256, 292),
    16: Storage("iq2_xxs", 256, 66),
    17: Storage("iq2_xs", 256, 74),
    18: Storage("iq3_xxs", 256, 98),
    19: Storage("iq1_s", 256, 50),
    20: Storage("iq4_nl", 32, 18),
    21: Storage("iq3_s", 256, 110),
    22: Storage("iq2_s", 256, 82),
    23: Storage("iq4_xs", 256, 136),
    29: Storage("iq1_m", 256, 56),
    34: Storage("tq1_0", 256, 54),
    35: Storage("tq2_0", 256, 66),
    39: Storage("mxfp4", 32, 17),
    40: Storage("nvfp4", 64, 36),
}
"""``enum ggml_type`` of ggml.h, by code; those that were removed from there are not here."""

_PLAIN: Final = {
    one.short: one
    for one in (
        *(DatumType.F32, DatumType.F16, DatumType.F64, DatumType.BF16),
        *(DatumType.I8, DatumType.I16, DatumType.I32, DatumType.I64),
        *(DatumType.U8, DatumType.F8E4M3FN, DatumType.F8E8M0FNU),  # of folders alone
    )
}


@frozen
class GgufTensor:
    """A tensor of a file. ``shape``: the slowest axis first, against the order in the file. ``content``: its bytes.

    ``name``, ``kind``: of the tensor, and of the type of its elements in ggml, in small letters.
    """

    name: str
    kind: str
    shape: tuple[int, ...]
    content: Array = field(compare=False, repr=False)

    def stored(self) -> Array | Blocks:
        """The elements as they are in the file: an array, or blocks along the last axis; both read-only, no copies.

        Raises Unsupported for a type of elements that has no meaning here.
        """
        if self.kind in _PLAIN:
            return self.content.view(_PLAIN[self.kind].numpy).reshape(self.shape)
        if self.kind in FORMATS:
            return Blocks(FORMATS[self.kind], self.shape, self.content)
        raise Unsupported(
            f"its elements are of type {self.kind}; known are {', '.join([*_PLAIN, *FORMATS])}",
            where=f"tensor {self.name!r}",
            hint="take a file of the same model in another format, as Q4_K_M",
        )


class Info(NamedTuple):
    """What the header says of a tensor. ``offset``: in bytes from where the elements of all tensors begin."""

    name: str
    shape: tuple[int, ...]
    kind: Storage
    offset: int

    @property
    def size(self) -> int:
        """Bytes of the elements."""
        return prod(self.shape) // self.kind.length * self.kind.size


def read_infos(cursor: Cursor, count: int) -> Sequence[Info]:
    """What the header says of that many tensors. Raises ModelError."""
    found: dict[str, Info] = {}
    for number in numbers_in_time(count):
        name = cursor.name(f"the name of tensor {number}", MAX_NAME)
        if name in found:
            raise CorruptModel(f"there are two tensors of the name {name!r:.80}")
        found[name] = _info(cursor, name)
    return list(found.values())


def _info(cursor: Cursor, name: str) -> Info:
    what = f"tensor {name!r:.80}"
    rank = cursor.u32(what)
    if rank > MAX_RANK:
        raise CorruptModel(f"it has {rank} axes, tensors of this format up to {MAX_RANK}", where=what)
    shape = checked_shape([cursor.u64(what) for _ in range(rank)][::-1], cursor.limits)
    code = cursor.u32(what)
    kind = _KINDS.get(code)
    if kind is None:
        raise Unsupported(
            f"its elements are of the type with the number {code}, which is not known",
            where=what,
            hint="take a file of the same model in another format, as Q4_K_M",
        )
    if kind.length > 1 and (not shape or shape[-1] % kind.length):
        listed = ",".join(map(str, shape))
        problem = f"its shape is [{listed}], blocks of {kind.name} have {kind.length} elements of the last axis"
        raise CorruptModel(problem, where=what)
    return Info(name, shape, kind, cursor.u64(what))


def place_tensors(infos: Sequence[Info], data: Array, alignment: int, limit: int) -> Mapping[str, GgufTensor]:
    """Tensors over the bytes ``data``, in which the elements of all lie, apart from one another.

    ``limit``: bytes that one may take. Raises CorruptModel where they lie over one another, or outside; LimitExceeded.
    """
    end, before = 0, ""
    for info in sorted(infos, key=lambda one: (one.offset, one.size)):
        what = f"tensor {info.name!r:.80}"
        if info.offset % alignment:
            raise CorruptModel(f"it begins at {info.offset}, wanted a multiple of {alignment}", where=what)
        if info.offset + info.size > len(data):
            problem = f"it takes {info.size} bytes from {info.offset} on, the file has {len(data)} for all tensors"
            raise CorruptModel(problem, where=what)
        if info.size > limit:
            raise LimitExceeded(f"it takes {info.size} bytes, {limit} are allowed", where=what)
        if info.size and info.offset < end:
            raise CorruptModel(f"it begins at {info.offset}, where tensor {before!r:.80} is until {end}", where=what)
        if info.size:
            end, before = info.offset + info.size, info.name
    return {one.name: _placed(one, data) for one in infos}


def _placed(info: Info, data: Array) -> GgufTensor:
    content = data[info.offset : info.offset + info.size] if info.size else np.empty(0, np.uint8)
    content.flags.writeable = False
    return GgufTensor(info.name, info.kind.name, info.shape, content)
