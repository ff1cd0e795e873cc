"""Models are tried in a process of their own before the server takes them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any, Final

from tract_core.errors import ModelError
from tract_core.frozen import frozen
from tract_serve.batching.rows import RowAxes
from tract_serve.models.child import answer
from tract_serve.models.recipe import ServingRecipe

_TRIALS: Final[set[subprocess.Popen[str]]] = set()
"""Processes that try a model now."""


@frozen
class Tried:
    """What was found out about a model. ``rows``: along which requests are joined; ``no_rows``: else, the reason.

    ``keeps``: whether a turn depends on those before, or is one pulse of a signal; ``digest``: of the model then.
    """

    rows: RowAxes | None
    no_rows: str = ""
    keeps: bool = False
    digest: str = ""


def tried(recipe: ServingRecipe, seconds: float, *, apart: bool = True) -> Tried:
    """Have a model prepared, and kept. ``apart``: in a process of its own, for so many seconds at most.

    Raises ModelError with what is wrong with it, also where it ends that process.
    """
    found = asked_apart(recipe.to_json(), recipe.path, seconds) if apart else answer(recipe)
    raise_told(found)
    rows: Any = found.get("rows")
    made = None if rows is None else RowAxes(rows["symbol"], tuple(rows["inputs"]), tuple(rows["outputs"]))
    return Tried(made, found.get("no_rows", ""), found["keeps"], found["digest"])


def end_trials() -> None:
    """End the processes that try models, for a server that ends: whoever waits for one goes on."""
    for process in [*_TRIALS]:
        process.kill()


def raise_told(found: Mapping[str, Any]) -> None:
    """Raise the ModelError that a process told, if it told one."""
    if (error := found.get("error")) is not None:
        raise ModelError(error["problem"], where=error["where"], hint=error["hint"])


def asked_apart(recipe: str, path: str, seconds: float, *what: str) -> dict[str, Any]:
    """What a process of its own tells of a model. ``path``: of its file; ``what``: tries it, as `child` says.

    Raises ModelError where it ends that process, or takes longer.
    """
    command = [sys.executable, "-m", "tract_serve.models.child", *what]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, env=environment, **pipes) as process:
        _TRIALS.add(process)
        try:
            told, errors = process.communicate(recipe, seconds)
        except subprocess.TimeoutExpired:
            hint = "allow more (load_s), or give it fewer and smaller parts"
            raise ModelError(f"it was not ready within {seconds:g} seconds", where=path, hint=hint) from None
        finally:
            process.kill()
            _TRIALS.discard(process)
    try:
        return json.loads(told)
    except ValueError:
        last = errors.strip().splitlines()[-1:] or ["it said nothing"]
        problem = f"it ended the process that tried it, with status {process.returncode}: {last[0]}"
        raise ModelError(problem, where=path, hint="'tract MODEL doctor' looks at it node by node") from None
