"""``tract MODEL bench``: time a model on random inputs."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import click

from tract_core.cli.command import ModelCommand
from tract_core.cli.options import assertion_options, bench_options, run_options, trace_option

if TYPE_CHECKING:
    from tract_core.cli.request import Request


@click.command(cls=ModelCommand, short_help="Time it on random inputs.")
@click.option("--json", "as_json", is_flag=True, help="Figures as JSON.")
@trace_option
@run_options
@bench_options
@assertion_options
@click.pass_obj
def command(request: Request, as_json: bool, **flags: Any) -> None:
    """Run MODEL again and again, on the inputs of a bundle or on random ones, and say how long a turn takes."""
    from tract_core.cli.assertions import check_assertions, check_outputs
    from tract_core.cli.inputs import inputs_for
    from tract_core.cli.profile_report import write_trace
    from tract_core.cli.turns import figures_of, warm_up

    model = request.typed_model()
    check_assertions(model, flags)
    arrays = inputs_for(request, model, {**flags, "random": True})
    state = request.prepare(model).spawn()
    with request.progress("measuring"):
        warm_up(state, arrays, flags["warmup_time"], flags["warmup_loops"])
        seconds = _measure(state, arrays, flags["max_time"] / 1e3, flags["max_loops"])
    _print(request, {"runtime": request.chosen_runtime.name, **figures_of(seconds)}, as_json)
    write_trace(request, model, flags, arrays)
    check_outputs(request, model, flags, arrays)


def _print(request: Request, figures: dict[str, Any], as_json: bool) -> None:
    from tract_core.cli.turns import doubt
    from tract_core.cli.warn import tell

    if as_json:
        click.echo(json.dumps(figures))
        return
    request.console.line(
        (f"{figures['median_ms']:.3f} ms", "bold"),
        f" a turn (median of {figures['iterations']}; "
        f"fastest {figures['fastest_ms']:.3f}, slowest {figures['slowest_ms']:.3f}) on {figures['runtime']}",
    )
    shares = ", ".join(f"{share} % {value:.3f}" for share, value in figures["percentiles_ms"].items())
    request.console.line(f"percentiles, in ms: {shares}")
    if figures["turns_per_s"] is not None:
        request.console.line(f"{figures['turns_per_s']:.4g} turns a second")
    warning = doubt(figures, figures["runtime"])
    if warning is not None:
        tell(warning)


def _measure(state: Any, arrays: Any, limit: float, loops: int) -> list[float]:
    """Seconds of each turn, until the time or the number of loops is over; at least one."""
    seconds: list[float] = []
    end = time.perf_counter() + limit
    while len(seconds) < loops and (not seconds or time.perf_counter() < end):
        start = time.perf_counter()
        state.run(arrays)
        seconds.append(time.perf_counter() - start)
    return seconds
