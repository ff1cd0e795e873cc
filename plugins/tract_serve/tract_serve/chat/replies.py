"""What answers look like to a client: whole, and while they are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import time
from typing import TYPE_CHECKING, Any, Protocol

from tract_core.frozen import frozen
from tract_serve.chat.answers import AnswerPiece, AskedText
from tract_serve.chat.calls import CallReader, Read, new_id
from tract_serve.chat.logprobs import in_chat, in_texts
from tract_serve.chat.served import ServedText
from tract_serve.chat.tools import Tools

if TYPE_CHECKING:
    from tract_transformers.generation.answer import Answer
    from tract_transformers.sampling.sampler import TokenChance


class Reply(Protocol):
    """The form of the answers of one request."""

    def whole(self, answers: Sequence[Answer]) -> dict[str, Any]:
        """All of them; without usage."""
        ...

    def begin(self, number: int) -> dict[str, Any] | None:
        """What is sent before the first piece of an answer, if anything: a choice."""
        ...

    def choices(self, piece: AnswerPiece) -> Iterator[dict[str, Any]]:
        """The choices that a piece of an answer is sent as."""
        ...

    def chunk(self, choices: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """What is sent of some choices."""
        ...


@frozen
class Named:
    """What is the same in all that is sent of a request. ``id``: of the answer; ``kind``: of object.

    ``created``: seconds since 1970; ``model``: its name.
    """

    id: str
    kind: str
    created: int
    model: str

    @staticmethod
    def new(front: str, kind: str, served: ServedText) -> Named:
        """With a fresh name."""
        return Named(front + new_id(24).removeprefix("call_"), kind, int(time()), served.name)

    def of(self, choices: Sequence[dict[str, Any]], kind: str | None = None) -> dict[str, Any]:
        """An object with some choices."""
        return {
            "id": self.id,
            "object": kind or self.kind,
            "created": self.created,
            "model": self.model,
            "choices": [*choices],
        }


class ChatReply:
    """Messages."""

    def __init__(self, served: ServedText, tools: Tools, *, forced: bool, logprobs: bool) -> None:
        """``tools``: that may be called; ``forced``: whether answers were held to a form of calls."""
        self._named = Named.new("chatcmpl-", "chat.completion", served)
        self._served, self._tools, self._forced, self._logprobs = served, tools, forced, logprobs
        self._readers: dict[int, CallReader] = {}
        self._calls: dict[int, int] = {}

    def whole(self, answers: Sequence[Answer]) -> dict[str, Any]:
        """As the protocol says."""
        return self._named.of([self._choice(number, one) for number, one in enumerate(answers)])

    def _choice(self, number: int, answer: Answer) -> dict[str, Any]:
        reader = self._reader()
        parts = [Read(answer.text)] if reader is None else [reader.take(answer.text), reader.finish()]
        text, calls = "".join(one.text for one in parts), [call.told() for one in parts for call in one.calls]
        message: dict[str, Any] = {"role": "assistant", "content": None if calls and not text.strip() else text}
        message["refusal"] = None
        if calls:
            message["tool_calls"] = calls
        return {
            "index": number,
            "message": message,
            "logprobs": self._told(answer.logprobs or ()),
            "finish_reason": _finish(answer, calls=bool(calls)),
        }

    def begin(self, number: int) -> dict[str, Any]:
        """As the protocol says: who writes."""
        return self._delta(number, {"role": "assistant", "content": ""})

    def choices(self, piece: AnswerPiece) -> Iterator[dict[str, Any]]:
        """As the protocol says."""
        number = piece.number
        reader = self._readers.get(number)
        if reader is None and (made := self._reader()) is not None:
            reader = self._readers[number] = made
        read = Read(piece.text) if reader is None else reader.take(piece.text)
        if read.text or piece.chances:
            yield self._delta(number, {"content": read.text}, piece.chances)
        yield from self._of_calls(number, read)
        if piece.answer is None:
            return
        if reader is not None:
            rest = reader.finish()
            if rest.text:
                yield self._delta(number, {"content": rest.text})
            yield from self._of_calls(number, rest)
        yield self._delta(number, {}) | {"finish_reason": _finish(piece.answer, calls=number in self._calls)}

    def chunk(self, choices: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """As the protocol says."""
        return self._named.of(choices, "chat.completion.chunk")

    def _reader(self) -> CallReader | None:
        if not self._tools.known:
            return None
        return CallReader([one.name for one in self._tools.known], self._served.family, forced=self._forced)

    def _of_calls(self, number: int, read: Read) -> Iterator[dict[str, Any]]:
        for call in read.calls:
            place = self._calls.get(number, 0)
            self._calls[number] = place + 1
            yield self._delta(number, {"tool_calls": [{"index": place, **call.told()}]})

    def _delta(self, number: int, delta: dict[str, Any], chances: Sequence[TokenChance] = ()) -> dict[str, Any]:
        logprobs = self._told(chances) if chances else None
        return {"index": number, "delta": delta, "logprobs": logprobs, "finish_reason": None}

    def _told(self, chances: Sequence[TokenChance]) -> dict[str, Any] | None:
        return {"content": in_chat(self._served.names, chances), "refusal": None} if self._logprobs else None


class TextReply:
    """Texts that go on."""

    def __init__(self, served: ServedText, echoed: Sequence[str], *, logprobs: bool) -> None:
        """``echoed``: the prompt of each answer, or nothing."""
        self._named = Named.new("cmpl-", "text_completion", served)
        self._served, self._echoed, self._logprobs = served, echoed, logprobs
        self._offsets: dict[int, int] = {}

    def whole(self, answers: Sequence[Answer]) -> dict[str, Any]:
        """As the protocol says."""
        return self._named.of(
            [
                self._choice(number, self._echoed[number] + one.text, one.logprobs or (), _finish(one))
                for number, one in enumerate(answers)
            ]
        )

    def begin(self, number: int) -> dict[str, Any] | None:
        """As the protocol says: the prompt, where that is wanted."""
        return self._choice(number, self._echoed[number]) if self._echoed[number] else None

    def choices(self, piece: AnswerPiece) -> Iterator[dict[str, Any]]:
        """As the protocol says."""
        finish = None if piece.answer is None else _finish(piece.answer)
        yield self._choice(piece.number, piece.text, piece.chances, finish)

    def chunk(self, choices: Sequence[dict[str, Any]]) -> dict[str, Any]:
        """As the protocol says."""
        return self._named.of(choices)

    def _choice(
        self, number: int, text: str, chances: Sequence[TokenChance] = (), finish: str | None = None
    ) -> dict[str, Any]:
        logprobs: dict[str, Any] | None = None
        if self._logprobs and chances:
            offset = self._offsets.get(number, len(self._echoed[number]))
            logprobs, self._offsets[number] = in_texts(self._served.names, chances, offset)
        return {"index": number, "text": text, "logprobs": logprobs, "finish_reason": finish}


def _finish(answer: Answer, *, calls: bool = False) -> str:
    """Why an answer ended, by the interface's words."""
    if answer.finish_reason == "length":
        return "length"
    return "tool_calls" if calls else "stop"


def usage_of(asked: Sequence[AskedText], answers: Sequence[Answer]) -> dict[str, Any]:
    """The tokens of a request: each prompt counts once."""
    first = {one.prompt_number: answer for one, answer in reversed(list(zip(asked, answers, strict=True)))}
    prompts = sum(one.prompt_tokens for one in first.values())
    written = sum(len(one.tokens) for one in answers)
    return {
        "prompt_tokens": prompts,
        "completion_tokens": written,
        "total_tokens": prompts + written,
        "prompt_tokens_details": {"cached_tokens": sum(one.cached_tokens for one in first.values())},
    }
