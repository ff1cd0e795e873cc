"""Models are tried in a process of their own before the server takes them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from tract_core.errors import ModelError
from tract_core.frozen import frozen
from tract_serve.models.child import answer
from tract_serve.models.recipe import Recipe
from tract_serve.models.rows import Rows


@frozen
class Told:
    """What was found out about a model. ``rows``: along which requests are joined; ``no_rows``: else, the reason."""

    rows: Rows | None
    no_rows: str = ""


def tried(recipe: Recipe, seconds: float, *, apart: bool = True) -> Told:
    """Have a model prepared, and kept. ``apart``: in a process of its own, for so many seconds at most.

    Raises ModelError with what is wrong with it, also where it ends that process.
    """
    found = _asked(recipe, seconds) if apart else answer(recipe)
    if (error := found.get("error")) is not None:
        raise ModelError(error["problem"], where=error["where"], hint=error["hint"])
    rows: Any = found.get("rows")
    if rows is None:
        return Told(None, found["no_rows"])
    return Told(Rows(rows["symbol"], tuple(rows["inputs"]), tuple(rows["outputs"])))


def _asked(recipe: Recipe, seconds: float) -> dict[str, Any]:
    command = [sys.executable, "-m", "tract_serve.models.child"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    try:
        done = subprocess.run(
            command,
            input=recipe.to_json(),
            capture_output=True,
            text=True,
            timeout=seconds,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        hint = "allow more (load_s), or give it fewer and smaller parts"
        raise ModelError(f"it was not ready within {seconds:g} seconds", where=recipe.path, hint=hint) from None
    try:
        return json.loads(done.stdout)
    except ValueError:
        last = done.stderr.strip().splitlines()[-1:] or ["it said nothing"]
        problem = f"it ended the process that tried it, with status {done.returncode}: {last[0]}"
        raise ModelError(problem, where=recipe.path, hint="'tract MODEL doctor' looks at it node by node") from None
