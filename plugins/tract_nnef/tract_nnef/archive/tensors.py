"""Tensors as archives hold them: the ``.dat`` files of NNEF, a header of 128 bytes and the elements.

The item types are those of NNEF 1.0.5, those that the established engine adds under the vendor ``TR``, and, under the
vendor ``PY``, the element types that only this project has: their codes are the values of `DatumType`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from math import prod
from typing import Final, NamedTuple

import numpy as np

from tract_core.data import DatumType
from tract_core.data.blocks import Q4_0, Q8_1, Blocks, byte_size
from tract_core.data.stored import BITS, Array, checked_shape, from_bytes, pack
from tract_core.errors import CorruptModel, LimitExceeded, TractError, Unsupported, VersionError
from tract_core.limits import LoadLimits, limits_now, run_limit
from tract_nnef.archive.inflate import check_time

HEADER: Final = struct.Struct("<2sBBII8IIHHI72x")
"""Magic, version, bytes of data, rank, sizes, bits per item, item type, vendor, and the first of the parameters."""

MAGIC: Final = b"\x4e\xef"
MAX_RANK: Final = 8
MAX_COUNT: Final = (1 << 32) - 1
"""What a field holds. As the bits per item it says that items are not all of one size."""

KHRONOS, TR, PY = 0, 0x5452, 0x5950
"""Vendors, who say what the code of an item means. On disk, the bytes of the last two are ``RT`` and ``PY``."""

_COUNTED: Final = 24
"""Bytes of data that the established engine counts for a text, whatever its length."""

_TEXT: Final = 64
"""Bytes of memory that a text takes, and more for a long one."""


class Item(NamedTuple):
    """How a header names an element type."""

    bits: int
    code: int
    vendor: int = KHRONOS


def _widths(names: str, code: int, *widths: int, factor: int = 1, vendor: int = KHRONOS) -> dict[Item, DatumType]:
    return {Item(width * factor, code, vendor): DatumType[f"{names}{width}"] for width in widths}


_PLAIN: Final = {
    **_widths("F", 0, 16, 32, 64),
    **_widths("U", 1, 8, 16, 32, 64),
    **_widths("I", 4, 8, 16, 32, 64),
    Item(8, 5): DatumType.BOOL,
    **_widths("COMPLEX_F", 0, 16, 32, 64, factor=2, vendor=TR),
    **_widths("COMPLEX_I", 4, 16, 32, 64, factor=2, vendor=TR),
    **{Item(BITS[kind], kind, PY): kind for kind in BITS},
    Item(16, DatumType.BF16, PY): DatumType.BF16,
    **{Item(8, kind, PY): kind for kind in DatumType if kind.name.startswith("F8")},
}
_QUANTISED: Final = {**_widths("U", 2, 8, 16, 32, 64), **_widths("I", 3, 8, 16, 32, 64)}
_PACKED_BOOL: Final = Item(1, 5)
_STRINGS: Final = Item(MAX_COUNT, 0x1000, TR)
_Q4_0_OF_NEIGHBOURS: Final = Item(MAX_COUNT, 0x2040, TR)
_BLOCKS: Final = {
    Item(MAX_COUNT, 0x3040, TR): Q4_0,
    Item(MAX_COUNT, 0x3080, TR): Q8_1,
    _Q4_0_OF_NEIGHBOURS: Q4_0,
    Item(MAX_COUNT, 0x3081, TR): Q8_1,  # what the established engine writes, though it does not read it
}

_KINDS: Final = _PLAIN | _QUANTISED
_ITEM_OF: Final = {kind: item for item, kind in _PLAIN.items()}
_QUANTISED_ITEM_OF: Final = {kind: item for item, kind in _QUANTISED.items()}
_BLOCK_ITEM_OF: Final = {"q4_0": Item(MAX_COUNT, 0x3040, TR), "q8_1": Item(MAX_COUNT, 0x3080, TR)}

# --- reading ----------------------------------------------------------------------------------------------------------


class Header(NamedTuple):
    """What the first 128 bytes say. ``size``: bytes of data."""

    size: int
    shape: tuple[int, ...]
    item: Item

    def __str__(self) -> str:
        kind, blocks = _KINDS.get(self.item), _BLOCKS.get(self.item)
        known = blocks.name if blocks else kind.short if kind else f"items of the type {self.item.code:#x}"
        return f"[{_listed(self.shape)}] of {known}"


def read_header(content: Array, where: str) -> Header:
    """What the first bytes of a ``.dat`` file say of its tensor. Raises CorruptModel, LimitExceeded or VersionError."""
    try:
        return _header(content, limits_now())
    except TractError as error:
        raise error.at(where) from None


def read_tensor(content: Array, where: str) -> Array | Blocks:
    """The tensor in the bytes of a ``.dat`` file, read-only; in place where memory has elements as files have them.

    ``where``: the name of the file, for errors. Texts are Python objects; quantised items are their stored integers.
    Raises CorruptModel, LimitExceeded, Unsupported or VersionError.
    """
    limits = limits_now()
    try:
        header = _header(content, limits)
        found = _tensor(header, content[HEADER.size :], limits)
    except MemoryError:
        raise LimitExceeded("there is no memory for its elements", where=where) from None
    except TractError as error:
        raise error.at(where) from None
    if isinstance(found, np.ndarray):
        found.flags.writeable = False
    return found


def _header(content: Array, limits: LoadLimits) -> Header:
    head = content[: HEADER.size].tobytes()
    if not head.startswith(MAGIC):
        raise CorruptModel(f"it begins with {head[:2].hex(' ') or 'nothing'}, a tensor with {MAGIC.hex(' ')}")
    if len(head) < HEADER.size:
        raise CorruptModel(f"it has {len(head)} bytes, the header of a tensor has {HEADER.size}")
    _, major, minor, count, rank, *rest = HEADER.unpack(head)
    sizes, (bits, code, vendor, parameter) = rest[:MAX_RANK], rest[MAX_RANK:]
    if (major, minor) != (1, 0):
        raise VersionError(
            f"it is written in version {major}.{minor} of the tensor format, version 1.0 is read",
            hint="update tract-nnef, or write the tensor in version 1.0",
        )
    if rank > MAX_RANK:
        raise CorruptModel(f"its rank is {rank}, tensor files have up to {MAX_RANK} axes")
    if vendor == KHRONOS and code == 1 and parameter:
        code = 4  # as NNEF had it before 1.0.3: one code for integers, and a parameter that says "signed"
    return Header(count, checked_shape(sizes[:rank], limits), Item(bits, code, vendor))


def _tensor(header: Header, data: Array, limits: LoadLimits) -> Array | Blocks:
    item, shape = header.item, header.shape
    if item == _STRINGS:
        return _strings(header, data, limits)
    if header.size != len(data):
        raise CorruptModel(f"its header says {header.size} bytes of data, {len(data)} are there")
    if item in _BLOCKS:
        return _blocks(item, shape, data)
    kind = DatumType.BOOL if item == _PACKED_BOOL else _KINDS.get(item)
    if kind is None:
        raise _unknown(item)
    size, allowed = prod(shape) * kind.itemsize, run_limit(limits)
    if size > allowed:
        raise LimitExceeded(
            f"{kind.short} of shape [{_listed(shape)}] takes {size} bytes, {allowed} are allowed",
            hint="a model that needs so many can be loaded with LoadLimits(max_tensor_bytes=...)",
        )
    if item == _PACKED_BOOL:
        return _packed_bools(shape, data)
    array = from_bytes(kind, shape, data, 0, len(data))
    return array if array.flags.aligned else array.copy()


def _packed_bools(shape: tuple[int, ...], data: Array) -> Array:
    """Eight to a byte, the first in the highest bit."""
    count = prod(shape)
    if len(data) != -(-count // 8):
        raise CorruptModel(f"{len(data)} bytes are there, {count} booleans of one bit take {-(-count // 8)}")
    return np.unpackbits(data, count=count).astype(np.bool_).reshape(shape)


def _blocks(item: Item, shape: tuple[int, ...], data: Array) -> Blocks:
    form = _BLOCKS[item]
    if len(shape) < 2 or prod(shape[1:]) % form.length:
        raise CorruptModel(f"its shape is [{_listed(shape)}], wanted rows of whole blocks of {form.length} elements")
    wanted = byte_size(form, shape)
    if len(data) != wanted:
        raise CorruptModel(f"{len(data)} bytes are there, {form.name} of shape [{_listed(shape)}] takes {wanted}")
    return Blocks(form, shape, _in_halves(data) if item == _Q4_0_OF_NEIGHBOURS else data)


def _strings(header: Header, data: Array, limits: LoadLimits) -> Array:
    """Each text comes after the number of its bytes, in 32 bits."""
    count = prod(header.shape)
    if header.size not in (len(data), count * _COUNTED):
        raise CorruptModel(f"its header says {header.size} bytes of data, {len(data)} are there")
    if 4 * count > len(data):
        raise CorruptModel(f"{len(data)} bytes are there, {count} texts take {4 * count} at least")
    taken = len(data) + _TEXT * count
    if taken > limits.max_fold_bytes:
        raise LimitExceeded(
            f"{count} texts take {taken} bytes, {limits.max_fold_bytes} are allowed",
            hint="a model that needs so many can be loaded with LoadLimits(max_fold_bytes=...)",
        )
    texts = np.empty(count, dtype=object)
    texts[:] = list(_texts(data.tobytes(), count))
    return texts.reshape(header.shape)


def _texts(data: bytes, count: int) -> Iterator[str]:
    at = 0
    for index in range(count):
        if not index % 4096:
            check_time()
        start = at + 4
        at = start + int.from_bytes(data[at:start], "little")
        if start > len(data) or at > len(data):
            raise CorruptModel(f"text {index} of {count} goes beyond the end of the file")
        try:
            yield data[start:at].decode()
        except UnicodeDecodeError as error:
            raise CorruptModel(f"text {index} is not UTF-8: {error.reason} at byte {error.start}") from None
    if at != len(data):
        raise CorruptModel(f"after its {count} texts come {len(data) - at} more bytes")


def _unknown(item: Item) -> TractError:
    if item.vendor not in (KHRONOS, TR, PY):
        return Unsupported(f"its items are of vendor {item.vendor:#06x}, known are 0, {TR:#06x} and {PY:#06x}")
    return Unsupported(
        f"its items have the type {item.code:#x} of vendor {item.vendor:#06x} and {item.bits} bits, which is not known"
    )


def _listed(shape: Iterable[int]) -> str:
    return ",".join(map(str, shape))


# --- writing ----------------------------------------------------------------------------------------------------------


def tensor_file(value: Array | Blocks, *, quantised: bool = False) -> list[bytes | Array]:
    """The content of a ``.dat`` file: its header and its elements, which are copied only where they are not in order.

    ``quantised``: integers that stand for other numbers; what they stand for is in ``graph.quant``. Raises Unsupported
    for what a header cannot say: other element types, more than 8 axes, 4 GiB and more.
    """
    if isinstance(value, Blocks):
        item, data = _BLOCK_ITEM_OF[value.format.name], value.content
    else:
        item, data = _plain(value, quantised)
    shape = value.shape
    if len(shape) > MAX_RANK:
        raise Unsupported(f"a tensor of {len(shape)} axes cannot be in a file of NNEF, where {MAX_RANK} is the most")
    if max(len(data), *shape, 0) > MAX_COUNT:
        raise Unsupported(f"{len(data)} bytes of shape [{_listed(shape)}] cannot be in a file of NNEF: it takes 4 GiB")
    sizes = *shape, *(0,) * (MAX_RANK - len(shape))
    return [HEADER.pack(MAGIC, 1, 0, len(data), len(shape), *sizes, *item, 0), data]


def is_for_all(array: Array) -> bool:
    """Whether the established engine reads such a tensor too: its elements have a type that it knows."""
    item = _ITEM_OF.get(DatumType.from_numpy(array.dtype))
    return item is None or item.vendor != PY


def _plain(array: Array, quantised: bool) -> tuple[Item, Array]:
    kind = DatumType.from_numpy(array.dtype)
    if kind is DatumType.STRING:
        return _STRINGS, _bytes_of_texts(array)
    item = (_QUANTISED_ITEM_OF if quantised else _ITEM_OF).get(kind)
    if item is None:
        raise Unsupported(f"elements of type {kind.short} cannot be in a file of NNEF")
    if kind in BITS:
        return item, pack(kind, array)
    return item, np.ascontiguousarray(array, kind.numpy).reshape(-1).view(np.uint8)


def _bytes_of_texts(array: Array) -> Array:
    pieces: list[bytes] = []
    for element in array.flat:
        if not isinstance(element, str):
            raise Unsupported(f"an element of type {type(element).__name__} cannot be in a file of NNEF")
        try:
            text = element.encode()
        except UnicodeEncodeError:
            raise Unsupported("a text with half a character cannot be in a file of NNEF: it is not UTF-8") from None
        pieces += [len(text).to_bytes(4, "little"), text]
    return np.frombuffer(b"".join(pieces), np.uint8)


def _in_halves(content: Array) -> Array:
    """Blocks in the older order of Q4_0, where neighbours share a byte, in that of ggml: halves of a block do."""
    blocks = content.reshape(-1, Q4_0.size)
    codes = np.stack((blocks[:, 2:] & 15, blocks[:, 2:] >> 4), axis=2).reshape(-1, Q4_0.length)
    return np.concatenate((blocks[:, :2], codes[:, :16] | codes[:, 16:] << 4), axis=1).reshape(-1)
