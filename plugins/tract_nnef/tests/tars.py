"""Tars made by hand, block by block, also those that no tool writes."""

from __future__ import annotations

import zlib
from functools import lru_cache

BLOCK = 512
END = bytes(2 * BLOCK)


def header(name, size=0, kind=b"0", *, magic=b"ustar\x0000", prefix=b"", link=b"", checksum=None):
    """``size``: a number, or the twelve bytes of the field."""
    field = size if isinstance(size, bytes) else b"%011o\0" % size
    name = name if isinstance(name, bytes) else name.encode()
    block = name.ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + field + b"0" * 11 + b"\0" + b" " * 8
    block += kind + link.ljust(100, b"\0") + magic + bytes(64) + bytes(16) + prefix.ljust(155, b"\0") + bytes(12)
    assert len(block) == BLOCK
    digits = b"%06o\0 " % sum(block) if checksum is None else checksum
    return block[:148] + digits + block[156:]


def entry(name, content=b"", kind=b"0", **fields):
    return header(name, len(content), kind, **fields) + content + bytes(-len(content) % BLOCK)


def pax(name_or_lines, *, kind=b"x"):
    """An extended header. The argument: its bytes, or its keys and values."""
    lines = name_or_lines
    if not isinstance(lines, bytes):
        lines = b"".join(line(key, value) for key, value in lines.items())
    return entry("PaxHeader", lines, kind)


def line(key, value):
    text = f" {key}={value}\n".encode()
    size = len(text) + 1
    while len(str(size)) + len(text) != size:
        size += 1
    return str(size).encode() + text


GRAPH = entry("graph.nnef", b"version 1.0;\n")


def deflated(*pieces):
    """The pieces one after the other in gzip without its end; each is a pair of bytes and how often they come."""
    content = b"\x1f\x8b\x08" + bytes(7)
    return content + b"".join(_packed(piece) * count for piece, count in pieces)


@lru_cache(8)
def _packed(piece):
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    return packer.compress(piece) + packer.flush(zlib.Z_FULL_FLUSH)
