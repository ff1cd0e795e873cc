"""The answers of one request while they are written: from the threads of an engine to the thread that sends them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from tract_core.frozen import frozen
from tract_serve.chat.errors import failed
from tract_serve.chat.turns import Client

if TYPE_CHECKING:
    from tract_transformers.generation.answer import Answer
    from tract_transformers.sampling.sampler import TokenChance

    from tract_serve.chat.served import ServedText, WrittenText


QUICK: Final = 4096
"""Tokens of a prompt with which an answer is begun in the thread that sends: to another one and back takes longer."""

PROMPT: Final = "prompt"
"""The draft that is no model."""


@frozen
class AskedText:
    """An answer that is wanted: the tokens of its ``prompt``, and ``wishes`` as `TextModel.generate` takes them.

    ``prompt_number``: which of the request's prompts it is.
    """

    prompt: Any
    wishes: dict[str, Any]
    prompt_number: int = 0

    @property
    def is_quick(self) -> bool:
        """Whether it is begun in no time: no text is cut into tokens, no grammar is read, no other model asked."""
        slow = {"schema", "grammar"} & self.wishes.keys() or self.wishes.get("draft", PROMPT) != PROMPT
        return not slow and isinstance(self.prompt, list) and len(cast("list[int]", self.prompt)) <= QUICK


@frozen
class AnswerPiece:
    """What came of the answer ``number``: a ``text``, with what is told of its tokens; at its end, the ``answer``."""

    number: int
    text: str = ""
    chances: Sequence[TokenChance] = ()
    answer: Answer | None = None


class Answers:
    """The answers of one request. Used by the thread of the event loop; to be closed in the end.

    Of several answers to one prompt, the first one reads it; the others begin when it writes.
    """

    def __init__(self, served: ServedText, asked: Sequence[AskedText], client: Client, *, listens: bool) -> None:
        """``listens``: whether pieces are wanted, and not the ends alone."""
        self._served, self._client, self._listens = served, client, listens
        self._loop = asyncio.get_running_loop()
        self._pieces: deque[AnswerPiece | BaseException] = deque()
        self._news = asyncio.Event()
        self._left = len(asked)
        self._read: dict[int, asyncio.Event] = {}
        self._begun = asyncio.Event()
        self._tasks = [self._loop.create_task(self._write(number, one)) for number, one in enumerate(asked)]

    async def begun(self) -> None:
        """Return once the first answer is being written. Raises what keeps it from that."""
        await self._begun.wait()
        if self._pieces and isinstance(self._pieces[0], BaseException):
            raise self._pieces[0]

    async def news(self) -> list[AnswerPiece]:
        """What has come since the last time, waiting for something; nothing at the end. Raises what was raised."""
        while not self._pieces and self._left:
            self._news.clear()
            await self._news.wait()
        found = [*self._pieces]
        self._pieces.clear()
        for one in found:
            if isinstance(one, BaseException):
                raise one
        return [one for one in found if isinstance(one, AnswerPiece)]

    async def all(self) -> list[Answer]:
        """The whole answers, in order. Raises what was raised."""
        found: dict[int, Answer] = {}
        while pieces := await self.news():
            found |= {one.number: one.answer for one in pieces if one.answer is not None}
        return [found[number] for number in sorted(found)]

    async def close(self) -> None:
        """Write no more of them."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _write(self, number: int, asked: AskedText) -> None:
        """Write one answer, when it is its turn. What it raises is told where pieces are."""
        read = self._read.get(asked.prompt_number)
        mine = read is None
        if read is None:
            read = self._read[asked.prompt_number] = asyncio.Event()
        try:
            if not mine:
                await read.wait()
            async with self._served.turns.of(self._client):
                self._give(await self._written(number, asked, read))
        except Exception as error:  # whoever waits is told, whatever it is
            self._give(failed(error))
        finally:
            read.set()
            self._left -= 1
            self._wake()

    async def _written(self, number: int, asked: AskedText, read: asyncio.Event) -> AnswerPiece:
        """The end of an answer, once it is there; its pieces are given meanwhile."""
        ended: asyncio.Future[None] = self._loop.create_future()
        logprobs, told_tokens, is_first = asked.wishes.get("logprobs") is not None, 0, True

        def told(text: WrittenText, piece: str | BaseException | None) -> None:
            """In the thread that writes."""
            nonlocal told_tokens, is_first
            if not isinstance(piece, str):
                self._call(_end, ended, piece)
                return
            if not self._listens:
                if is_first:
                    self._call(read.set)
                is_first = False
                return
            chances: Sequence[TokenChance] = ()
            if logprobs:
                chances = (text.answer.logprobs or ())[told_tokens:]
                told_tokens += len(chances)
            self._call(self._take, AnswerPiece(number, piece, chances), read)

        text = await self._submitted(asked, told)
        self._begun.set()
        try:
            await ended
            answer = text.answer
            self._served.count(answer)
            return AnswerPiece(number, chances=(answer.logprobs or ())[told_tokens:], answer=answer)
        finally:
            text.close()

    async def _submitted(self, asked: AskedText, told: Any) -> WrittenText:
        """The text, which is being written. Where nobody waits for it any more, it is closed."""
        submit = self._served.writer.submit
        if asked.is_quick:
            return submit(asked.prompt, told=told, **asked.wishes)
        submitting = self._served.apart(submit, asked.prompt, told=told, **asked.wishes)
        try:
            return await asyncio.shield(submitting)
        except asyncio.CancelledError:
            submitting.add_done_callback(_close)
            raise

    def _call(self, function: Any, *given: Any) -> None:
        """Have something done in the thread of the event loop, if that is still there."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(function, *given)

    def _take(self, piece: AnswerPiece, read: asyncio.Event) -> None:
        read.set()
        self._give(piece)

    def _give(self, piece: AnswerPiece | BaseException) -> None:
        self._pieces.append(piece)
        self._wake()

    def _wake(self) -> None:
        self._begun.set()
        self._news.set()


def _end(ended: asyncio.Future[None], error: BaseException | None) -> None:
    if ended.done():
        return
    if error is None:
        ended.set_result(None)
    else:
        ended.set_exception(error)


def _close(submitting: asyncio.Future[WrittenText]) -> None:
    if not submitting.cancelled() and submitting.exception() is None:
        submitting.result().close()
