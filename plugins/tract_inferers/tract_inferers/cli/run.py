"""``tract inferers run FILE``: one step of some agents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from tract_inferers.cli.options import file_argument, layer_options, value_options

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_inferers.cli.measure import Step


@click.command(short_help="Run one step of some agents.")
@file_argument
@click.option("-b", "--batch-size", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="Agents.")
@layer_options
@click.option("--print-input", is_flag=True, help="Print what they observe.")
@click.option("--print-output", is_flag=True, help="Print what they are told.")
@value_options
@click.pass_obj
def command(request: Request, file: str, batch_size: int, **flags: Any) -> None:
    """Run the first step of N agents, numbered from 0, and say how long it takes the second time that it is run."""
    from tract_inferers.cli.measure import first_step
    from tract_inferers.cli.policies import builder_for, observations, with_layers

    with request.progress(f"loading {file}"):
        inferer = builder_for(file, flags["runtime"]).build_fixed([batch_size])
        policy = with_layers(inferer, noise=flags["noise"], memory=flags["memory"], seed=flags["seed"])
    given = observations(policy.input_shapes(), batch_size, random=flags["random"], seed=flags["seed"])
    with request.progress(f"running {file}"):
        step = first_step(policy, given)
    sides = {"inputs": given if flags["print_input"] else {}, "outputs": step.outputs if flags["print_output"] else {}}
    if flags["as_json"]:
        click.echo(json.dumps({"batch_size": batch_size, "ms": step.seconds * 1e3, **_as_json(sides)}))
    else:
        _print(request, file, batch_size, step, sides)


def _as_json(sides: dict[str, dict[str, Any]]) -> dict[str, Any]:
    from tract_core.cli.commands.show import fact_of, plain

    return {
        side: {name: {"fact": fact_of(array), "values": plain(array)} for name, array in arrays.items()}
        for side, arrays in sides.items()
        if arrays
    }


def _print(request: Request, file: str, agents: int, step: Step, sides: dict[str, dict[str, Any]]) -> None:
    import numpy as np

    from tract_core.cli.commands.run_once import PRINTED
    from tract_core.cli.commands.show import summary

    told = f" for {agents} agent{'s' * (agents > 1)}, {step.seconds * 1e3 / agents:.4g} ms each"
    request.console.line((file, "bold"), ": ", (f"{step.seconds * 1e3:.4g} ms", "bold"), told)
    for side, arrays in sides.items():
        for name, array in arrays.items():
            request.console.line(f"{side[:-1]} ", (name, "bold"), f" {summary(array)}")
            request.console.line(np.array2string(array, threshold=PRINTED))
