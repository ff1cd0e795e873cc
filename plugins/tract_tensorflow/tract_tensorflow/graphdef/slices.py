"""Variables in several parts: which part a text names, and the keys under which checkpoints have parts."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.errors import CorruptModel

Part = tuple[tuple[int, int], ...]
"""For each axis where a part begins, and how long it is; a length of -1 is all of the axis."""


def part_named(text: str, shape: Sequence[int]) -> Part:
    """The part that a text names, as ``4 7 0,4:4,3``: the sizes of the whole, then the part. Raises CorruptModel."""
    *sizes, axes = text.split(" ")
    try:
        whole = [int(size) for size in sizes]
        found = tuple((0, -1) if one == "-" else _pair(one) for one in axes.split(":"))
    except ValueError:
        raise CorruptModel(f"{text[:200]!r} is no part of a variable, as '4 7 0,4:4,3'") from None
    if whole != list(shape):
        raise CorruptModel(f"a part of a variable of shape {whole[:64]} is wanted, it has {list(shape)}")
    return inside(found, shape)


def _pair(text: str) -> tuple[int, int]:
    start, length = text.split(",")
    return int(start), int(length)


def inside(part: Part, shape: Sequence[int]) -> Part:
    """A part with the lengths of whole axes. Raises CorruptModel for one that is not within the shape."""
    if len(part) != len(shape):
        raise CorruptModel(f"a part of {len(part)} axes is not of shape {list(shape)}")
    found = tuple(
        (0, size) if length == -1 else (start, length) for (start, length), size in zip(part, shape, strict=True)
    )
    if any(
        not (start >= 0 and 0 <= length <= size - start) for (start, length), size in zip(found, shape, strict=True)
    ):
        raise CorruptModel(f"the part {listed(found)} is not within the shape {list(shape)}")
    return found


def listed(part: Part) -> str:
    """A part, for messages."""
    return ":".join(f"{start},{length}" for start, length in part)


def places(part: Part) -> tuple[slice, ...]:
    """A part as NumPy takes it."""
    return tuple(slice(start, start + length) for start, length in part)


def key_of(name: str, part: Part) -> bytes:
    """The key of a part of a variable in the index of a checkpoint.

    Its pieces are written so that their bytes have the order of what they stand for: a 0, the name, the number of axes,
    and for each axis the two numbers of the part as the file has it (-1 for the length of a whole one).
    """
    found = [_number(0), _text(name.encode()), _number(len(part))]
    return b"".join([*found, *(_signed(value) for pair in part for value in pair)])


def _number(value: int) -> bytes:
    """How many bytes there are, and these, the highest first."""
    content = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes([len(content)]) + content


def _text(value: bytes) -> bytes:
    """Bytes up to 0 1; so that this is nowhere else, 0 is followed by 255, and 255 by 0."""
    return b"".join({0: b"\0\xff", 255: b"\xff\0"}.get(byte, bytes([byte])) for byte in value) + b"\0\1"


def _signed(value: int) -> bytes:
    """In as many bytes as it takes with 7 bits in each; in front as many bits as bytes, turned by the sign."""
    count = next(count for count in range(1, 11) if (value if value >= 0 else ~value) >> (7 * count - 1) == 0)
    front = ((1 << count) - 1) << (7 * count)  # as many ones as there are bytes, in front of the bits of the number
    return ((value & ((1 << (8 * count)) - 1)) ^ front).to_bytes(count, "big")
