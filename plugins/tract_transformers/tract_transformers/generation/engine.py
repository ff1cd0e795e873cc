"""An engine: texts are written at the same time, each as if it were alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Condition, Event, Lock, Semaphore
from typing import TYPE_CHECKING, Any, Final

from tract_core.errors import InputError, LimitExceeded
from tract_transformers.generation.answer import Answer
from tract_transformers.generation.steps import SteppedPast, Steps
from tract_transformers.generation.writing import Writing
from tract_transformers.language_model.paged import PagedTexts
from tract_transformers.language_model.past import Past

if TYPE_CHECKING:
    from tract_transformers.generation.text_model import Prompt, TextModel

AHEAD: Final = 256
"""How many pieces of text are written ahead of whoever reads them."""


class Engine:
    """Writes several texts at the same time. Use it in a ``with`` statement, or `close` it.

    Texts that begin alike share what was computed for that. Each has the tokens that it would have alone.
    """

    def __init__(
        self, model: TextModel, *, texts: int = 8, waiting: int = 1024, chunk: int = 256, pages: int | None = None
    ) -> None:
        """``texts``: at the same time, at most. ``waiting``: further ones that may wait for their turn.

        ``chunk``: tokens of a prompt that are read at once, while others wait. ``pages``: how many there may be, of
        64 positions each, for all texts together; any number unless given.

        Raises InputError for numbers that make no sense, and for a model that keeps no pages.
        """
        for name, value in (("texts", texts), ("waiting", waiting), ("chunk", chunk), ("pages", pages)):
            if value is not None and (not isinstance(value, int) or value < 1):  # pyright: ignore[reportUnnecessaryIsInstance]: of users
                raise InputError(f"{name} is {value!r}, wanted a number from 1 on")
        if model.description.pages is None:
            hint = "its past goes through inputs and outputs: write one text after the other by generate()"
            raise InputError("the model keeps no pages", hint=hint)
        self._model, self._chunk, self._most = model, chunk, waiting + texts
        self._texts = PagedTexts(model.runnable, model.description, most=pages)
        self._steps = Steps(self._texts)
        self._room = _Room(pages, self._texts.pages.size)
        self._workers = ThreadPoolExecutor(texts, "tract-text")
        self._lock, self._open = Lock(), set[EngineText]()
        self._is_over = False

    def submit(self, prompt: Prompt, **wishes: Any) -> EngineText:
        """Have a text written. Returns an iterator of its pieces. The parameters are those of `TextModel.generate`.

        Raises as that does, and LimitExceeded where too many wait already, or where pages can never suffice.
        """
        given: dict[str, Any] = {"chunk": self._chunk, **wishes}
        asked = self._model.asked(prompt, **given)
        tokens = len(asked.prompt) + asked.wishes.max_tokens
        self._room.check(tokens)
        with self._lock:
            if self._is_over:
                raise InputError("the engine is closed")
            if len(self._open) >= self._most:
                raise LimitExceeded(f"{len(self._open)} texts are written or wait already", hint="ask again later")
            request = EngineText(asked.writing(self, self._model.tokenizer), self._steps)
            self._open.add(request)
            self._workers.submit(self._write, request, tokens)
        return request

    def past(self) -> SteppedPast:
        """The past of a text that this engine computes."""
        return SteppedPast(self._texts, self._steps)

    def give_back(self, past: Past) -> None:
        """Nobody goes on with a past."""
        past.close()

    def close(self) -> None:
        """End all texts, and take no more."""
        with self._lock:
            self._is_over = True
            left = list(self._open)
        for request in left:
            request.close()
        self._workers.shutdown(wait=True)
        self._steps.close()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, request: EngineText, tokens: int) -> None:
        """Write a text, in a thread of its own."""
        try:
            with self._room.of(tokens):
                request.write()
        finally:
            with self._lock:
                self._open.discard(request)


class EngineText(Iterator[str]):
    """A text that an engine writes: an iterator of its pieces, which ends when it does, or when it is closed."""

    def __init__(self, writing: Writing, steps: Steps) -> None:
        """For `Engine.submit`."""
        self._writing, self._steps = writing, steps
        self._pieces = SimpleQueue[str | BaseException | None]()
        self._ahead = Semaphore(AHEAD)
        self._is_closed = Event()
        self._is_read = False

    def __next__(self) -> str:
        """The next piece, as soon as it is there. Raises what writing it raised."""
        piece = None if self._is_read else self._pieces.get()
        if isinstance(piece, str):
            self._ahead.release()
            return piece
        self._is_read = True
        if piece is None:
            raise StopIteration
        raise piece

    @property
    def answer(self) -> Answer:
        """What was written so far, and at the end all of it."""
        return self._writing.answer

    def close(self) -> None:
        """Write no more of it."""
        self._is_closed.set()
        self._ahead.release()

    def write(self) -> None:
        """Write it, piece by piece. For the engine."""
        self._steps.begin()
        try:
            for piece in self._writing if not self._is_closed.is_set() else ():
                self._wait_for_reader()
                self._pieces.put(piece)
                if self._is_closed.is_set():
                    break
            self._writing.close()
            self._pieces.put(None)
        except BaseException as error:  # whoever reads is told, whatever it is
            self._writing.close()
            self._pieces.put(error)
        finally:
            self._steps.end()

    def _wait_for_reader(self) -> None:
        """Return once there is room for a piece, or the text is closed; steps of other texts go on meanwhile."""
        if not self._ahead.acquire(blocking=False):
            self._steps.end()
            self._ahead.acquire()
            self._steps.begin()


class _Room:
    """Pages that texts may need, promised to each before it begins, in the order in which they ask."""

    def __init__(self, most: int | None, size: int) -> None:
        self._most, self._size, self._free = most, size, most or 0
        self._line: deque[object] = deque()
        self._changed = Condition()

    def check(self, tokens: int) -> None:
        """Raises LimitExceeded where all pages do not suffice for so many tokens."""
        if self._most is not None and self._needed(tokens) > self._most:
            problem = f"a text of up to {tokens} tokens needs {self._needed(tokens)} pages, {self._most} are allowed"
            raise LimitExceeded(problem, hint="ask for fewer tokens (max_tokens), or allow more pages")

    def _needed(self, tokens: int) -> int:
        """With one more, for a page that was shared and is written to."""
        return -(-tokens // self._size) + 1

    @contextmanager
    def of(self, tokens: int) -> Generator[None]:
        """Inside, there are pages for so many tokens."""
        if self._most is None:
            yield
            return
        me, needed = object(), self._needed(tokens)
        with self._changed:
            self._line.append(me)
            self._changed.wait_for(lambda: self._line[0] is me and self._free >= needed)
            self._line.popleft()
            self._free -= needed
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._free += needed
                self._changed.notify_all()
