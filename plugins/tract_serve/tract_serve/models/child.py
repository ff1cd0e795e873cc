"""A process of its own in which a model is tried: ``python -m tract_serve.models.child``, the recipe on its input.

Behind it may stand what tries models of another kind, as ``tract_serve.chat.trying:answer``: a function of the recipe
as JSON.

What it prepares is kept for the server (`tract_core.prepared`), which so needs no time for it; and what would end this
process, as a fault in a compiler, does not end the server. Its answer is a line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tract_core.errors import TractError
from tract_core.importing import imported
from tract_core.model.bodies import keeps_state
from tract_serve.batching.rows import RowAxes, rows_of
from tract_serve.models.digest import digest_of_model
from tract_serve.models.recipe import ServingRecipe, prepared


def answer(recipe: ServingRecipe) -> dict[str, Any]:
    """What the server is told of a model: ``rows``, or ``no_rows`` with the reason; or ``error``.

    ``keeps``: whether a turn depends on those before, or is one pulse of a signal; ``digest``: of the model then.
    """
    try:
        runnable = prepared(recipe)
        rows = rows_of(runnable.typed)
        keeps = keeps_state(runnable.typed) or "pulse.input_axes" in runnable.typed.properties
        told = {"keeps": keeps, "digest": digest_of_model(runnable) if keeps or recipe.has_sequences else ""}
    except TractError as error:
        return {"error": {"problem": error.problem, "where": error.where, "hint": error.hint}}
    if isinstance(rows, RowAxes):
        return told | {"rows": asdict(rows)}
    return told | {"no_rows": rows}


def main() -> None:
    """Answer on what was standard output; what others print goes to standard error."""
    _goes_first()
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    text = sys.stdin.read()
    found = answer(ServingRecipe.from_json(text)) if len(sys.argv) < 2 else _function(sys.argv[1])(text)
    answers.write(json.dumps(found) + "\n")
    answers.flush()


def _goes_first() -> None:
    """Where memory runs out, the system is to end this process, and not the server."""
    with suppress(OSError):  # as where it is not Linux
        Path("/proc/self/oom_score_adj").write_text("1000")


def _function(name: str) -> Callable[[str], dict[str, Any]]:
    module, _, attribute = name.partition(":")
    return getattr(imported(module), attribute)


if __name__ == "__main__":
    main()
