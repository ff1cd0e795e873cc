"""A process of its own in which a model is tried: ``python -m tract_serve.models.child``, the recipe on its input.

What it prepares is kept for the server (`tract_core.prepared`), which so needs no time for it; and what would end this
process, as a fault in a compiler, does not end the server. Its answer is a line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import Any

from tract_core.errors import TractError
from tract_serve.models.recipe import Recipe, prepared
from tract_serve.models.rows import Rows, rows_of


def answer(recipe: Recipe) -> dict[str, Any]:
    """What the server is told of a model: ``rows``, or ``no_rows`` with the reason; or ``error``."""
    try:
        runnable = prepared(recipe)
        rows = rows_of(runnable.typed)
    except TractError as error:
        return {"error": {"problem": error.problem, "where": error.where, "hint": error.hint}}
    if isinstance(rows, Rows):
        return {"rows": asdict(rows)}
    return {"no_rows": rows}


def main() -> None:
    """Answer on what was standard output; what others print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    answers.write(json.dumps(answer(Recipe.from_json(sys.stdin.read()))) + "\n")
    answers.flush()


if __name__ == "__main__":
    main()
