"""Pictures as SVG, placed by `tract_core.drawing.layout`: no other program, no script, nothing fetched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from tract_core.drawing.ink import DARK, FAINT, FONT, STROKE, colours_of, width_of, xml
from tract_core.drawing.layout import Layout, place
from tract_core.drawing.picture import Box, Picture

TITLE: Final = 13.0
SMALL: Final = 10.0
"""Sizes of letters, in pixels: of titles, and of names, notes and facts."""

PADDING: Final = 9.0
LEADING: Final = 3.5
MARGIN: Final = 16.0
HEAD: Final = 26.0
"""Pixels: inside boxes, between lines, around a picture, for the title of a body."""

GAP: Final = (26.0, 48.0)
"""Pixels between neighbours, and between layers."""
TRUNK: Final = 16.0
LEAD: Final = 8.0
"""Pixels that an arrow runs straight below its box, and above a layer that it passes."""

Point = tuple[float, float]


class Panel(NamedTuple):
    """A drawn picture: its elements, as if its upper left corner were at 0, 0, and its size."""

    elements: list[str]
    width: float
    height: float


def svg_of(picture: Picture) -> str:
    """The picture as an SVG document, on white paper. Raises `layout.TooLarge`."""
    return _document(
        picture, 'xmlns="http://www.w3.org/2000/svg" ', '<rect width="100%" height="100%" fill="#ffffff"/>'
    )


def inline_svg_of(picture: Picture) -> str:
    """The picture as an element inside HTML, without paper, as pages may be dark. Raises `layout.TooLarge`."""
    return _document(picture, "", "")


def _document(picture: Picture, attributes: str, paper: str) -> str:
    panel = _panel(picture)
    width, height = panel.width + 2 * MARGIN, panel.height + 2 * MARGIN
    return (
        f'<svg {attributes}width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{FONT}" role="img">'
        f"<title>{xml(picture.title)}</title>{paper}"
        f'<g transform="translate({MARGIN:.0f},{MARGIN:.0f})">{"".join(panel.elements)}</g></svg>\n'
    )


def _panel(picture: Picture) -> Panel:
    """The graph, and to the right of it its bodies, each in a frame."""
    labels = _labels(picture)
    sizes = [_size(box, labels[number]) for number, box in enumerate(picture.boxes)]
    rooms = [_room(width, labels[number]) for number, (width, _) in enumerate(sizes)]
    edges = [(arrow.source, arrow.target) for arrow in picture.arrows]
    layout = place([height for _, height in sizes], rooms, edges, GAP)
    elements = [*_arrows(picture, layout, sizes, labels), *_boxes(picture.boxes, layout, sizes)]
    width, height = layout.width, layout.height
    for _, body in picture.bodies:
        inner = _panel(body)
        elements += _framed(body.title, inner, width + 2 * MARGIN)
        width += max(inner.width, width_of(body.title, SMALL)) + 4 * MARGIN
        height = max(height, inner.height + HEAD + MARGIN)
    return Panel(elements, width, height)


def _labels(picture: Picture) -> list[dict[int, str]]:
    """For each box, the facts of its outputs that are drawn, by slot, in order."""
    labels: list[dict[int, str]] = [{} for _ in picture.boxes]
    for arrow in sorted(picture.arrows, key=lambda arrow: arrow.slot):
        if arrow.label:
            labels[arrow.source][arrow.slot] = arrow.label
    return labels


def _label_width(label: str) -> float:
    return width_of(label, SMALL) + 14


def _room(width: float, labels: Mapping[int, str]) -> Point:
    """What a box needs to the left and right of its middle, the label beside its arrow included."""
    beside = max(map(_label_width, labels.values()), default=0.0) if len(labels) == 1 else 0.0
    return width / 2, max(width / 2, beside)


def _framed(title: str, inner: Panel, left: float) -> Iterator[str]:
    """A body in a frame of its own, under its title."""
    width = max(inner.width, width_of(title, SMALL)) + 2 * MARGIN
    yield (
        f'<rect x="{left:.1f}" y="0" width="{width:.1f}" height="{inner.height + HEAD + MARGIN:.1f}" rx="8" '
        f'fill="none" stroke="{STROKE}" stroke-dasharray="5 4"/>'
        f'<text x="{left + MARGIN:.1f}" y="17" font-size="{SMALL:g}" fill="{FAINT}">{xml(title)}</text>'
        f'<g transform="translate({left + MARGIN:.1f},{HEAD:g})">'
    )
    yield from inner.elements
    yield "</g>"


def _lines(box: Box) -> list[tuple[str, float, str]]:
    """The lines of a box: text, size of the letters, colour."""
    small = [box.name, *box.notes] if box.name else [*box.notes]
    return [(box.title, TITLE, DARK), *((text, SMALL, FAINT) for text in small)]


def _size(box: Box, labels: Mapping[int, str]) -> Point:
    """Width and height. A box of several outputs is as wide as the labels below it."""
    lines = _lines(box)
    width = max(width_of(text, size) for text, size, _ in lines)
    if len(labels) > 1:
        width = max(width, sum(map(_label_width, labels.values())))
    height = sum(size for _, size, _ in lines) + LEADING * (len(lines) - 1)
    return width + 2 * PADDING, height + 1.4 * PADDING


def _boxes(boxes: Sequence[Box], layout: Layout, sizes: Sequence[Point]) -> Iterator[str]:
    for box, (x, y), (width, height) in zip(boxes, layout.centres, sizes, strict=True):
        filling, border = colours_of(box)
        corner = 4 if box.kind in ("node", "constant") else height / 2
        yield (
            f"<g><title>{xml(box.tooltip)}</title>"
            f'<rect x="{x - width / 2:.1f}" y="{y - height / 2:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'rx="{corner:.1f}" fill="{filling}" stroke="{border}"/>'
        )
        bottom = y - height / 2 + 0.7 * PADDING
        for text, size, colour in _lines(box):
            bottom += size
            weight = ' font-weight="600"' if size == TITLE and box.kind == "node" else ""
            yield (
                f'<text x="{x:.1f}" y="{bottom - 0.15 * size:.1f}" text-anchor="middle" font-size="{size:g}"{weight} '
                f'fill="{colour}">{xml(text)}</text>'
            )
            bottom += LEADING
        yield "</g>"


def _arrows(
    picture: Picture, layout: Layout, sizes: Sequence[Point], labels: Sequence[Mapping[int, str]]
) -> Iterator[str]:
    """Every arrow as a curve through its passages. Those of one tensor share a trunk, and the label beside it."""
    for arrow, passages in zip(picture.arrows, layout.passages, strict=True):
        (x, y), (end_x, end_y) = layout.centres[arrow.source], layout.centres[arrow.target]
        x += _port(labels[arrow.source], arrow.slot)
        y += sizes[arrow.source][1] / 2
        middle = [point for x_at, top, bottom in passages for point in ((x_at, top - LEAD), (x_at, bottom))]
        width, height = sizes[arrow.target]
        tip = _near(middle[-1][0] if middle else x, end_x, 0.4 * width), end_y - height / 2 - 5
        points = [(x, y), (x, y + TRUNK), *middle, tip]
        yield _curve(points)
        yield _head(points[-1])
        if arrow.label:
            yield _label(arrow.label, points[0])


def _port(labels: Mapping[int, str], slot: int) -> float:
    """How far to the right of the middle of a box the arrows of an output begin."""
    if len(labels) < 2:
        return 0.0
    widths = {one: _label_width(label) for one, label in labels.items()}
    before = sum(taken for one, taken in widths.items() if one < slot)
    return before - sum(widths.values()) / 2 + 8


def _near(wanted: float, centre: float, reach: float) -> float:
    return min(max(wanted, centre - reach), centre + reach)


def _curve(points: Sequence[Point]) -> str:
    (x, y), *others = points
    parts = [f"M{x:.1f} {y:.1f}"]
    for next_x, next_y in others:
        half = (y + next_y) / 2
        straight = abs(next_x - x) < 0.05
        parts.append(
            f"V{next_y:.1f}" if straight else f"C{x:.1f} {half:.1f} {next_x:.1f} {half:.1f} {next_x:.1f} {next_y:.1f}"
        )
        x, y = next_x, next_y
    return f'<path d="{"".join(parts)}" fill="none" stroke="{STROKE}"/>'


def _head(tip: Point) -> str:
    x, y = tip
    return f'<path d="M{x - 3.5:.1f} {y - 1:.1f}h7l-3.5 6z" fill="{STROKE}"/>'


def _label(text: str, start: Point) -> str:
    x, y = start[0] + 5, start[1] + SMALL + 4
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{SMALL:g}" fill="{FAINT}">{xml(text)}</text>'
