"""``tract torch-export MODULE:FACTORY ARCHIVE``: what a function makes, as an archive."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from pathlib import Path

    from tract_core.cli.request import Request
    from tract_torch.inference_target.base import InferenceTarget

_LEVELS = ("exact", "close", "approximate", "very", "super", "ultra")
_STATES = ("refuse", "inputs", "inside")
_SCHEMES = ("natural_verbose", "natural_verbose_camel", "numeric", "raw")


@click.command(short_help="Export a PyTorch module as an NNEF archive, and check it.")
@click.argument("factory", metavar="MODULE:FACTORY")
@click.argument("archive", type=click.Path())
@click.option(
    "-i", "--input", "inputs", multiple=True, metavar="[NAME:]FACT", help="An argument, as image:B,3,8,8,f32."
)
@click.option("--size", "sizes", multiple=True, metavar="SYMBOL=N", help="The size of a symbol in the example.")
@click.option("-o", "--output", "outputs", multiple=True, metavar="NAME", help="The name of a result.")
@click.option("--for", "version", metavar="VERSION", help="A version of the established engine, or 'khronos'.")
@click.option("--compression", type=click.IntRange(0, 9), help="How hard gzip tries; 0 for a plain tar.")
@click.option("--folder", is_flag=True, help="Write a folder.")
@click.option("--tolerance", type=click.Choice(_LEVELS), default="approximate", show_default=True)
@click.option("--no-check", is_flag=True, help="Do not compare with the module.")
@click.option("--debug-bundle", type=click.Path(), metavar="PATH", help="What to write where the check fails.")
@click.option("--naming", type=click.Choice(_SCHEMES), default=_SCHEMES[0], show_default=True)
@click.option(
    "--states",
    type=click.Choice(_STATES),
    default=_STATES[0],
    show_default=True,
    help="What becomes of buffers that the module changes: inputs and outputs, or kept inside by a running model.",
)
@click.option("--property", "properties", multiple=True, metavar="NAME=TEXT", help="A text that the archive holds.")
@click.option("--identity", is_flag=True, help="Tell the system, the user, the command and the time in it.")
@click.option("--json", "as_json", is_flag=True, help="Report as JSON.")
@click.pass_obj
def command(request: Request, factory: str, archive: str, as_json: bool, **options: Any) -> None:
    """Export what FACTORY of the Python MODULE makes (a module's name, or a file) as ARCHIVE, whose name holds .nnef.

    FACTORY is called without arguments and gives a torch.nn.Module, or a module and what to call it with in the
    example. Otherwise --input says that: sizes and an element type, where letters are sizes that may be others. The
    code of MODULE is run. The archive is compared with the module on several inputs and sizes, and is written where it
    agrees.
    """
    import logging

    from tract_torch.cli.made import example_of, importable, made
    from tract_torch.export import export_model_to_nnef

    with importable(factory):
        with request.progress(f"importing {factory}"):
            module, args = made(factory)
            given = example_of(options["inputs"], options["sizes"], args)
        level = None if options["folder"] else options["compression"] or 0
        with request.progress(f"exporting {type(module).__name__}"):
            target = _target(options, given.axes)
            path = export_model_to_nnef(
                module,
                given.args,
                archive,
                target,
                given.names,
                options["outputs"] or None,
                level,
                logging.WARNING,
                options["naming"],
                debug_bundle_path=options["debug_bundle"],
                states=options["states"],
            )
    _print(request, path, target, as_json)


def _target(options: dict[str, Any], axes: dict[str, dict[int, str]]) -> InferenceTarget:
    from tract_core.errors import InputError
    from tract_torch.inference_target import KhronosNNEF, TractNNEF
    from tract_torch.tolerance import TractCheckTolerance

    check = not options["no_check"]
    if options["version"] == "khronos":
        if axes:
            raise InputError("the standard has no sizes that may be others", hint="give numbers to --input")
        return KhronosNNEF(check_io=check)
    pairs = [text.partition("=") for text in options["properties"]]
    return TractNNEF(
        options["version"],
        check_io=check,
        dynamic_axes=axes,
        check_io_tolerance=TractCheckTolerance(options["tolerance"]),
        specific_properties={name: text for name, _, text in pairs},
        dump_identity_properties=options["identity"],
    )


def _print(request: Request, path: Path, target: InferenceTarget, as_json: bool) -> None:
    size = sum(one.stat().st_size for one in path.rglob("*")) if path.is_dir() else path.stat().st_size
    report = target.report
    if as_json:
        found = {"path": str(path), "bytes": size, "check": None if report is None else report.to_json()}
        click.echo(json.dumps(found, indent=1))
        return
    click.echo(f"{path}: {size:,} bytes")
    if report is None:
        click.echo("not compared with the module")
        return
    click.echo(f"compared with the module on {len(report.trials)} inputs, {report.tolerance.value}")
    worst: dict[str, float] = {}
    for one in (output for trial in report.trials for output in trial.outputs):
        worst[one.name] = max(worst.get(one.name, 0.0), one.largest or 0.0)
    for name, largest in worst.items():
        click.echo(f"  {name}: {largest:.3g} apart at most")
    for note in report.notes:
        click.echo(f"  {note}")
