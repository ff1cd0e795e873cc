"""One request for answers, from its prompt to what is sent: whole, or as events while it is written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final, TypeVar

import orjson

from tract_core.errors import InputError, LimitExceeded, PluginError, TractError
from tract_serve.chat.answers import Answers, AskedText
from tract_serve.chat.errors import WrongParameter, about
from tract_serve.chat.replies import Reply, usage_of
from tract_serve.chat.served import ServedText, ServedTexts
from tract_serve.chat.turns import Client
from tract_serve.chat.wishes import Wished
from tract_serve.errors import BadRequest, TooLate, error_object
from tract_serve.http.exchange import Answer as Sent
from tract_serve.http.exchange import HttpRequest
from tract_serve.logs import LOGGER

if TYPE_CHECKING:
    from tract_transformers.generation.answer import Answer

T = TypeVar("T")

EVENTS: Final = b"text/event-stream"


def client_of(request: HttpRequest, user: str) -> Client:
    """Who asks: by the token where the server asks for one, else by the address; and who of these it says it is."""
    shown = request.header(b"authorization")
    if request.serving.settings.tokens:
        return Client(shown, user)
    return Client(request.client, (shown, user))


async def while_there(request: HttpRequest, work: Coroutine[Any, Any, T]) -> T:
    """What some work gives. Where the client leaves meanwhile, it is given up. Raises BadRequest then, and TooLate."""
    working = asyncio.ensure_future(work)
    left = asyncio.ensure_future(request.left())
    seconds = request.serving.settings.limits.answer_s
    try:
        await asyncio.wait((working, left), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise BadRequest("the client left") if left.done() else too_late(seconds)
    finally:
        left.cancel()
        if not working.done():
            working.cancel()
            await asyncio.wait((working,))


def too_late(seconds: float) -> TooLate:
    """What is said of an answer that took too long."""
    return TooLate(f"the answer was not there within {seconds:g} seconds", hint="ask for fewer tokens (max_tokens)")


async def read(served: ServedTexts, client: Client, function: Callable[[], T]) -> T:
    """What a function makes of prompts, in a thread. Raises as `Turns.of`, and what it raises."""
    async with served.reading.of(client):
        return await served.apart(function)


async def answered(
    request: HttpRequest, served: ServedText, wished: Wished, asked: Callable[[], list[AskedText]], reply: Reply
) -> Sent:
    """The answer to a request. ``asked``: what is wanted, which takes a while to find out."""
    client, limits = client_of(request, wished.user), request.serving.settings.limits
    wanted = wished.count * wished.prompts
    if wanted > limits.waiting_of_one:
        raise WrongParameter(
            "n", f"asks for {wanted} answers to all prompts, at most {limits.waiting_of_one} are given"
        )
    served.turns.check(client, wanted)
    made = RunningAnswer(served, client, wished, reply, limits.answer_s)
    return await while_there(request, made.stream(asked) if wished.streams else made.whole(asked))


class RunningAnswer:
    """A request for answers while these are written."""

    def __init__(self, served: ServedText, client: Client, wished: Wished, reply: Reply, seconds: float) -> None:
        self.served, self.wished, self.reply, self.seconds = served, wished, reply, seconds
        self._client = client

    async def whole(self, asked: Callable[[], list[AskedText]]) -> Sent:
        """All answers, as JSON."""
        with self.served.request():
            several = await read(self.served, self._client, asked)
            answers = Answers(self.served, several, self._client, listens=False)
            try:
                found = await answers.all()
            except TractError as error:
                raise self.clear(error) from None
            finally:
                await answers.close()
            return Sent.of_json({**self.reply.whole(found), "usage": usage_of(several, found)})

    async def stream(self, asked: Callable[[], list[AskedText]]) -> Sent:
        """Events, once the first answer is being written."""
        with ExitStack() as stack:
            stack.enter_context(self.served.request())
            several = await read(self.served, self._client, asked)
            answers = Answers(self.served, several, self._client, listens=True)
            try:
                await answers.begun()
            except BaseException as error:
                await answers.close()
                raise self.clear(error) from None
            return Sent(Events(self, several, answers, stack.pop_all()), kind=EVENTS)

    def clear(self, error: BaseException) -> BaseException:
        """An error that says which parameter it is of, where that is what the answer was to look like."""
        if self.wished.form is not None and isinstance(error, (InputError, PluginError)):
            return about(self.wished.form.param, error)
        return about("max_tokens", error) if isinstance(error, LimitExceeded) else error


class Events:
    """The events of a request: an iterator of bytes. To be closed in the end, by `aclose`."""

    def __init__(self, running: RunningAnswer, asked: Sequence[AskedText], answers: Answers, stack: ExitStack) -> None:
        self._running, self._asked, self._answers, self._stack = running, asked, answers, stack
        self._until = asyncio.get_running_loop().time() + running.seconds
        self._found: dict[int, Answer] = {}
        self._is_begun = self._is_over = False

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> bytes:
        """Some events, as soon as there is something to say."""
        events = b""
        while not events:
            if self._is_over:
                raise StopAsyncIteration
            events = await self._events() if self._is_begun else self._first()
        return events

    def _first(self) -> bytes:
        self._is_begun = True
        first = [self._running.reply.begin(number) for number in range(len(self._asked))]
        return b"".join(self._event([one]) for one in first if one is not None)

    async def _events(self) -> bytes:
        try:
            async with asyncio.timeout_at(self._until):
                pieces = await self._answers.news()
            self._found |= {one.number: one.answer for one in pieces if one.answer is not None}
            events = [self._event([choice]) for one in pieces for choice in self._running.reply.choices(one)]
            return b"".join(events) if pieces else self._end()
        except TimeoutError:
            return self._last(too_late(self._running.seconds))
        except Exception as error:  # it is told, whatever it is
            return self._last(self._running.clear(error))

    async def aclose(self) -> None:
        """Write no more."""
        self._is_over = True
        await self._answers.close()
        self._stack.close()

    def _event(self, choices: Sequence[dict[str, Any]]) -> bytes:
        told = self._running.reply.chunk(choices)
        return _line({**told, "usage": None} if self._running.wished.usage else told)

    def _end(self) -> bytes:
        self._is_over = True
        if not self._running.wished.usage:
            return _DONE
        found = [self._found[number] for number in range(len(self._asked))]
        return _line({**self._running.reply.chunk([]), "usage": usage_of(self._asked, found)}) + _DONE

    def _last(self, error: BaseException) -> bytes:
        self._is_over = True
        if not isinstance(error, TractError):
            LOGGER.error("request.failed", exc_info=error)
        return _line({"error": error_object(error)})


_DONE: Final = b"data: [DONE]\n\n"


def _line(told: Any) -> bytes:
    return b"data: " + orjson.dumps(told) + b"\n\n"
