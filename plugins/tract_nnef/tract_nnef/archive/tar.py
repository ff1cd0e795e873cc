"""Reading tars: POSIX ustar with pax headers, and GNU with long names.

Written here rather than left to Python's ``tarfile``, which reads for extraction: it takes a damaged header for the end
of the archive without a word, follows extended headers recursively, reads those of any size, and unfolds sparse files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from tract_core.data.stored import Array
from tract_core.errors import CorruptModel, LimitExceeded, TractError, UnsafePath, Unsupported
from tract_core.limits import count_node, limits_now
from tract_nnef.archive.inflate import DAMAGED, ByteSource
from tract_nnef.archive.names import entry_name

BLOCK: Final = 512
_ZEROS: Final = bytes(BLOCK)

MAX_HEADERS: Final = 1 << 16
"""Headers of an archive: one per file, and one or two more where a name is long."""

MAX_EXTENDED: Final = 1 << 16
"""Bytes of a header that says more about the next file, as its long name."""

_REPACK: Final = "pack the files of the model again, as with 'tar -cf'"

_DIGITS: Final = {8: re.compile(rb"[0-7]{0,12}"), 10: re.compile(rb"[0-9]{1,19}")}
"""Of numbers in base 8 and in base 10."""
_PLAIN: Final = (b"0", b"\0", b"7")
_FOLDER: Final = b"5"
_SAYS_MORE: Final = (b"x", b"g", b"L")
_UNSAFE: Final = {b"1": "a hard link", b"2": "a link", b"3": "a device", b"4": "a device", b"6": "a pipe"}


class TarHeader(NamedTuple):
    """What one block of 512 bytes says. ``kind``: its type flag; ``size``: of the content that follows."""

    name: str
    kind: bytes
    size: int


def read_tar(first: bytes, source: ByteSource) -> dict[str, Array]:
    """The content of every file by its name, in order; nothing is written anywhere.

    ``first``: the first block, which `is_tar`; ``source``: what comes after it.

    Raises CorruptModel, UnsafePath for what is no plain file or leads out of the archive, LimitExceeded, Unsupported.
    """
    found: dict[str, Array] = {}
    for written, content in _files(first, source):
        name = entry_name(written)
        if name is None:
            continue
        if not name:
            raise CorruptModel("the archive has a file without a name", hint=_REPACK)
        if name in found:
            raise CorruptModel(f"the archive has two files {name!r}", hint=_REPACK)
        found[name] = content
    source.check_end()
    return found


def is_tar(block: bytes) -> bool:
    """Whether a file that begins with these bytes is a tar."""
    try:
        return len(block) == BLOCK and _header(block) is not None
    except TractError:
        return False


def _files(first: bytes, source: ByteSource) -> Iterator[tuple[str, Array]]:
    """The name, as it is written, and the content of each plain file."""
    said: dict[str, str] = {}
    for header in _headers(first, source):
        if header.kind in _SAYS_MORE:
            said |= _more(header, source)
            continue
        name, size = said.get("path", header.name), header.size
        if "size" in said:
            size = _digits(said["size"].encode(), 10, "size")
        said = {}
        if header.kind == _FOLDER or (header.kind in _PLAIN and name.endswith("/")):
            entry_name(name)
            if size:
                raise CorruptModel(f"the archive has a folder {name[:80]!r} of {size} bytes, wanted 0", hint=_REPACK)
        elif header.kind in _PLAIN:
            yield name, _content(source, size, name)
        else:
            raise _refusal(header.kind, name)
    if said:
        raise CorruptModel("the archive ends after a header that says more about the next file", hint=DAMAGED)


def _headers(block: bytes, source: ByteSource) -> Iterator[TarHeader]:
    """All headers up to the block of zeros that ends the archive."""
    for _ in range(MAX_HEADERS):
        if len(block) < BLOCK:
            raise CorruptModel("the archive is cut off: the zeros at its end are missing", hint=DAMAGED)
        header = _header(block)
        if header is None:
            return
        count_node()
        yield header
        block = source.take(BLOCK).tobytes()
    raise LimitExceeded(f"the archive has more than {MAX_HEADERS} headers", hint="a model has one file per tensor")


def _header(block: bytes) -> TarHeader | None:
    """``None`` for a block of zeros. Raises CorruptModel unless its checksum is right."""
    if block == _ZEROS:
        return None
    others = block[:148] + b" " * 8 + block[156:]
    difference = sum(others) - _digits(block[148:156], 8, "checksum")
    if difference and difference != 256 * sum(byte > 127 for byte in others):  # as old tools added up signed bytes
        raise CorruptModel("a header of the archive has a wrong checksum", hint=DAMAGED)
    name = _text(block[:100])
    if block[257:263] == b"ustar\0" and block[345]:
        name = f"{_text(block[345:500])}/{name}"
    return TarHeader(name, block[156:157], _size(block[124:136]))


def _size(field: bytes) -> int:
    """In octal digits, or, as GNU writes large numbers, in bytes after one that has its highest bit set."""
    if field[0] & 0x80:
        return int.from_bytes(field[1:], "big") if field[0] == 0x80 else -1
    return _digits(field, 8, "size")


def _digits(field: bytes, base: int, what: str) -> int:
    text = field.strip(b" \0")
    if not _DIGITS[base].fullmatch(text):
        raise CorruptModel(f"a header of the archive has the {what} {text[:20]!r}, wanted digits", hint=DAMAGED)
    return int(text or b"0", base)


def _text(field: bytes) -> str:
    """A name; what comes after a NUL fills the field."""
    return _decoded(field.partition(b"\0")[0])


def _decoded(field: bytes) -> str:
    try:
        return field.decode()
    except UnicodeDecodeError:
        raise CorruptModel(f"the archive names a file {field[:80]!r}, which is not UTF-8", hint=_REPACK) from None


def _content(source: ByteSource, size: int, name: str) -> Array:
    """The bytes of a file; those that fill its last block are skipped."""
    limits = limits_now()
    if not 0 <= size <= limits.max_bytes:
        raise LimitExceeded(f"the archive says that {name[:80]!r} has {size} bytes, {limits.max_bytes} are allowed")
    content = source.take(size)
    padding = source.take(-size % BLOCK)
    if len(content) + len(padding) < size + -size % BLOCK:
        raise CorruptModel(
            f"the archive is cut off: it says that {name[:80]!r} has {size} bytes, {len(content)} are there",
            hint=DAMAGED,
        )
    return content


def _more(header: TarHeader, source: ByteSource) -> dict[str, str]:
    """What an extended header says about the next file: its long name in GNU's form, anything in that of POSIX."""
    if not 0 <= header.size <= MAX_EXTENDED:
        raise LimitExceeded(f"the archive has a header of {header.size} bytes, {MAX_EXTENDED} are allowed")
    content = _content(source, header.size, header.name).tobytes()
    if header.kind == b"L":
        return {"path": _text(content)}
    said = dict(_records(content))
    sparse = next((key for key in said if key.startswith("GNU.sparse")), None)
    if sparse is not None:
        raise _refusal(b"S", header.name)
    known = {key: _decoded(value) for key, value in said.items() if key in ("path", "size")}
    if known and header.kind == b"g":
        raise Unsupported("the archive has one header with the name or size of all its files", hint=_REPACK)
    return known


def _records(content: bytes) -> Iterator[tuple[str, bytes]]:
    """The lines ``length key=value`` of a pax header; the length is that of the whole line."""
    while content:
        length, _, _ = content[:8].partition(b" ")
        size = _digits(length, 10, "length of a line")
        key, equals, value = content[len(length) + 1 : size - 1].partition(b"=")
        if not (len(length) < size <= len(content) and equals and content[size - 1 : size] == b"\n"):
            raise CorruptModel("an extended header of the archive is damaged", hint=DAMAGED)
        yield _decoded(key), value
        content = content[size:]


def _refusal(kind: bytes, name: str) -> TractError:
    found = _UNSAFE.get(kind)
    if found is not None:
        return UnsafePath(f"the archive has {found}, {name[:80]!r}, wanted plain files", hint=_REPACK)
    if kind == b"S":
        return Unsupported(f"the archive has {name[:80]!r} as a sparse file", hint=_REPACK)
    return Unsupported(f"the archive has an entry {name[:80]!r} of kind {kind!r}, wanted plain files", hint=_REPACK)
