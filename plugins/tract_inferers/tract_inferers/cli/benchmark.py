"""``tract inferers benchmark FILE``: how long a policy takes, by the size of its batches."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from tract_inferers.cli.options import file_argument, layer_options, sizes, value_options

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_inferers.cli.measure import Figure


@click.command(short_help="Measure it, by the size of batches.")
@file_argument
@click.option(
    "-b",
    "--batch-sizes",
    default="1,2,4,8,16,32,64",
    show_default=True,
    callback=sizes,
    metavar="1-8,16,...",
    help="How many agents there are in a batch.",
)
@click.option(
    "-c",
    "--count",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    metavar="N",
    help="Observations for each size.",
)
@layer_options
@value_options
@click.option("--svg", type=click.Path(dir_okay=False), metavar="FILE", help="Draw it, as SVG.")
@click.pass_obj
def command(request: Request, file: str, batch_sizes: list[int], count: int, svg: str | None, **flags: Any) -> None:
    """Run the policy in FILE on batches of each size, with a plan for each, and say how long one agent takes.

    10 batches are run before time is taken. The time of a batch is that of pushing the observations of its agents one
    by one, of the run, and of giving each its response.
    """
    large = [size for size in batch_sizes if size > count]
    if large:
        raise click.UsageError(f"a batch of {large[0]} is larger than the {count} observations of -c")
    found = list(_measured(request, file, batch_sizes, count, flags))
    if svg is not None:
        _draw(file, found, svg)
    if flags["as_json"]:
        click.echo(json.dumps([asdict(figure) for figure in found]))
    else:
        _print(request, file, found)


def _measured(request: Request, file: str, batch_sizes: list[int], count: int, flags: dict[str, Any]) -> list[Figure]:
    from tract_inferers.cli.measure import figure_of
    from tract_inferers.cli.policies import builder_for, observations, with_layers

    with request.progress(f"loading {file}"):
        builder = builder_for(file, flags["runtime"])
        policy = None
        found: list[Figure] = []
        for size in batch_sizes:
            request.say(f"measuring batches of {size} of {file}")
            inferer = builder.build_fixed([size])
            if policy is None:
                policy = with_layers(inferer, noise=flags["noise"], memory=flags["memory"], seed=flags["seed"])
            policy = policy.with_new_inferer(inferer)
            given = observations(policy.input_shapes(), size, random=flags["random"], seed=flags["seed"])
            found.append(figure_of(policy, given, count // size))
    return found


def _print(request: Request, file: str, found: list[Figure]) -> None:
    from tract_core.cli.printing.printed import Column, PrintedTable
    from tract_inferers.cli.plot import plotted

    unit, scale = ("us", 1e3) if max(figure.mean for figure in found) < 1 else ("ms", 1.0)
    request.console.line((file, "bold"), f": {unit} for one agent")
    titles = ("batch", "batches", "mean", "stddev", "median", "total ms")
    table = PrintedTable(tuple(Column(title, right=True, whole=True) for title in titles))
    for one in found:
        each = (f"{value * scale:.4g}" for value in (one.mean, one.stddev, one.median))
        table.add(str(one.batch_size), str(one.batches), *each, f"{one.total:.4g}")
    request.console.table(table)
    if len(found) > 1:
        points = [(float(one.batch_size), one.median * scale) for one in found]
        for line in ["", *plotted(points, x_title="agents in a batch", y_title=f"median, {unit} for one agent")]:
            request.console.line(line)


def _draw(file: str, found: list[Figure], path: str) -> None:
    from pathlib import Path

    from tract_core.saving import whole_file
    from tract_inferers.cli.picture import drawn

    with whole_file(path) as target:
        target.write(drawn(found, title=Path(file).name).encode())
