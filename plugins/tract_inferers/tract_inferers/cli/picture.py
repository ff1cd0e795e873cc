"""Figures of a benchmark as a picture: SVG, drawn without any other program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from tract_core.drawing.ink import DARK, FAINT, FONT, STROKE, xml
from tract_inferers.cli.axes import PlotAxis, written

if TYPE_CHECKING:
    from tract_inferers.cli.measure import Figure

WIDTH: Final = 720
HEIGHT: Final = 440
LEFT, RIGHT, TOP, BOTTOM = 80, 24, 56, 64
"""What is left around the area in which points are, in pixels."""
INK: Final = "#2563a8"


def drawn(figures: Sequence[Figure], *, title: str) -> str:
    """The time of one agent over the size of batches: the median, and bars that hold the middle half of the batches."""
    figures = sorted(figures, key=lambda one: one.batch_size)
    unit, scale = ("\N{MICRO SIGN}s", 1e3) if max(one.mean for one in figures) < 1 else ("ms", 1.0)
    sizes = [float(one.batch_size) for one in figures]
    bars = [(one.quartiles[0] * scale, one.quartiles[1] * scale) for one in figures]
    medians = [one.median * scale for one in figures]
    across = PlotAxis.over(sizes)
    up = PlotAxis.over([*medians, *(end for bar in bars for end in bar)], from_zero=True)
    xs, ys = [_x(across, size) for size in sizes], [_y(up, value) for value in medians]
    marks = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in zip(xs, ys, strict=True))
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in zip(xs, ys, strict=True))
    middle = LEFT + (WIDTH - LEFT - RIGHT) / 2
    spread = "".join(
        f'<path d="M{x:.1f} {_y(up, low):.1f}V{_y(up, high):.1f}"/>' for x, (low, high) in zip(xs, bars, strict=True)
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="{FONT}">',
            '<rect width="100%" height="100%" fill="white"/>',
            _text(LEFT, 28, title, f'font-size="17" font-weight="bold" fill="{DARK}"'),
            _text(LEFT, 46, f"median, {unit} for one agent; bars: the middle half of the batches", _SMALL),
            *_grid(across, up, sizes),
            f'<g stroke="{INK}" stroke-width="5" opacity="0.3">{spread}</g>',
            f'<polyline points="{path}" fill="none" stroke="{INK}" stroke-width="2"/><g fill="{INK}">{marks}</g>',
            _text(middle, HEIGHT - 18, "agents in a batch", f'{_SMALL} text-anchor="middle"'),
            "</svg>",
            "",
        ]
    )


_SMALL: Final = f'font-size="13" fill="{FAINT}"'


def _grid(across: PlotAxis, up: PlotAxis, sizes: Sequence[float]) -> Iterator[str]:
    for tick in up.ticks(7):
        y = _y(up, tick)
        yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="{STROKE}" stroke-width="0.5" opacity="0.5"/>'
        yield _text(LEFT - 8, y + 4, written(tick), f'{_SMALL} text-anchor="end"')
    yield f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="{STROKE}"/>'
    end = float("-inf")
    for size in sizes:
        x, half = _x(across, size), 4.0 * len(written(size))
        if x - half > end + 6:
            yield _text(x, HEIGHT - BOTTOM + 20, written(size), f'{_SMALL} text-anchor="middle"')
            end = x + half


def _text(x: float, y: float, text: str, looks: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {looks}>{xml(text)}</text>'


def _x(axis: PlotAxis, value: float) -> float:
    return LEFT + axis.share(value) * (WIDTH - LEFT - RIGHT)


def _y(axis: PlotAxis, value: float) -> float:
    return HEIGHT - BOTTOM - axis.share(value) * (HEIGHT - TOP - BOTTOM)
