"""An engine: texts are written at the same time, each as if it were alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Condition, Event, Lock, Semaphore
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tract_core.errors import InputError, LimitExceeded
from tract_transformers.generation.answer import Answer
from tract_transformers.generation.steps import ClosedText, SteppedPast, Steps
from tract_transformers.generation.writing import Writing
from tract_transformers.language_model.paged import REMEMBERED, PagedTexts
from tract_transformers.language_model.past import Past

if TYPE_CHECKING:
    from tract_transformers.generation.text_model import Prompt, TextModel

AHEAD: Final = 256
"""How many pieces of text are written ahead of whoever reads them."""

Told: TypeAlias = "Callable[[EngineText, str | BaseException | None], None]"
"""Is called with each piece of a text, and at its end with ``None``, or with what writing it raised."""


class Engine:
    """Writes several texts at the same time. Use it in a ``with`` statement, or `close` it.

    Texts that begin alike share what was computed for that. Each has the tokens that it would have alone.
    """

    def __init__(
        self,
        model: TextModel,
        *,
        texts: int = 8,
        waiting: int = 1024,
        chunk: int = 256,
        pages: int | None = None,
        remembered: int = REMEMBERED,
    ) -> None:
        """``texts``: at the same time, at most. ``waiting``: further ones that may wait for their turn.

        ``chunk``: tokens of a prompt that are read at once, while others wait. ``pages``: how many there may be, of
        64 positions each, for all texts together; any number unless given. ``remembered``: bytes of pages of texts that
        were, which are kept for texts that begin the same.

        Raises InputError for numbers that make no sense, and for a model that keeps no pages.
        """
        numbers = {"texts": texts, "waiting": waiting, "chunk": chunk, "pages": pages, "remembered": remembered}
        for name, value in numbers.items():
            least = 0 if name == "remembered" else 1
            if value is not None and (not isinstance(value, int) or value < least):  # pyright: ignore[reportUnnecessaryIsInstance]: of users
                raise InputError(f"{name} is {value!r}, wanted a number from {least} on")
        if model.description.pages is None:
            hint = "its past goes through inputs and outputs: write one text after the other by generate()"
            raise InputError("the model keeps no pages", hint=hint)
        self._model, self._chunk, self._most = model, chunk, waiting + texts
        self._texts = PagedTexts(model.runnable, model.description, most=pages, remembered=remembered)
        self._steps = Steps(self._texts)
        self._room = _Room(pages, self._texts.pages.size)
        self._workers = ThreadPoolExecutor(texts, "tract-text")
        self._lock, self._open = Lock(), set[EngineText]()
        self._is_over = False

    def submit(self, prompt: Prompt, *, told: Told | None = None, **wishes: Any) -> EngineText:
        """Have a text written. Returns an iterator of its pieces. The parameters are those of `TextModel.generate`.

        ``told``: is called with each piece, in the thread that writes, in place of the iterator; it is quick, and
        raises nothing.

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
            closed = Event()
            writing = asked.writing(_PastsOf(self, closed), self._model.tokenizer)
            request = EngineText(writing, self._steps, closed, self._room.wake, told)
            self._open.add(request)
            self._workers.submit(self._write, request, tokens)
        return request

    def past(self, closed: Event | None = None) -> SteppedPast:
        """The past of a text that this engine computes. ``closed``: see `SteppedPast`."""
        return SteppedPast(self._texts, self._steps, closed)

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
            with self._room.of(tokens, request.is_closed):
                request.write()
        finally:
            with self._lock:
                self._open.discard(request)


class _PastsOf:
    """The pasts of one text of an engine. ``closed``: is set when nobody wants the text any more."""

    def __init__(self, engine: Engine, closed: Event) -> None:
        self._engine, self._closed = engine, closed

    def past(self) -> Past:
        """As `Pasts` says."""
        return self._engine.past(self._closed)

    def give_back(self, past: Past) -> None:
        """As `Pasts` says."""
        self._engine.give_back(past)


class EngineText(Iterator[str]):
    """A text that an engine writes: an iterator of its pieces, which ends when it does, or when it is closed.

    One whose pieces somebody is told of has none of them.
    """

    def __init__(
        self, writing: Writing, steps: Steps, closed: Event, closing: Callable[[], None], told: Told | None = None
    ) -> None:
        """For `Engine.submit`. ``closed``: is set, and ``closing`` is called then, when nobody wants it any more."""
        self._writing, self._steps, self._told = writing, steps, told
        self._is_closed, self._closing = closed, closing
        self._pieces = SimpleQueue[str | BaseException | None]()
        self._ahead = Semaphore(AHEAD)
        self._is_read = told is not None

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
        self._closing()

    def is_closed(self) -> bool:
        """Whether nobody wants it any more."""
        return self._is_closed.is_set()

    def write(self) -> None:
        """Write it, piece by piece. For the engine."""
        self._steps.begin()
        try:
            for piece in self._writing if not self._is_closed.is_set() else ():
                self._give(piece)
                if self._is_closed.is_set():
                    break
            self._writing.close()
            self._give(None)
        except ClosedText:
            self._writing.close()
            self._give(None)
        except BaseException as error:  # whoever reads is told, whatever it is
            self._writing.close()
            self._give(error)
        finally:
            self._steps.end()

    def _give(self, piece: str | BaseException | None) -> None:
        """Have whoever reads get a piece, or the end."""
        if self._told is not None:
            self._told(self, piece)
            return
        if isinstance(piece, str):
            self._wait_for_reader()
        self._pieces.put(piece)

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
    def of(self, tokens: int, is_closed: Callable[[], bool]) -> Generator[None]:
        """Inside, there are pages for so many tokens; or for none, for a text that is closed while it waits."""
        if self._most is None:
            yield
            return
        me, needed = object(), self._needed(tokens)
        with self._changed:
            self._line.append(me)
            self._changed.wait_for(lambda: (self._line[0] is me and self._free >= needed) or is_closed())
            self._line.remove(me)
            needed = 0 if is_closed() else needed
            self._free -= needed
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._free += needed
                self._changed.notify_all()

    def wake(self) -> None:
        """A text is closed."""
        if self._most is not None:
            with self._changed:
                self._changed.notify_all()
