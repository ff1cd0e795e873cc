"""The flags that stand before the subcommand, and the groups of flags that several subcommands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, TypeVar

import click

from tract_core.cli import completion, readings
from tract_core.cli.command import Flag
from tract_core.cli.stages import GROUP as STAGING
from tract_core.cli.stages import NamesStage

F = TypeVar("F", bound=Callable[..., Any])

APPROX: Final = ("exact", "close", "approximate", "very", "super", "ultra")

LOADING: Final = "The model as it is loaded"
MANNERS: Final = "How to go about it"

NPZ: Final = click.Path(exists=True, dir_okay=False)
NEW_FILE: Final = click.Path(dir_okay=False)


def flag(group: str, *names: str, **attributes: Any) -> Callable[[F], F]:
    """Decorator: a flag of a subcommand, listed under that heading."""
    return click.option(*names, cls=Flag, group=group, **attributes)


def file_or_output(*names: str, **attributes: Any) -> Callable[[F], F]:
    """Decorator: a flag that may be followed by a file to write to; without one, standard output is meant."""
    return click.option(*names, cls=Flag, alone="-", type=NEW_FILE, metavar="[FILE]", **attributes)


def _option(group: str, *names: str, **attributes: Any) -> click.Option:
    return Flag(names, group=group, **attributes)


def _version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from tract_core.version import version

        click.echo(f"tract {version()} (tract-core)")  # so that nobody takes it for another command of the name
        ctx.exit()


def global_options() -> list[click.Parameter]:
    """The flags that say how the model is loaded and brought to the stage that is asked for."""
    return [*_loading(), *_cutting(), *_stages(), *_manners()]


def _images() -> list[click.Parameter]:
    """What is done to images that are values of inputs."""
    option = partial(_option, LOADING)
    return [
        option(
            "--image-mean",
            metavar="M,M,M",
            callback=readings.whole(readings.numbers),
            help="Subtract this from the channels of images, which are 0 to 1.",
        ),
        option(
            "--image-std",
            metavar="S,S,S",
            callback=readings.whole(readings.factors),
            help="Divide the channels of images by this, then.",
        ),
    ]


def _loading() -> list[click.Parameter]:
    option = partial(_option, LOADING)
    many = partial(option, multiple=True)
    return [
        option(
            "-f",
            "--format",
            "format_name",
            metavar="NAME",
            shell_complete=completion.formats,
            help="Model format. Default: from the file's ending.",
        ),
        many(
            "-i",
            "--input",
            "inputs",
            metavar="SPEC",
            callback=readings.each(readings.input_text),
            shell_complete=completion.inputs,
            help="Override an input's fact: '1,3,S,f32' (inputs in order) or 'NAME:1,3,S,f32'; or give its value: "
            "'NAME=FILE', an array (.npy), an image or a sound (.wav). Repeat per input.",
        ),
        *_images(),
        option(
            "--input-facts-from-bundle",
            "facts_bundle",
            metavar="NPZ",
            type=NPZ,
            help="Take types and shapes of inputs from the arrays of an .npz file.",
        ),
        many(
            "--constantize",
            metavar="NAME",
            help="Make an input a constant: of its value in --input, or in a file of arrays.",
        ),
        many(
            "--override-fact",
            metavar="NAME:FACT",
            callback=readings.each(readings.override_text),
            help="Override the fact of any tensor.",
        ),
        many(
            "--assert",
            "assertions",
            metavar="EXPR",
            callback=readings.each(readings.assertion),
            help="Assume, as in 'S>=1' or 'P+S<4096'.",
        ),
        many(
            "--limit",
            "limits",
            metavar="NAME=N",
            callback=readings.whole(readings.limits),
            help="Allow the model more or less than usual, as in 'max_bytes=1e9' or 'run_deadline_s=10'.",
        ),
    ]


def _cutting() -> list[click.Parameter]:
    many = partial(_option, LOADING, multiple=True)
    return [
        many(
            "--edge-left-context",
            "left_context",
            metavar="[NAME=]FRAMES",
            callback=readings.each(readings.context),
            help="Put copies of the first frame before the inputs, along their first axis.",
        ),
        many(
            "--edge-right-context",
            "right_context",
            metavar="[NAME=]FRAMES",
            callback=readings.each(readings.context),
            help="Put copies of the last frame behind the inputs.",
        ),
        many(
            "--input-node",
            "input_nodes",
            shell_complete=completion.nodes,
            metavar="NAME",
            help="Make this tensor an input, in place of the file's. Repeat per input.",
        ),
        many(
            "--output-node",
            "output_nodes",
            shell_complete=completion.nodes,
            metavar="NAME",
            help="Make this tensor an output, in place of the file's. Repeat per output.",
        ),
    ]


def _stages() -> list[click.Parameter]:
    option = partial(_option, STAGING)
    return [
        NamesStage(["--pass", "stage"], group=STAGING, help="Stop at"),
        option("--declutter-step", type=click.IntRange(0), metavar="N", help="Stop decluttering after N patches."),
        option(
            "-t",
            "--transform",
            "transforms",
            multiple=True,
            metavar="SPEC",
            callback=readings.each(readings.transform),
            shell_complete=completion.transforms,
            help="Apply a transform: 'NAME', 'NAME(key: value)' or JSON. See 'tract list-transforms'.",
        ),
        option(
            "--set",
            "settings",
            multiple=True,
            metavar="SYM=EXPR",
            callback=readings.each(readings.setting),
            shell_complete=completion.symbols,
            help="Give a symbol a value or an expression, after declutter.",
        ),
        option("-O", "--optimize", is_flag=True, help="Go on to the stage 'optimize': what the runtime prepared."),
        option(
            "-r",
            "--runtime",
            default="default",
            show_default=True,
            metavar="NAME",
            shell_complete=completion.runtimes,
            help="See 'tract list-runtimes'.",
        ),
        option("--check-patches", is_flag=True, help="Verify the whole graph after every patch (slow)."),
    ]


def _manners() -> list[click.Parameter]:
    option = partial(_option, MANNERS)
    return [
        option(
            "--timeout",
            type=readings.NumberRange(0, min_open=True),
            metavar="S",
            help="Exit with 124 after S seconds.",
        ),
        option("--machine-friendly", is_flag=True, help="Plain output: no colours, no boxes, nothing cut short."),
        option("-v", "--verbose", count=True, help="Say which rules changed the graph."),
        option("--debug", is_flag=True, help="Show the traceback of errors."),
        option(
            "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
        ),
    ]


def _apply(options: Iterable[Callable[[F], F]]) -> Callable[[F], F]:
    def decorate(function: F) -> F:
        for option in reversed(list(options)):
            function = option(function)
        return function

    return decorate


VALUES: Final = "Values of the inputs"


def range_option(function: F) -> F:
    """Which random values there may be."""
    return flag(
        VALUES,
        "--random-range",
        "ranges",
        multiple=True,
        metavar="[NAME=]A..B",
        callback=readings.each(readings.random_range),
        help="Restrict random values to a range.",
    )(function)


def run_options(function: F) -> F:
    """Where the values of the inputs come from."""
    option = partial(flag, VALUES)
    return _apply(
        [
            option(
                "--input-from-npz",
                "--input-from-bundle",
                "bundle",
                type=NPZ,
                metavar="NPZ",
                help="Values of the inputs, by name, from an .npz file.",
            ),
            option(
                "--allow-float-casts",
                "float_casts",
                is_flag=True,
                help="Floats in files may be of another type than inputs and outputs.",
            ),
            option("-R", "--allow-random-input", "random", is_flag=True, help="Random values for inputs without one."),
            range_option,
            option(
                "--seed",
                type=click.IntRange(0),
                default=readings.SEED,
                show_default=True,
                metavar="N",
                help="Which random values, for random inputs.",
            ),
            option(
                "--drop-partial-pulse",
                "drop_partial",
                is_flag=True,
                help="Of a signal that comes in pulses, leave out what does not fill the last one.",
            ),
            option(
                "--set",
                "bindings",
                multiple=True,
                metavar="SYM=INT",
                callback=readings.whole(readings.bindings),
                shell_complete=completion.symbols,
                help="Value of a symbol, for random inputs.",
            ),
        ]
    )(function)


def tolerance_options(approx: str) -> Callable[[F], F]:
    """Decorator: how close values must be. ``approx``: the class of tolerance by default."""
    option = partial(flag, "What must hold")
    return _apply(
        [
            option(
                "--approx",
                type=click.Choice(APPROX),
                metavar="CLASS",
                default=approx,
                show_default=True,
                help=f"How close values must be: {', '.join(APPROX)}.",
            ),
            option(
                "--approx-custom",
                metavar="ATOL,RTOL,OUTLIERS",
                callback=readings.whole(readings.tolerance),
                help="A tolerance of your own.",
            ),
        ]
    )


def assertion_options(function: Callable[..., Any] | None = None, *, approx: str = "close") -> Any:
    """What must hold; the exit status is 0 only when all of it did. ``approx``: the class of tolerance by default."""
    option = partial(flag, "What must hold")
    decorate = _apply(
        [
            tolerance_options(approx),
            option(
                "--assert-output",
                multiple=True,
                metavar="SPEC",
                callback=readings.each(readings.output_text),
                help="Expected values, as '[NAME:]2,f32=1.0,2.0'.",
            ),
            option(
                "--assert-output-bundle", type=NPZ, metavar="NPZ", help="Expected outputs, by name, from an .npz file."
            ),
            option("--allow-missing-outputs", is_flag=True, help="The bundle need not have every output."),
            option(
                "--assert-output-fact",
                multiple=True,
                metavar="FACT",
                callback=readings.each(readings.output_fact),
                help="Facts of the outputs, in order.",
            ),
            option("--assert-output-count", type=click.IntRange(0), metavar="N", help="Number of outputs."),
            option(
                "--assert-op-count",
                multiple=True,
                nargs=2,
                type=(str, click.IntRange(0)),
                metavar="OP N",
                help="Exactly N nodes of OP.",
            ),
            option("--assert-op-only", metavar="PATTERNS", help="Only operators of these names ('Conv,Add,Re*')."),
        ]
    )
    return decorate if function is None else decorate(function)


def trace_option(function: F) -> F:
    """Where the time of one turn goes, for another program to show."""
    return click.option(
        "--chrome-trace",
        "trace",
        type=NEW_FILE,
        metavar="FILE",
        help="Write a trace of one turn, for Perfetto or chrome://tracing.",
    )(function)


def bench_options(function: F) -> F:
    """How long to measure."""
    option = partial(flag, "How long to measure")
    return _apply(
        [
            option(
                "--warmup-time",
                type=readings.NumberRange(0),
                default=0.0,
                metavar="MS",
                help="Run unmeasured at first.",
            ),
            option(
                "--warmup-loops",
                type=click.IntRange(0),
                default=1,
                show_default=True,
                metavar="N",
                help="Turns that are not measured.",
            ),
            option(
                "--max-loops",
                "--max-iters",
                "max_loops",
                type=click.IntRange(1),
                default=100_000,
                show_default=True,
                metavar="N",
                help="Turns at most.",
            ),
            option(
                "--max-time",
                type=readings.NumberRange(0),
                default=5000.0,
                show_default=True,
                metavar="MS",
                help="Begin no turn after that.",
            ),
        ]
    )(function)
