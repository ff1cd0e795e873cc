"""What a process does that compiles for another one: it answers modules with object files until nobody asks any more.

It starts in a twentieth of a second, as it imports LLVM and little else. A question is the number of bytes of a text,
and the text; the answer is the number of bytes of the object file, and the file: none where it could not be made.
"""

from __future__ import annotations

import signal
import sys
from struct import Struct
from typing import BinaryIO, Final, NamedTuple

SIZE: Final = Struct("<Q")
READY: Final = b"tract"
"""What comes before the first answer: it is we who answer, and no other program of this name."""


class Wanted(NamedTuple):
    """The instruction set to compile for."""

    architecture: str
    processor: str
    features: str


def main() -> None:
    """Answer. The arguments of the command end with the instruction set."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it ends when whoever asks ends it
    answers = sys.stdout.buffer
    answers.write(READY)
    answers.flush()
    _answer(sys.stdin.buffer, answers, Wanted(*sys.argv[-3:]))


def _answer(questions: BinaryIO, answers: BinaryIO, wanted: Wanted) -> None:
    from tract_llvm.objects.target import object_code

    while head := questions.read(SIZE.size):
        text = questions.read(*SIZE.unpack(head)).decode()
        try:
            code = object_code(text, wanted)
        except Exception:  # whoever asked finds the same error, and has somebody to tell
            code = b""
        answers.write(SIZE.pack(len(code)) + code)
        answers.flush()
