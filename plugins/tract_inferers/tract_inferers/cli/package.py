"""``tract inferers package IN OUT``: a policy as one file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tract_inferers.cli.options import file_argument

if TYPE_CHECKING:
    from tract_core.cli.request import Request


@click.command(short_help="Write it as an asset, one file with the ending .crvo.")
@file_argument
@click.argument("out", type=click.Path(dir_okay=False))
@click.option("-O", "--optimize", is_flag=True, help="Turn it into NNEF, which loads faster.")
@click.option(
    "-N", "--batch-size", type=click.IntRange(1), metavar="N", help="With -O: for so many agents, for other engines."
)
@click.pass_obj
def command(request: Request, file: str, out: str, optimize: bool, batch_size: int | None) -> None:
    """Write the model in FILE, an .onnx or an .nnef.tar, as the asset OUT, a .crvo.

    The model is loaded to see that it can be, and packaged as it is unless -O asks for more.
    """
    from tract_inferers.assets.files import packaged

    if batch_size is not None and not optimize:
        raise click.UsageError("-N says how many agents -O makes it for: give both, or none")
    if not out.lower().endswith(".crvo"):
        raise click.UsageError(f"an asset has a name that ends with .crvo, got {out!r}")
    with request.progress(f"packaging {file}"):
        packaged(file, optimize=optimize, batch_size=batch_size).save(out)
