"""The flags that stand before the subcommand, and the groups of flags that several subcommands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

STAGES: Final = (
    "load",
    "analyse",
    "incorporate",
    "type",
    "declutter",
    "set",
    "set-declutter",
    "before-optimize",
    "optimize",
)
"""The stages of loading, in order. Transforms come between ``declutter`` and ``set``."""


def _option(*names: str, **attributes: Any) -> click.Option:
    return click.Option(names, **attributes)


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from tract_core.version import version

        click.echo(f"tract {version()}")
        ctx.exit()


def global_options() -> list[click.Parameter]:
    """The flags that say how the model is loaded and brought to the stage that is asked for."""
    return [
        _option("-f", "--format", "format_name", metavar="NAME", help="Model format. Default: from the file's ending."),
        _option(
            "-i",
            "--input",
            "inputs",
            multiple=True,
            metavar="SPEC",
            help="Override an input's fact: '1,3,S,f32' (inputs in order) or 'NAME:1,3,S,f32'. Repeat per input.",
        ),
        _option(
            "--input-facts-from-bundle",
            "facts_bundle",
            metavar="NPZ",
            type=click.Path(exists=True, dir_okay=False),
            help="Take types and shapes of inputs from the arrays of an .npz file.",
        ),
        _option("--constantize", multiple=True, metavar="NAME", help="Make an input with a known value a constant."),
        _option("--override-fact", multiple=True, metavar="NAME:FACT", help="Override the fact of any tensor."),
        _option("--assert", "assertions", multiple=True, metavar="EXPR", help="Assume, as in 'S>=1' or 'P+S<4096'."),
        _option("--input-node", "input_nodes", multiple=True, metavar="NAME", help="Make this tensor a model input."),
        _option(
            "--output-node", "output_nodes", multiple=True, metavar="NAME", help="Make this tensor a model output."
        ),
        _option("--pass", "stage", type=click.Choice(STAGES), metavar="STAGE", help=f"Stop at: {', '.join(STAGES)}."),
        _option("--declutter-step", type=click.IntRange(0), metavar="N", help="Stop decluttering after N patches."),
        _option(
            "-t",
            "--transform",
            "transforms",
            multiple=True,
            metavar="SPEC",
            help="Apply a transform: 'NAME', 'NAME(key: value)' or JSON. See 'tract list-transforms'.",
        ),
        _option("--set", "settings", multiple=True, metavar="SYM=EXPR", help="Give a symbol a value, after declutter."),
        _option("-O", "--optimize", is_flag=True, help="Go on to the stage 'optimize': what the runtime prepared."),
        _option(
            "-r", "--runtime", default="default", show_default=True, metavar="NAME", help="See 'tract list-runtimes'."
        ),
        _option("--check-patches", is_flag=True, help="Verify the whole graph after every patch (slow)."),
        _option(
            "--timeout", type=click.FloatRange(0, min_open=True), metavar="S", help="Exit with 124 after S seconds."
        ),
        _option("--machine-friendly", is_flag=True, help="Plain output: no colours, no boxes, nothing cut short."),
        _option("-v", "--verbose", is_flag=True, help="Say which rules changed the graph."),
        _option("--debug", is_flag=True, help="Show the traceback of errors."),
        _option(
            "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
        ),
    ]


def _apply(options: Iterable[Callable[[F], F]]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for option in reversed(list(options)):
            function = option(function)
        return function

    return decorate


def run_options(function: F) -> F:
    """Where the values of the inputs come from."""
    return _apply(
        [
            click.option(
                "--input-from-npz",
                "--input-from-bundle",
                "bundle",
                type=click.Path(exists=True, dir_okay=False),
                metavar="NPZ",
                help="Values of the inputs, by name, from an .npz file.",
            ),
            click.option(
                "-R", "--allow-random-input", "random", is_flag=True, help="Random values for inputs without one."
            ),
            click.option(
                "--random-range",
                "ranges",
                multiple=True,
                metavar="[NAME=]A..B",
                help="Restrict random values to a range.",
            ),
            click.option(
                "--set", "bindings", multiple=True, metavar="SYM=INT", help="Value of a symbol, for random inputs."
            ),
        ]
    )(function)


def assertion_options(function: F) -> F:
    """What must hold; the exit status is 0 only when all of it did."""
    return _apply(
        [
            click.option(
                "--approx",
                type=click.Choice(("exact", "close", "approximate", "very", "super", "ultra")),
                default="close",
                show_default=True,
                help="How close outputs must be.",
            ),
            click.option("--approx-custom", metavar="ATOL,RTOL,OUTLIERS", help="A tolerance of your own."),
            click.option(
                "--assert-output", multiple=True, metavar="SPEC", help="Expected values, as '[NAME:]2,f32=1.0,2.0'."
            ),
            click.option(
                "--assert-output-bundle",
                type=click.Path(exists=True, dir_okay=False),
                metavar="NPZ",
                help="Expected outputs, by name, from an .npz file.",
            ),
            click.option("--allow-missing-outputs", is_flag=True, help="The bundle need not have every output."),
            click.option("--assert-output-fact", multiple=True, metavar="FACT", help="Facts of the outputs, in order."),
            click.option("--assert-output-count", type=click.IntRange(0), metavar="N", help="Number of outputs."),
            click.option(
                "--assert-op-count",
                multiple=True,
                nargs=2,
                type=(str, int),
                metavar="OP N",
                help="Exactly N nodes of OP.",
            ),
            click.option(
                "--assert-op-only", metavar="PATTERNS", help="Only operators of these names ('Conv,Add,Re*')."
            ),
        ]
    )(function)


def bench_options(function: F) -> F:
    """How long to measure."""
    return _apply(
        [
            click.option(
                "--warmup-time", type=click.FloatRange(0), default=0.0, metavar="MS", help="Run unmeasured at first."
            ),
            click.option("--warmup-loops", type=click.IntRange(0), default=1, show_default=True, metavar="N"),
            click.option(
                "--max-loops",
                "--max-iters",
                "max_loops",
                type=click.IntRange(1),
                default=100_000,
                show_default=True,
                metavar="N",
            ),
            click.option("--max-time", type=click.FloatRange(0), default=5000.0, show_default=True, metavar="MS"),
        ]
    )(function)
