"""Writes one text after the other, of models that no engine writes with: those with an encoder, or without pages."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tract_transformers.generation.answer import Answer
    from tract_transformers.generation.text_model import TextModel
    from tract_transformers.generation.writing import Writing


class AloneText:
    """A text that `Alone` writes."""

    def __init__(self, writing: Writing, told: Callable[[AloneText, str | BaseException | None], None]) -> None:
        self._writing, self._told = writing, told
        self._is_closed = Event()

    @property
    def answer(self) -> Answer:
        """What was written so far."""
        return self._writing.answer

    def close(self) -> None:
        """Write no more of it."""
        self._is_closed.set()

    def write(self) -> None:
        """Write it, piece by piece."""
        end: BaseException | None = None
        try:
            for piece in self._writing if not self._is_closed.is_set() else ():
                self._told(self, piece)
                if self._is_closed.is_set():
                    break
        except BaseException as error:  # whoever reads is told, whatever it is
            end = error
        self._writing.close()
        self._told(self, end)


class Alone:
    """Texts of a model, one after the other, in a thread."""

    def __init__(self, model: TextModel) -> None:
        self._model = model
        self._thread = ThreadPoolExecutor(1, "tract-text")

    def submit(
        self, prompt: Any, *, told: Callable[[AloneText, str | BaseException | None], None] | None = None, **wishes: Any
    ) -> AloneText:
        """Have a text written. As `tract_transformers.Engine.submit`."""
        text = AloneText(self._model.begun(prompt, **wishes), told or (lambda _, __: None))
        self._thread.submit(text.write)
        return text

    def close(self) -> None:
        """Take no more; return once those are written that are there."""
        self._thread.shutdown(wait=True)
