"""``tract inferers api FILE``: what a policy wants and gives."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from tract_inferers.cli.options import file_argument, layer_options

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_inferers.slots import Slot


@click.command(short_help="The inputs and outputs for one agent.")
@file_argument
@layer_options
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_obj
def command(request: Request, file: str, noise: str | None, memory: list[str] | None, as_json: bool) -> None:
    """List the inputs and outputs of the policy in FILE, for one agent: names, shapes, element types.

    Those that noise and memory take care of are left out.
    """
    from tract_inferers.cli.policies import builder_for, with_layers

    with request.progress(f"loading {file}"):
        policy = with_layers(builder_for(file, "reference").build_basic(), noise=noise, memory=memory)
    sides = {"input": policy.input_shapes(), "output": policy.output_shapes()}
    if as_json:
        click.echo(json.dumps({f"{side}s": [_as_json(slot) for slot in slots] for side, slots in sides.items()}))
        return
    _print(request, {side: list(slots) for side, slots in sides.items()})


def _as_json(slot: Slot) -> dict[str, Any]:
    return {"name": slot.name, "shape": slot.shape, "type": slot.dtype.name}


def _print(request: Request, sides: dict[str, list[Slot]]) -> None:
    from tract_core.cli.printing.printed import Column, PrintedTable

    table = PrintedTable((Column(), Column("name", style="bold"), Column("shape"), Column("type")))
    for side, slots in sides.items():
        for slot in slots:
            table.add(side, slot.name, ",".join(map(str, slot.shape)) or "-", slot.dtype.name)
    request.console.table(table)
