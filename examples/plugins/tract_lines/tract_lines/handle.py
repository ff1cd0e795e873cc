"""What users hold: ``tract.lines()``."""

from __future__ import annotations

import os

from tract_core import Model
from tract_core.api.loading import Loader
from tract_lines.writer import Writer


class Lines:
    """Reads and writes networks of one operator on a line."""

    def __init__(self) -> None:
        self._loader = Loader("lines")

    def load(self, path: str | os.PathLike[str], *, default_type: str = "f32") -> Model:
        """The model of a file. ``default_type``: of inputs that name none. Raises ModelError, with the line."""
        model = self._loader.load(path, default_type=default_type)
        assert isinstance(model, Model)  # the reader gives no other
        return model

    def loads(self, text: str, *, default_type: str = "f32") -> Model:
        """The model of a text; else like `load`."""
        model = self._loader.load_bytes(text.encode(), default_type=default_type)
        assert isinstance(model, Model)
        return model

    def dumps(self, model: Model, *, comment: str = "") -> str:
        """The text of a model. ``comment``: its first line. Raises Unsupported for what the format cannot say."""
        return Writer(comment).text(model.typed)
