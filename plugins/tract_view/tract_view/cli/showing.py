"""The work of ``tract MODEL view``: take the stages, measure, write or serve."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tract_core.cli.warn import tell
from tract_core.errors import InputError
from tract_core.saving import whole_file
from tract_core.texts import printable
from tract_view.document import Document, document_of
from tract_view.snapshots import RUNS, Snapshots
from tract_view.timing import Times, times_of

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_core.model.typed import TypedModel


def show(request: Request, flags: dict[str, Any]) -> None:
    """Write the files that the flags name, else serve the page until Ctrl-C."""
    last = request.stage or RUNS
    if flags["profile"] and last != RUNS:
        raise InputError(f"--profile needs what runs, and --pass {last} ends before it", hint="leave out one of both")
    taken = Snapshots()
    with request.progress("loading"):
        model = taken.walk(request.pipeline, last)
    for remark in taken.remarks:
        tell(remark)
    if flags["profile"]:
        _measure(request, taken, model, flags)
    title = printable(Path(request.model or "").name)
    if flags["model_explorer"] is not None:
        _write(flags["model_explorer"], _explorer(title, taken))
    if flags["html"] is not None:
        from tract_view.page import whole_html

        _write(flags["html"], whole_html(_document(request, title, taken)))
    if flags["html"] is None and flags["model_explorer"] is None:
        serve(_document(request, title, taken), flags["port"], browser=not flags["no_browser"])


def _measure(request: Request, taken: Snapshots, model: TypedModel | None, flags: dict[str, Any]) -> None:
    from tract_core.cli.commands.profile_report import measured

    if model is None:
        raise InputError("--profile needs a model that runs", hint="without it, the page shows what there is")
    timed = measured(request, model, {**flags, "as_json": True})
    running = taken.found[-1]
    times = times_of(running.entries, json.dumps(timed), request.chosen_runtime.name)
    taken.found[-1] = replace(running, times=_of_turns(times, timed))


def _of_turns(times: Times, timed: dict[str, Any]) -> Times:
    return replace(times, turn=timed["profiling_info"]["turn"]["median_ms"] / 1e3)


def _document(request: Request, title: str, taken: Snapshots) -> Document:
    with request.progress("placing"):
        return document_of(title, taken.found, taken.constants, taken.remarks)


def _explorer(title: str, taken: Snapshots) -> str:
    from tract_view.model_explorer import explorer_json

    return explorer_json(title, taken.found)


def _write(path: str, text: str) -> None:
    with whole_file(path) as file:
        file.write(text.encode())


def serve(document: Document, port: int, *, browser: bool) -> None:
    """Serve a page until Ctrl-C, which is raised as KeyboardInterrupt. Raises InputError for a port that is taken."""
    from tract_view.opening import has_browser, opened
    from tract_view.server import PageServer

    with PageServer(document, port) as server:
        click.echo(server.url)
        click.echo("whoever knows this address can read the model; Ctrl-C ends it", err=True)
        with opened(server.url) if browser and has_browser() else nullcontext():
            server.serve_forever()
