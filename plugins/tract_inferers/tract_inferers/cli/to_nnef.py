"""``tract inferers to-nnef``: ONNX policies as NNEF archives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from tract_inferers.cli.options import file_arguments

if TYPE_CHECKING:
    from tract_core.cli.request import Request

ENDING: Final = ".nnef.tar"


@click.command(short_help="Turn ONNX files into NNEF archives.")
@file_arguments
@click.option("--beside", is_flag=True, help="All are ONNX files: write an archive beside each.")
@click.option(
    "-b",
    "--batch-size",
    type=click.IntRange(1),
    metavar="N",
    help="For so many agents, for other engines. Default: any.",
)
@click.pass_obj
def command(request: Request, files: tuple[str, ...], beside: bool, batch_size: int | None) -> None:
    """Turn the policy in an .onnx file into an NNEF archive, an .nnef.tar: FILES are the one and the other.

    With --beside, FILES are any number of .onnx files, and the archive of policy.onnx is policy.nnef.tar. Nothing is
    written before all names are found to be right. Archives that are there already are replaced.
    """
    from tract_core.saving import whole_file
    from tract_inferers.assets.files import nnef_of_file

    for source, target in _pairs(files, beside):
        with request.progress(f"converting {source}"):
            content = nnef_of_file(source, batch_size)
            with whole_file(target) as file:
                file.write(content)


def _pairs(files: tuple[str, ...], beside: bool) -> list[tuple[str, str]]:
    """What to read and where to write. Raises UsageError for names that are wrong, MissingFile."""
    from pathlib import Path

    from tract_core.api.formats import missing_file

    if not beside and len(files) != 2:
        raise click.UsageError(f"give an .onnx and the {ENDING} to write, or --beside and any number of .onnx")
    sources = files if beside else files[:1]
    for source in sources:
        if not source.lower().endswith(".onnx"):
            raise click.UsageError(f"{source!r} has another ending than .onnx")
        if not Path(source).exists():
            raise missing_file(Path(source))
    targets = [f"{source[: -len('.onnx')]}{ENDING}" for source in sources] if beside else [files[1]]
    for target in targets:
        if not target.lower().endswith(ENDING):
            raise click.UsageError(f"an archive has a name that ends with {ENDING}, got {target!r}")
    return list(zip(sources, targets, strict=True))
