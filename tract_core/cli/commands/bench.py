"""``tract MODEL bench``: time a model on random inputs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from tract_core.cli.command import ModelCommand
from tract_core.cli.options import assertion_options, bench_options, run_options, trace_option
from tract_core.cli.readings import NumberRange

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_core.model.typed import TypedModel


@click.command(cls=ModelCommand, short_help="Time it on random inputs.")
@click.option("--json", "as_json", is_flag=True, help="Figures as JSON.")
@click.option(
    "--sample-rate",
    type=NumberRange(0, min_open=True),
    metavar="HZ",
    help="Of a signal that comes in pulses: how many positions there are in a second, to compare with real time.",
)
@trace_option
@run_options
@bench_options
@assertion_options
@click.pass_obj
def command(request: Request, as_json: bool, sample_rate: float | None, **flags: Any) -> None:
    """Run MODEL again and again, on the inputs of a bundle or on random ones, and say how long a turn takes.

    A turn of a model that takes its signal in pulses is one pulse.
    """
    from tract_core.cli.assertions import check_assertions, check_outputs
    from tract_core.cli.commands.profile_report import write_trace
    from tract_core.cli.commands.turns import figures_of, seconds_of_turns, warm_up
    from tract_core.cli.inputs import whole_inputs_for
    from tract_core.cli.signals import first_turn

    model = request.typed_model()
    check_assertions(model, flags)
    whole = whole_inputs_for(request, model, {**flags, "random": True})
    arrays = first_turn(model, whole)
    state = request.prepare(model).spawn()
    with request.progress("measuring"):
        warm_up(state, arrays, flags["warmup_time"], flags["warmup_loops"])
        seconds = seconds_of_turns(state, arrays, flags["max_time"] / 1e3, flags["max_loops"])
    figures = {"runtime": request.chosen_runtime.name, **figures_of(seconds)}
    _print(request, {**figures, **_of_a_pulse(model, figures, sample_rate)}, as_json)
    write_trace(request, model, flags, arrays)
    check_outputs(request, model, flags, whole)


def _of_a_pulse(model: TypedModel, figures: dict[str, Any], sample_rate: float | None) -> dict[str, Any]:
    """What the figures mean for a signal; nothing for a model that takes none in pulses."""
    from tract_core.runtime.streams import Streams, pulse_of

    streams = Streams.of(model)
    ends = [] if streams is None else [(slot, end) for slot, end in enumerate(streams.inputs) if end is not None]
    if not ends:
        return {}
    pulse, _ = pulse_of(model, *ends[0])
    positions = 1e3 * pulse / figures["median_ms"] if figures["median_ms"] else None
    found = {"positions_in_a_pulse": pulse, "positions_per_s": positions}
    return found if sample_rate is None else {**found, "times_real_time": positions and positions / sample_rate}


def _print(request: Request, figures: dict[str, Any], as_json: bool) -> None:
    from tract_core.cli.commands.turns import doubt, not_made_for_speed
    from tract_core.cli.warn import tell

    if as_json:
        click.echo(json.dumps(figures))
        return
    request.console.line(
        (f"{figures['median_ms']:.3f} ms", "bold"),
        f" a turn (median of {figures['iterations']}; mean {figures['mean_ms']:.3f}, "
        f"fastest {figures['fastest_ms']:.3f}, slowest {figures['slowest_ms']:.3f}) on {figures['runtime']}",
    )
    shares = ", ".join(f"{share} % {value:.3f}" for share, value in figures["percentiles_ms"].items())
    request.console.line(f"percentiles, in ms: {shares}")
    if figures["turns_per_s"] is not None:
        request.console.line(f"{figures['turns_per_s']:.4g} turns a second")
    if figures.get("positions_per_s"):
        faster = figures.get("times_real_time")
        told = f", {faster:.4g} times as fast as real time" if faster else ""
        pulse = figures["positions_in_a_pulse"]
        request.console.line(f"{figures['positions_per_s']:.4g} positions of the signal a second, {pulse} a turn{told}")
    for warning in (doubt(figures, figures["runtime"]), not_made_for_speed(figures["runtime"])):
        if warning is not None:
            tell(warning)
