"""Error against speed, as a picture in SVG: each way to quantise is a point, the further down and left the better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import ceil, floor, log10
from typing import Final

from tract_core.drawing.ink import DARK, FAINT, FONT, STROKE, xml
from tract_core.frozen import frozen
from tract_quantize.quantizing import Trial

WIDTH: Final = 860
HEIGHT: Final = 460
LEFT: Final = 70
RIGHT: Final = 370
TOP: Final = 44
BOTTOM: Final = 54
"""Pixels: of the picture, and around the part in which points are."""

LETTERS: Final = 11.0
LINE: Final = 21.0
"""Pixels: of letters, and from one line beside the points to the next."""
LEAST: Final = 1e-7
MOST: Final = 1e6
"""Errors beyond them are drawn there."""

_COLOURS: Final = {"float": "#1f2328", "static": "#2563eb", "weights": "#d97706", "mixed": "#059669"}


@frozen
class _Scale:
    """From numbers to pixels."""

    low: float
    high: float
    start: float
    end: float

    def at(self, number: float) -> float:
        """Where a number is."""
        return self.start + (number - self.low) / (self.high - self.low) * (self.end - self.start)


def svg_of_trials(title: str, trials: Sequence[Trial]) -> str:
    """The picture. Trials whose error is 0, as the model in floats, stand on a line of their own below the others."""
    times, errors = _scale_of_times(trials), _scale_of_errors(trials)
    parts = [*_frame(title), *_time_ticks(times), *_error_ticks(errors), *_points(trials, times, errors)]
    height = max(HEIGHT, TOP + (len(trials) + 1) * LINE)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height:g}" viewBox="0 0 {WIDTH} {height:g}" '
        f'font-family="{FONT}" font-size="{LETTERS:g}" role="img"><title>{xml(title)}</title>'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>\n'
    )


def _scale_of_times(trials: Sequence[Trial]) -> _Scale:
    longest = max((one.seconds for one in trials), default=1e-3) or 1e-9
    return _Scale(0.0, longest * 1.05, LEFT, WIDTH - RIGHT)


def _scale_of_errors(trials: Sequence[Trial]) -> _Scale:
    """Powers of ten; the lowest one stands for 0."""
    found = [_shown(one.error) for one in trials if one.error]
    low, high = (floor(log10(min(found))), ceil(log10(max(found)))) if found else (-3, 0)
    return _Scale(low - 1.0, max(float(high), low + 1.0), HEIGHT - BOTTOM, TOP)


def _shown(error: float) -> float:
    """The error that is drawn."""
    return min(max(error, LEAST), MOST)


def _frame(title: str) -> Iterator[str]:
    yield _text(LEFT, 24, title, DARK, size=14, weight=600)
    yield (
        f'<path d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="{STROKE}"/>'
        f'<text x="16" y="{(TOP + HEIGHT - BOTTOM) / 2:g}" fill="{FAINT}" text-anchor="middle" '
        f'transform="rotate(-90 16 {(TOP + HEIGHT - BOTTOM) / 2:g})">error of the outputs</text>'
    )
    yield _text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, "milliseconds for the first sample", FAINT, anchor="middle")


def _time_ticks(times: _Scale) -> Iterator[str]:
    step = _round_step(times.high / 5)
    for place in range(int(times.high / step) + 1):
        x = times.at(place * step)
        yield f'<path d="M{x:.1f} {HEIGHT - BOTTOM}v5" stroke="{STROKE}"/>'
        yield _text(x, HEIGHT - BOTTOM + 18, f"{place * step * 1e3:.6g}", FAINT, anchor="middle")


def _round_step(wanted: float) -> float:
    """1, 2 or 5 times a power of ten, about so large."""
    power = 10.0 ** floor(log10(wanted))
    return next((factor * power for factor in (1, 2, 5) if factor * power >= wanted), 10 * power)


def _error_ticks(errors: _Scale) -> Iterator[str]:
    for power in range(int(errors.low), int(errors.high) + 1):
        y, label = errors.at(power), f"{10.0**power:.0e}" if power < -3 else f"{10.0**power:g}"
        yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#e5e7eb"/>'
        yield _text(LEFT - 8, y + 4, "0" if power == errors.low else label, FAINT, anchor="end")


def _points(trials: Sequence[Trial], times: _Scale, errors: _Scale) -> Iterator[str]:
    """The points, numbered; beside them, what each number stands for."""
    for number, trial in enumerate(trials, start=1):
        x = times.at(trial.seconds)
        y = errors.at(log10(_shown(trial.error))) if trial.error else errors.start
        colour = _COLOURS.get(trial.name.split(" ", 1)[0], _COLOURS["static"])
        told = f"{trial.name}: error {trial.error:.3g}, {trial.seconds * 1e3:.3g} ms, {trial.quantized} nodes quantised"
        yield f"<g><title>{xml(told)}</title>{_marker(x, y, number, colour)}</g>"
        row = TOP + 8 + (number - 1) * LINE
        yield _marker(WIDTH - RIGHT + 24, row, number, colour)
        yield _text(WIDTH - RIGHT + 38, row + 4, trial.name, DARK)
        yield _text(WIDTH - 78, row + 4, f"{trial.error:.2g}", FAINT, anchor="end")
        yield _text(WIDTH - 16, row + 4, f"{trial.seconds * 1e3:.3g} ms", FAINT, anchor="end")


def _marker(x: float, y: float, number: int, colour: str) -> str:
    """A disc with a number."""
    return (
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="8" fill="{colour}" fill-opacity="0.9" stroke="#ffffff"/>'
        f"{_text(x, y + 3.2, str(number), '#ffffff', anchor='middle', size=9, weight=600)}"
    )


def _text(
    x: float, y: float, text: str, colour: str, *, anchor: str = "start", size: float = LETTERS, weight: int = 400
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}" font-size="{size:g}" '
        f'font-weight="{weight}">{xml(text)}</text>'
    )
