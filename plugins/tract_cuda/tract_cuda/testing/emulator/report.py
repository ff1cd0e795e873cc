"""What went wrong in a launch, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tract_core.frozen import frozen
from tract_cuda.testing.emulator.errors import EmulationError
from tract_cuda.testing.emulator.machine.access import THREAD_BITS
from tract_cuda.testing.emulator.machine.layout import AT_BARRIER, GROUP, PROBLEMS, TOGETHER

_WRITES: Final = 1


@frozen
class Found:
    """What the machine kept. ``block``, ``thread``: where it happened, along all axes.

    ``line``: of the text; ``address``, ``bytes``: of the access; ``first``, ``second``: what else there is to say.
    """

    what: str
    line: int
    block: tuple[int, int, int]
    thread: tuple[int, int, int]
    address: int
    bytes: int
    first: int
    second: int


MESSAGES: Final[Mapping[str, str]] = {
    "outside": "it {does} {bytes} bytes at {address:#x}, which no allocation has",
    "misaligned": "it {does} {bytes} bytes at {address:#x}, which is no multiple of {bytes}",
    "read_only": "it writes {bytes} bytes at {address:#x}, which may only be read",
    "unwritten_global": "it reads memory at {address:#x} that nobody wrote",
    "race_of_blocks": "it {does} memory at {address:#x}, which another block touches too, and nothing orders both",
    "race_global": "it touches memory at {address:#x}, which thread {other} touches too, with no barrier between",
    "outside_shared": "it {does} {bytes} bytes at {address} of shared memory, which ends before",
    "misaligned_shared": "it {does} {bytes} bytes at {address} of shared memory, which is no multiple of {bytes}",
    "unwritten_shared": "it reads {bytes} bytes of shared memory of which that at {address} was written by nobody",
    "race_writes": "it writes shared memory at {address}, which thread {other} writes too, with no barrier between",
    "race_write_after_read": "it writes shared memory at {address}, which thread {other} reads, "
    "with no barrier between",
    "race_read_after_write": "it reads shared memory at {address}, which thread {other} writes, "
    "with no barrier between",
    "pending": "it touches shared memory at {address}, to which a copy of thread {other} is on its way",
    "made": "it uses a barrier in shared memory that thread {other} makes, with no barrier of the block between",
    "arrivals": "it is one more than the barrier at {address} of shared memory waits for",
    "barrier_counts": "it comes to a barrier with other numbers than may be: {first} and {second}",
    "barrier_lines": "it waits at a barrier, and the first thread of its warp at another, at line {first}",
    "stuck": "it waits for {waits}, which never comes: others of its block are elsewhere, or over",
    "endless": "it goes on and on, and no thread gets anywhere",
    "mask": "it does something together with lanes among which it is not: {first:#x}",
    "local": "it {does} {bytes} bytes at {address} of its own memory, which is outside or no multiple of {bytes}",
    "copies": "it has more copies on their way than can be kept",
    "copied": "it copies {first} bytes at {address:#x}, of {bytes} at most",
    "trap": "it gives up (trap)",
}
_WAITS: Final = {AT_BARRIER: "a barrier", TOGETHER: "the lanes of its warp", GROUP: "the threads of its group of warps"}


def error_of(found: Found, name: str, lines: Sequence[str], order: int) -> EmulationError:
    """The error for what the machine found. ``lines``: the text of the PTX."""
    text = lines[found.line - 1].strip() if 0 < found.line <= len(lines) else ""
    other = found.first & ((1 << THREAD_BITS) - 1)
    message = MESSAGES[found.what].format(
        does="writes" if found.first & _WRITES else "reads",
        address=found.address,
        bytes=found.bytes,
        first=found.first,
        second=found.second,
        other=other,
        waits=_WAITS.get(found.first, "others"),
    )
    place = f"line {found.line} of the PTX, '{text}'" if text else "before its first instruction"
    where = f"kernel '{name}', block {_spot(found.block)}, thread {_spot(found.thread)}"
    return EmulationError(f"{message}; {place}", where=where, hint=f"run it in order {order} to see it again")


def _spot(place: tuple[int, int, int]) -> str:
    return f"({', '.join(map(str, place))})"


assert set(MESSAGES) == set(PROBLEMS[1:])
