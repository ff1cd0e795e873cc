"""What was said, and when."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tract_core.frozen import frozen
from tract_transformers.generation.speech.tokens import SECONDS, SpeechTokens
from tract_transformers.tokenizers.protocol import Tokenizer


@frozen
class Segment:
    """A part of what was said: its ``text``, from ``start`` to ``end`` in seconds, and its ``tokens``."""

    start: float
    end: float
    text: str
    tokens: tuple[int, ...]


@frozen
class Transcript:
    """``str(transcript)`` is ``transcript.text``. ``language``: in which it was said, as ``"en"``.

    ``segments``: its parts. Where nobody asked for times, and for sound of one window, there is one.
    """

    text: str
    language: str
    segments: tuple[Segment, ...]

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, Any]:
        """The fields, for JSON."""
        parts = [{"start": one.start, "end": one.end, "text": one.text} for one in self.segments]
        return {"text": self.text, "language": self.language, "segments": parts}


@frozen
class Window:
    """What a model wrote for a window of sound: ``segments``, and how many seconds of it are done with."""

    segments: tuple[Segment, ...]
    seconds: float


def window_of(
    written: Sequence[int], begin: float, seconds: float, tokens: SpeechTokens, tokenizer: Tokenizer
) -> Window:
    """The parts of an answer. ``begin``, ``seconds``: where its window begins, and how long its sound is.

    Where the answer ends in the middle of a part, that is read again with the next window.
    """
    first = tokens.first_time

    def time(token: int) -> float:
        return (token - first) * SECONDS

    def part(held: Sequence[int], start: float, end: float) -> Segment:
        words = tuple(one for one in held if one < first)
        low, high = (begin + min(one, seconds) for one in (start, end))
        return Segment(round(low, 2), round(max(low, high), 2), tokenizer.decode(words), words)

    pieces = list(_pieces(written, first))
    whole = [one for one in pieces if len(one) > 1 and one[0] >= first and one[-1] >= first]
    if not whole or len(pieces) == 1:
        times = [time(one) for one in written if one >= first]
        start, end = times[-2:] if len(times) > 1 else (*(times or [0.0]), seconds)
        return Window((part(written, start, end),), seconds)
    done = seconds if pieces[-1] is whole[-1] else time(whole[-1][-1])
    segments = tuple(part(one, time(one[0]), time(one[-1])) for one in whole)
    return Window(segments, done if 0 < done < seconds else seconds)


def _pieces(written: Sequence[int], first: int) -> Iterator[list[int]]:
    """An answer, cut between each two times that follow on one another."""
    held: list[int] = []
    for token in written:
        if held and token >= first and held[-1] >= first:
            yield held
            held = []
        held.append(token)
    if held:
        yield held
