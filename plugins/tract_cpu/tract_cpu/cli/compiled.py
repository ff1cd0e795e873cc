"""``tract compiled FILE``: which machine code an archive brings, and the digest by which it is trusted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tract_cpu.archived import Compiled


@click.command(short_help="Show which machine code an archive brings.")
@click.argument("file", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(file: str, as_json: bool) -> None:
    """Show which machine code FILE brings, for which machines, and what it takes and gives.

    FILE is an archive that 'cook --compiled' wrote. Nothing of the code is used. The digest that is shown says which
    code it is: tract_cpu.load_compiled(FILE, trust=DIGEST) runs that and no other.
    """
    from tract_cpu.archived import compiled_in

    found = compiled_in(file)
    if as_json:
        click.echo(json.dumps(_told(found), indent=1))
    else:
        _print(found)


def _told(found: Compiled) -> dict[str, Any]:
    codes = [{**code._asdict(), "why_not": code.why_not()} for code in found.codes]
    arrays = {
        key: {name: {"shape": shape, "type": kind} for name, (shape, kind) in given.items()}
        for key, given in (("inputs", found.inputs), ("outputs", found.outputs))
    }
    return {"digest": found.digest, **arrays, "codes": codes}


def _print(found: Compiled) -> None:
    from tract_core.api.display import size
    from tract_core.texts import printable

    for word, arrays in (("input", found.inputs), ("output", found.outputs)):
        for name, (shape, kind) in arrays.items():
            click.echo(printable(f"{word} {name}: [{', '.join(map(str, shape))}] {kind}"))
    for code in found.codes:
        reason = code.why_not() or "runs here"
        what = f"{code.instructions} on {code.system}, {code.architecture}"
        click.echo(printable(f"{what}: a run works in {size(code.memory)}; {reason}"))
    click.echo(f"digest {found.digest}")
