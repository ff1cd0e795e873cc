"""A model of texts is tried in a process of its own first, as those of tensors: what it prepares is kept."""

from __future__ import annotations

from typing import Any

from tract_core.errors import TractError
from tract_serve.chat.recipe import TextRecipe, prepared, warm_up


def answer(text: str) -> dict[str, Any]:
    """What the server is told of a model, by its recipe as JSON: ``error``, or nothing."""
    try:
        warm_up(prepared(TextRecipe.from_json(text)))
    except TractError as error:
        return {"error": {"problem": error.problem, "where": error.where, "hint": error.hint}}
    return {}
