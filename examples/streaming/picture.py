"""A picture of sounds: one track under the other."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from sound import RATE, Samples

WIDTH, HEIGHT, MARGIN = 1000, 90, 130
"""Of a track, and what is left of it for its name, in pixels."""


def tracks(sounds: Mapping[str, Samples]) -> str:
    """An SVG with a track per sound, all of the same scale."""
    longest = max(len(samples) for samples in sounds.values())
    loudest = max(float(abs(samples).max()) for samples in sounds.values()) or 1.0
    middles = [(index + 0.5) * HEIGHT for index in range(len(sounds))]
    lines = [
        f'<path d="{_track(samples, middle, longest, loudest)}"/>'
        for samples, middle in zip(sounds.values(), middles, strict=True)
    ]
    names = [
        f'<text x="8" y="{middle + 5}">{escape(name)}</text>' for name, middle in zip(sounds, middles, strict=True)
    ]
    bottom = len(sounds) * HEIGHT + 20
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {MARGIN + WIDTH + 10} {bottom + 10}">
<rect width="100%" height="100%" fill="white"/>
<g stroke="#1f77b4" fill="none">{"".join(lines)}</g>
<g font-family="sans-serif" font-size="14" fill="#333">{"".join(names)}
<text x="{MARGIN}" y="{bottom}">0 s</text>
<text x="{MARGIN + WIDTH}" y="{bottom}" text-anchor="end">{longest / RATE:.1f} s</text></g>
</svg>
"""


def _track(samples: Samples, middle: float, longest: int, loudest: float) -> str:
    """For each column of pixels, a line from the lowest to the highest sample."""
    scale, step = 0.45 * HEIGHT / loudest, max(longest / WIDTH, 1)
    columns = [samples[int(column * step) : int((column + 1) * step)] for column in range(WIDTH)]
    return "".join(
        f"M{MARGIN + column} {middle - scale * float(part.max()):.1f}V{middle - scale * float(part.min()) + 0.5:.1f}"
        for column, part in enumerate(columns)
        if len(part)
    )
