"""``tract MODEL llm-bench``: tokens a second, of prompts and of answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tract_core.cli.command import ModelCommand
from tract_transformers.cli.options import cache_option, exact_option

if TYPE_CHECKING:
    from tract_core.api.runnable import Runnable
    from tract_core.cli.printing.printed import PrintedTable
    from tract_core.cli.request import Request
    from tract_transformers.generation.rates import Rate


def _counts(ctx: click.Context, parameter: click.Parameter, text: str) -> list[int]:
    """Numbers with commas between them."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() and len(part) < 8 for part in parts):
        raise click.BadParameter(f"{text!r} is no list of numbers, as '128,512'")
    return [int(part) for part in parts if int(part)]


@click.command(cls=ModelCommand, short_help="Measure a language model, in tokens a second.")
@click.option("--pp", default="512", show_default=True, callback=_counts, metavar="N,...", help="Lengths of prompts.")
@click.option("--tg", default="128", show_default=True, callback=_counts, metavar="N,...", help="Lengths of answers.")
@click.option(
    "--depth", type=click.IntRange(0), default=0, show_default=True, metavar="N", help="Tokens that were seen before."
)
@click.option("--threads", type=click.IntRange(1), metavar="N", help="Threads. Default: as the runtime has them.")
@click.option("--repetitions", type=click.IntRange(1), default=5, show_default=True, metavar="N", help="Runs of each.")
@exact_option
@cache_option
@click.option("--json", "as_json", is_flag=True, help="A list of objects, one for each test.")
@click.pass_obj
def command(request: Request, threads: int | None, as_json: bool, **asked: Any) -> None:
    """Measure how many tokens a second MODEL reads (pp) and writes (tg).

    Tokens are random ones, and no tokenizer is needed. Each test is run once unmeasured. The figure is the median of
    the runs, with their standard deviation.
    """
    from tract_transformers.cli.options import runnable_of
    from tract_transformers.generation.rates import Manner, measured

    if not asked["pp"] and not asked["tg"]:
        raise click.UsageError("there is nothing to measure: both --pp and --tg are 0")
    runnable = runnable_of(request, threads, exact=asked["exact"], cache=asked["cache"])
    about = {**_about(request, runnable), "threads": threads or _threads(runnable)}
    with request.progress("measuring"):
        found = measured(runnable, asked["pp"], asked["tg"], Manner(asked["depth"], asked["repetitions"], request.say))
    if as_json:
        click.echo(json.dumps([{**about, "depth": asked["depth"], **one.to_json()} for one in found], indent=1))
    else:
        _print(request, about, found)


def _about(request: Request, runnable: Runnable) -> dict[str, Any]:
    """The name of the model, the bytes of its files, and how many parameters it has."""
    from tract_transformers.cli.options import runtime_of
    from tract_transformers.generation.rates import bytes_of, parameters_of

    path = Path(request.model or "")
    about = {"model": path.name, "size": bytes_of(path), "params": parameters_of(runnable)}
    return {**about, **runtime_of(runnable)}


def _threads(runnable: Runnable) -> int | None:
    """How many threads a run has, where the runtime says it."""
    target: Any = getattr(runnable.runtime.backend, "target", None)
    return getattr(target(), "threads", None) if callable(target) else None


def _print(request: Request, about: dict[str, Any], found: list[Rate]) -> None:
    table = _table()
    size, params = f"{about['size'] / 2**20:.2f} MiB", f"{about['params'] / 1e6:.2f} M"
    threads, rounded = str(about["threads"] or "-"), about["activations"] != "floats"
    runtime = f"{about['runtime']}(bytes=true)" if rounded else about["runtime"]
    for one in found:
        rate = f"{one.middle:.2f} ± {one.deviation:.2f}"
        table.add(about["model"], size, params, runtime, threads, one.test, rate)
    request.console.table(table)


def _table() -> PrintedTable:
    from tract_core.cli.printing.printed import Column, PrintedTable

    titles = ("size", "params", "runtime", "threads", "test", "t/s")
    numbers = (Column(title, right=title != "runtime", whole=True) for title in titles)
    return PrintedTable((Column("model", style="bold"), *numbers))
