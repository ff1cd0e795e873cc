"""Models of texts that are ready: how requests reach them, and what they say of themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from time import time
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from tract_core.frozen import frozen
from tract_serve.chat.families import Family, family_of
from tract_serve.chat.logprobs import TokenNames
from tract_serve.chat.turns import FairTurns, Places

if TYPE_CHECKING:
    from tract_transformers.generation.answer import Answer
    from tract_transformers.generation.embedding import TextEmbedder
    from tract_transformers.generation.reranking import TextReranker
    from tract_transformers.generation.text_model import TextModel

T = TypeVar("T")

THREADS = 4
"""Of each model, that look at prompts."""


class WrittenText(Protocol):
    """A text that a `Writer` writes."""

    @property
    def answer(self) -> Answer:
        """What was written so far."""
        ...

    def close(self) -> None:
        """Write no more of it."""
        ...


class Writer(Protocol):
    """What writes texts: `tract_transformers.Engine`, or `tract_serve.chat.alone.Alone`."""

    def submit(self, prompt: Any, *, told: Any = None, **wishes: Any) -> WrittenText:
        """Have a text written; ``told`` is called with its pieces."""
        ...

    def close(self) -> None:
        """End all texts, and take no more."""
        ...


@dataclass(slots=True)
class Counted:
    """What a model has done. ``prompts``, ``cached``, ``written``: tokens; ``requests``, ``failed``: of clients."""

    requests: int = 0
    failed: int = 0
    prompts: int = 0
    cached: int = 0
    written: int = 0


@frozen
class About:
    """What is said of a ``version`` of a model. ``kind``: what it is served as.

    ``context``: tokens, ``None`` where nobody says. ``told``: how it is computed, by names.
    """

    name: str
    version: str
    kind: str
    context: int | None
    told: Mapping[str, Any]


class ServedTexts:
    """A version of a model of texts, of whichever kind. Used by the thread of one event loop."""

    def __init__(self, about: About, places: Places) -> None:
        """``places``: how many requests it computes at a time, and how many wait."""
        self.about, self.name, self.version = about, about.name, about.version
        self.created = int(time())
        self.counted = Counted()
        self.turns = FairTurns(about.name, places)
        self.reading = FairTurns(about.name, Places(THREADS, 0, places.waiting, places.of_one))
        """Places for prompts that are looked at."""
        self._threads = ThreadPoolExecutor(THREADS + places.most + places.spare, f"tract-{about.name}")
        self._open = 0
        self._idle: asyncio.Future[None] | None = None

    def told(self) -> Mapping[str, Any]:
        """What the log says of it."""
        return {"kind": self.about.kind, **self.about.told}

    def said(self) -> dict[str, Any]:
        """What ``/v1/models`` says of it."""
        found: dict[str, Any] = {
            "id": self.name,
            "object": "model",
            "created": self.created,
            "owned_by": "tract",
            **self.told(),
        }
        if self.about.context is not None:
            found["max_model_len"] = self.about.context
        return found

    def apart(self, function: Callable[..., T], *given: Any, **named: Any) -> asyncio.Future[T]:
        """What a function gives, in a thread of this model's."""
        return asyncio.get_running_loop().run_in_executor(self._threads, partial(function, *given, **named))

    @contextmanager
    def request(self) -> Generator[None]:
        """Inside, a request is answered: the model is not closed meanwhile."""
        self._open += 1
        self.counted.requests += 1
        try:
            yield
        except BaseException:
            self.counted.failed += 1
            raise
        finally:
            self._open -= 1
            if self._idle is not None and not self._open and not self._idle.done():
                self._idle.set_result(None)

    async def close(self) -> None:
        """Return once all requests are answered that it has."""
        if self._open:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle
        await self.apart(self._end)
        self._threads.shutdown(wait=False)

    def _end(self) -> None:
        """Nothing more will come."""


class ServedText(ServedTexts):
    """A model that writes texts."""

    def __init__(
        self,
        about: About,
        places: Places,
        model: TextModel,
        writer: Writer,
        *,
        wishes: Mapping[str, Any],
        most_tokens: int | None,
        is_read_whole: bool = False,
    ) -> None:
        """``writer``: of ``model``. ``wishes``: what counts for each answer, as its draft.

        ``most_tokens``: of a prompt with its answer; ``None`` where nobody says. ``is_read_whole``: whether an encoder
        reads prompts, which are given as texts then.
        """
        super().__init__(about, places)
        self.model, self.writer, self.wishes = model, writer, wishes
        self.most_tokens, self.is_read_whole = most_tokens, is_read_whole
        self.names = TokenNames(model.tokenizer)
        source = "" if model.template is None else model.template.source
        self.family: Family = family_of(source)
        self.takes_tools = "tools" in source

    def count(self, answer: Answer) -> None:
        """An answer is whole, or was left."""
        self.counted.prompts += answer.prompt_tokens
        self.counted.cached += answer.cached_tokens
        self.counted.written += len(answer.tokens)

    def _end(self) -> None:
        self.writer.close()


class ServedVectors(ServedTexts):
    """A model that makes vectors of texts."""

    def __init__(self, about: About, places: Places, model: TextEmbedder) -> None:
        super().__init__(about, places)
        self.model = model


class ServedScores(ServedTexts):
    """A model that scores pairs of a query and a text."""

    def __init__(self, about: About, places: Places, model: TextReranker) -> None:
        super().__init__(about, places)
        self.model = model
