"""The work of ``cook``: load, simplify, write, read again, compare, and only then put the file where it belongs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tract_core.analysis.inference import InferenceModel
from tract_core.api.formats import format_to_write, place_to_write, write_as
from tract_core.api.reading import load_with, loader_of
from tract_core.cli.assertions import AssertionFailed
from tract_core.cli.commands.cook_compare import compare_models
from tract_core.cli.commands.cook_report import Cooked, Side, print_report
from tract_core.cli.pipeline import AnyModel, wired
from tract_core.cli.writing import writer_keywords
from tract_core.model.const import Const
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel
from tract_core.plugins import default_registry
from tract_core.safe_files import noting_files
from tract_core.saving import tried_first

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_core.plugins.descriptor import Format

T = TypeVar("T")

REPEATS: Final = 3
"""How often a model is loaded to time it, where that takes no time worth mentioning."""

PATIENCE: Final = 2.0
"""Seconds of loading after which a model is not loaded once more."""


def cook(request: Request, flags: Mapping[str, Any]) -> None:
    """Do it, and print the report. Raises AssertionFailed where the outputs differ, and writes nothing then."""
    target = place_to_write(Path(request.model or ""), flags["output"], flags["format_name"])
    form = format_to_write(target, default_registry().formats(), flags["format_name"])
    given = writer_keywords(request, form, flags)
    with tried_first(target) as path:
        with request.progress("loading"), noting_files() as read:
            source, cooked, load_s = _loaded(request)
        with request.progress("writing"):
            write_as(form, cooked, path, **given)
        with request.progress("reading again"):
            again, again_s = _read_again(request, form, path)
        compared = [] if flags["no_compare"] else compare_models(request, source, again, flags)
        report = Cooked(
            str(request.pipeline.path),
            str(target),
            Side(_operators(source), max(sum(read.values()), _bytes_of(request.pipeline.path)), load_s),
            Side(_operators(again), _bytes_of(path), again_s),
            compared,
            _costs(form, target, flags["output"]),
        )
        problems = [one.problem for one in compared if one.problem is not None]
        print_report(request, report, flags)
        if problems:
            raise AssertionFailed(
                f"what was written differs from MODEL: {problems[0]}",
                where=str(target),
                hint="it is not kept; --approx allows more, and 'tract MODEL compare' shows where it begins",
            )


def _costs(form: Format, target: Path, named: str | None) -> Mapping[str, str]:
    """What the form is good for that was named, by its ending; all that there are where none was."""
    ending = form.ending_of(target)
    asked = bool(ending) and named is not None and named.lower().endswith(ending)
    return {one: costs for one, costs in form.forms.items() if not asked or one.endswith(ending)}


def _loaded(request: Request) -> tuple[TypedModel, TypedModel, float]:
    """The model as its file has it, the one to be written, and the seconds that it takes to have that."""
    pipeline, stage = request.pipeline, request.final_stage

    def whole() -> tuple[TypedModel, TypedModel]:
        model: AnyModel = wired(pipeline.at("type"))
        source = model.clone()
        return source, wired(pipeline.onwards(model, stage, after="type"))

    (source, cooked), seconds = _timed(whole)
    values = dict(request.settings)
    return (source.substitute(values) if values else source), cooked, seconds


def _read_again(request: Request, form: Format, path: Path) -> tuple[TypedModel, float]:
    def read() -> TypedModel:
        found = load_with(loader_of(form.name, limits=request.limits), path)
        return (found.into_typed() if isinstance(found, InferenceModel) else found).declutter()

    return _timed(read)


def _timed(load: Callable[[], T]) -> tuple[T, float]:
    """What loading gives, and the fewest seconds that it takes: at first, modules are imported as well."""
    best, begin = float("inf"), perf_counter()
    found = load()
    best = perf_counter() - begin
    for _ in range(REPEATS - 1):
        if perf_counter() - begin > PATIENCE:
            break
        start = perf_counter()
        found = load()
        best = min(best, perf_counter() - start)
    return found, best


def _operators(model: TypedModel) -> int:
    return sum(1 for node in model.live_nodes() if not isinstance(node.op, TypedSource | Const))


def _bytes_of(path: Path) -> int:
    """Of a file, or of all files in a folder."""
    files = (one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    return sum(one.stat().st_size for one in files)
