"""``tract hwbench``: what this machine can do at most, which times of models are compared with."""

from __future__ import annotations

import json
from typing import Any

import click

from tract_core.cli.readings import NumberRange


@click.command(short_help="Measure what this machine can do at most.")
@click.option("--threads", type=click.IntRange(1), help="Threads of the second measure; as a run has them by default.")
@click.option("--isa", default="", help="The instruction set; the best one by default.")
@click.option("--seconds", type=NumberRange(0.001), default=0.2, show_default=True, help="For each measure, about.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def command(threads: int | None, isa: str, seconds: float, as_json: bool) -> None:
    """Measure operations a second, bytes a second of each level of the memory, and the cost of a call.

    With one thread, and with as many as a run has by default.
    """
    from tract_llvm.isa import chosen

    from tract_cpu.ceilings import Meter
    from tract_cpu.native.pool import threads_here

    counts = sorted({1, threads or threads_here()})
    meter = Meter(chosen(isa), seconds)
    found = _measured(meter, counts)
    if as_json:
        click.echo(json.dumps(found, indent=1))
    else:
        _print(found, counts)


def _measured(meter: Any, counts: list[int]) -> dict[str, Any]:
    from tract_cpu.ceilings import TYPES, levels

    return {
        "isa": meter.isa.name,
        "gflop_per_s": {
            element: {str(count): meter.flops(element, count) / 1e9 for count in counts} for element in TYPES
        },
        "memory": {
            name: {
                "bytes": size,
                "read_gb_per_s": {str(count): meter.bytes_read(size, count) / 1e9 for count in counts},
                "copy_gb_per_s": {str(count): meter.bytes_copied(size, count) / 1e9 for count in counts},
            }
            for name, size in levels().items()
        },
        "call_us": meter.seconds_of_a_call() * 1e6,
    }


def _print(found: dict[str, Any], counts: list[int]) -> None:
    titles = "".join(f"{f'{count} thread' + 's' * (count > 1):>14}" for count in counts)
    click.echo(f"{found['isa']:<28}{titles}")
    for element, rates in found["gflop_per_s"].items():
        click.echo(_line(f"multiply-adds of {element}", rates, "GFLOP/s"))
    for name, level in found["memory"].items():
        size = level["bytes"]
        shown = f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
        click.echo(_line(f"reading {name}, {shown}", level["read_gb_per_s"], "GB/s"))
        click.echo(_line(f"copying {name}, {shown}", level["copy_gb_per_s"], "GB/s"))
    click.echo(f"{'calling native code':<28}{found['call_us']:>14.2f} us")


def _line(what: str, rates: dict[str, float], unit: str) -> str:
    return f"{what:<28}{''.join(f'{rate:>14.1f}' for rate in rates.values())} {unit}"
