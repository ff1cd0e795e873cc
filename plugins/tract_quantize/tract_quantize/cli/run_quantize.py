"""The work of the subcommand: data, settings, the search, and the file, which is in its place once it was compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tract_core.analysis.inference import InferenceModel
from tract_core.api.formats import format_to_write, place_to_write, write_as
from tract_core.api.reading import load_with, loader_of
from tract_core.cli.assertions import AssertionFailed
from tract_core.cli.warn import tell
from tract_core.cli.writing import writer_keywords
from tract_core.errors import InputError
from tract_core.model.typed import TypedModel
from tract_core.plugins import default_registry
from tract_core.saving import tried_first, whole_file
from tract_quantize.errors import errors_of, worst
from tract_quantize.naming import exact
from tract_quantize.picture import svg_of_trials
from tract_quantize.quantizing import Quantized, Quantizing, Settings, Transform, Trial
from tract_quantize.report import Report, print_report
from tract_quantize.samples import Samples, random_samples, samples_in
from tract_quantize.transforms.static import QuantizeStatic

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_core.plugins.descriptor import Format

CLOSE: Final = 1e-4
"""An error that is none, of what was written beside what was to be written."""


def run(request: Request, flags: Mapping[str, Any]) -> None:
    """Do it, and print the report. Raises AssertionFailed where what was written differs, and leaves nothing then."""
    target = _target(flags)
    settings = _settings(flags)
    model = request.typed_model()
    samples = _samples(model, flags)
    quantizing = Quantizing(model, samples, request.chosen_runtime.prepare, request.say)
    with request.progress("quantising"):
        found = quantizing.quantized(settings)
        if target is not None:
            _write(request, quantizing, found, target, flags)
        trials: Sequence[Trial] = _trials(quantizing, found, settings) if flags["picture"] else ()
    if flags["picture"]:
        title = f"{Path(str(request.model)).name}, quantised: error against time"
        with whole_file(flags["picture"]) as file:
            file.write(svg_of_trials(title, trials).encode())
    if flags["save_ranges"]:
        _save_ranges(found.transform, flags["save_ranges"])
    place = None if target is None else target[0]
    report = Report.of(str(request.model), found, settings, len(samples), place)
    print_report(request, replace(report, trials=trials), flags)


def _target(flags: Mapping[str, Any]) -> tuple[Path, Format] | None:
    """Where to write, and as what. Raises InputError before anything is computed."""
    if flags["output"] is None:
        return None
    path = place_to_write(Path(flags["output"]), flags["output"], flags["format_name"])
    return path, format_to_write(path, default_registry().formats(), flags["format_name"])


def _settings(flags: Mapping[str, Any]) -> Settings:
    only = flags["weights_only"]
    return Settings(
        method=flags["method"],
        percentile=flags["percentile"],
        bits=int(flags["bits"]),
        weights_only=None if only is None else int(only),
        block=flags["block"],
        exclude=tuple(flags["exclude"]),
        max_error=flags["max_error"],
        by_output=flags["by_output"],
    )


def _samples(model: TypedModel, flags: Mapping[str, Any]) -> Samples:
    """The turns that the flags name. Raises InputError where they name none, or both kinds."""
    if (flags["data"] is None) == (flags["random"] is None):
        raise InputError(
            "it wants data" if flags["data"] is None else "--data and --random are one too much",
            hint="--data FOLDER takes .npz and .npy files; --random N is for trying things only",
        )
    if flags["data"] is not None and flags["bindings"].values:
        raise InputError("the arrays of --data tell the sizes", where="--set")
    if flags["data"] is not None:
        return samples_in(flags["data"], model, flags["samples"])
    tell("ranges and errors are those of random numbers, which say nothing of real data: only for trying (--random)")
    return random_samples(model, flags["random"], flags["bindings"].values)


def _write(
    request: Request, quantizing: Quantizing, found: Quantized, target: tuple[Path, Format], flags: Mapping[str, Any]
) -> None:
    """The file, read again and compared on all samples before it is in its place."""
    place, form = target
    given = writer_keywords(request, form, flags)
    with tried_first(place) as path:
        request.say("writing")
        write_as(form, found.model, path, **given)
        request.say("reading again")
        read = load_with(loader_of(form.name, limits=request.limits), path)
        again = (read.into_typed() if isinstance(read, InferenceModel) else read).declutter()
        prepare = request.chosen_runtime.prepare
        plans = prepare(found.model), prepare(again)
        differs = worst(errors_of(found.model, plans, quantizing.samples, request.say))
        if not differs <= max(CLOSE, found.error):
            raise AssertionFailed(
                f"what was written differs from the quantised model by {differs:.3g}, which itself has an error of "
                f"{found.error:.3g}",
                where=str(place),
                hint="it is not kept; another format may do",
            )


def _save_ranges(transform: Transform, path: str) -> None:
    if not isinstance(transform, QuantizeStatic) or isinstance(transform.ranges, str):
        raise InputError("weights alone need no ranges", where="--save-ranges")
    transform.ranges.save(path)


def _trials(quantizing: Quantizing, found: Quantized, settings: Settings) -> Sequence[Trial]:
    """Every method, the model in floats, and the chosen method with more and more nodes in floats."""
    exclude = settings.exclude
    tries: dict[str, Transform | None] = {"float": None}
    for method in ("minmax", "percentile", "entropy", "mse"):
        tries[f"static {method}"] = quantizing.transform(
            Settings(method, settings.percentile, settings.bits, exclude=exclude)
        )
    for bits in (8, 4):
        tries[f"weights int{bits}"] = quantizing.transform(
            Settings(weights_only=bits, block=settings.block, exclude=exclude)
        )
    count = 1
    while count < len(found.losses):
        names = [exact(one.name) for one in found.losses[:count]]
        more = Settings(settings.method, settings.percentile, settings.bits, exclude=(*exclude, *names))
        tries[f"mixed {settings.method}, {count} in floats"] = quantizing.transform(more)
        count *= 2
    return [quantizing.trial(name, transform) for name, transform in tries.items()]
