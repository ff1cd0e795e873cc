"""The bytes of a file, read from the front. Whatever a count says is compared with the bytes that are left first."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from mmap import mmap
from typing import Any, Final

from tract_core.errors import CorruptModel, LimitExceeded
from tract_core.limits import LoadLimits, check_time

_U32: Final = struct.Struct("<I")
_U64: Final = struct.Struct("<Q")

OFTEN: Final = 4096
"""After so many values, it is asked whether there is time left."""


def numbers_in_time(count: int) -> Iterator[int]:
    """0, 1, 2 ... before ``count``. Raises LimitExceeded when time is up."""
    for number in range(count):
        if number % OFTEN == 0:
            check_time()
        yield number


class Cursor:
    """A place in ``content``, which moves on with all that is read. ``at``: in bytes from its beginning.

    What is read this way may take as many bytes as the limits allow for a file without its weights.
    """

    def __init__(self, content: mmap | bytes, limits: LoadLimits) -> None:
        self.content = content
        self.limits = limits
        self.at = 0

    @property
    def left(self) -> int:
        """Bytes behind the place."""
        return len(self.content) - self.at

    def take(self, count: int, what: str) -> int:
        """Move on by that many bytes, and say where they begin. Raises CorruptModel where there are fewer."""
        if count > self.left:
            raise CorruptModel(f"the file ends in {what}: {count} bytes are wanted, {self.left} are left")
        first, self.at = self.at, self.at + count
        if self.at > self.limits.max_parsed_bytes:
            raise LimitExceeded(
                f"what the file says of the model takes more than {self.limits.max_parsed_bytes} bytes",
                hint="a file that says so much can be loaded with LoadLimits(max_parsed_bytes=...)",
            )
        return first

    def u32(self, what: str) -> int:
        """An integer of 32 bits."""
        return _U32.unpack_from(self.content, self.take(4, what))[0]

    def u64(self, what: str) -> int:
        """An integer of 64 bits."""
        return _U64.unpack_from(self.content, self.take(8, what))[0]

    def number(self, form: struct.Struct, what: str) -> Any:
        """A number of any form."""
        return form.unpack_from(self.content, self.take(form.size, what))[0]

    def count(self, size: int, what: str) -> int:
        """How many things follow. Raises CorruptModel where they would not fit, with ``size`` bytes each at least."""
        count = self.u64(what)
        if count * size > self.left:
            raise CorruptModel(f"{what} is {count}, which the {self.left} bytes that are left cannot hold")
        return count

    def text(self, what: str) -> str:
        """A text. Bytes that are no UTF-8 become lone surrogates, as Python has them in names of files."""
        length = self.count(1, f"the length of {what}")
        first = self.take(length, what)
        return self.content[first : first + length].decode("utf-8", "surrogateescape")

    def texts(self, count: int, what: str) -> tuple[str, ...]:
        """Several texts. Raises LimitExceeded when time is up."""
        return tuple(self.text(what) for _ in numbers_in_time(count))

    def name(self, what: str, most: int) -> str:
        """A text that names something. Raises CorruptModel for one that is longer, or no UTF-8."""
        found = self.text(what)
        if len(found) > most or not found:
            raise CorruptModel(f"{what} has {len(found)} characters, wanted 1 to {most}")
        if any("\ud800" <= letter <= "\udfff" for letter in found):
            raise CorruptModel(f"{what} is no UTF-8: {found!r:.80}")
        return found
