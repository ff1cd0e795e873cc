"""Note something about a model, which goes with it into archives."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar

import numpy as np

from tract_core.errors import TransformError
from tract_core.frozen import frozen
from tract_core.model.typed import TypedModel


@frozen
class SetProperty:
    """Give a property of the model a text, as ``tract.name``: in place of what it was, if there was one."""

    name: ClassVar[str] = "set_property"
    key: str = field(metadata={"doc": "the name of the property"})
    value: str = field(metadata={"doc": "the text"})

    def apply(self, model: TypedModel) -> TypedModel:
        """The model with the property. Raises TransformError where name or text are none, or the name is empty."""
        for what, given in (("key", self.key), ("value", self.value)):
            if not isinstance(given, str):  # pyright: ignore[reportUnnecessaryIsInstance]: may come from JSON
                raise TransformError(f"set_property: {what!r} is {given!r}, wanted a text")
        if not self.key:
            raise TransformError("set_property: 'key' is empty, wanted the name of a property")
        result = model.clone()
        result.properties[self.key] = np.array(self.value, object)
        return result
