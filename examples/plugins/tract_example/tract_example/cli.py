"""``tract half-life DECAY``"""

from __future__ import annotations

import math

import click


@click.command(short_help="Steps after which a moving average has forgotten half.")
@click.argument("decay", type=click.FloatRange(0, 1, min_open=True, max_open=True))
def half_life(decay: float) -> None:
    """Print after how many steps the weight of an input has halved in a moving average with coefficient DECAY."""
    click.echo(f"{math.log(0.5) / math.log(decay):.1f} steps")
