"""Pictures in the language of Graphviz, and drawn by it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from typing import Final

from tract_core.drawing.ink import DARK, FAINT, STROKE, colours_of, xml
from tract_core.drawing.picture import Box, Picture

SECONDS: Final = 20
"""How long Graphviz may draw."""

_SETTINGS: Final = f"""\
  graph [fontname="Helvetica", fontsize=10, fontcolor="{FAINT}", nodesep=0.3, ranksep=0.35, compound=true];
  node [shape=box, style="filled,rounded", fontname="Helvetica", fontsize=13, fontcolor="{DARK}", margin="0.12,0.06", \
height=0];
  edge [fontname="Helvetica", fontsize=10, fontcolor="{FAINT}", color="{STROKE}", arrowsize=0.6];"""


def dot_of(picture: Picture) -> str:
    """The picture as a text for the programs of Graphviz, as ``dot -Tpng``."""
    head = f"digraph {_quoted(picture.title or 'model')} {{"
    return "\n".join([head, _SETTINGS, *_content(picture, "n", "  "), "}", ""])


def drawn_by_graphviz(picture: Picture) -> str | None:
    """The picture as an SVG document of Graphviz's; ``None`` where it is not installed, fails or takes too long."""
    program = shutil.which("dot")
    if program is None:
        return None
    try:
        done = subprocess.run(
            [program, "-Tsvg"], input=dot_of(picture).encode(), capture_output=True, timeout=SECONDS, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.decode("utf-8", "replace")


def _content(picture: Picture, prefix: str, indent: str) -> Iterator[str]:
    """The statements of a graph; those of its bodies in clusters. ``prefix`` begins the names of its boxes."""
    for number, box in enumerate(picture.boxes):
        filling, border = colours_of(box)
        yield (
            f'{indent}{prefix}{number} [label=<{_label(box)}>, fillcolor="{filling}", color="{border}"'
            f"{_shape(box)}, tooltip={_quoted(box.tooltip)}];"
        )
    for arrow in picture.arrows:
        label = f" [label={_quoted(f' {arrow.label}')}]" if arrow.label else ""
        yield f"{indent}{prefix}{arrow.source} -> {prefix}{arrow.target}{label};"
    for place, (owner, body) in enumerate(picture.bodies):
        inner = f"{prefix}b{place}_"
        yield f"{indent}subgraph cluster_{inner} {{"
        yield f'{indent}  label={_quoted(body.title)}; color="{STROKE}"; style="dashed,rounded";'
        yield from _content(body, inner, f"{indent}  ")
        yield f"{indent}}}"
        if body.boxes:
            yield f"{indent}{prefix}{owner} -> {inner}0 [lhead=cluster_{inner}, style=dashed, arrowhead=none];"


def _label(box: Box) -> str:
    """Lines in the language that Graphviz takes for HTML."""
    title = f"<B>{xml(box.title)}</B>" if box.kind == "node" else xml(box.title) or " "
    small = [box.name, *box.notes] if box.name else [*box.notes]
    return "".join(
        [title, *(f'<BR/><FONT POINT-SIZE="10" COLOR="{FAINT}">{xml(text)}</FONT>' for text in small if text)]
    )


def _shape(box: Box) -> str:
    return "" if box.kind in ("node", "constant") else ', shape=box, style="filled,rounded", penwidth=1.2'


def _quoted(text: str) -> str:
    r"""A text between double quotes. Graphviz's own escapes begin with a backslash, and entities with an ampersand."""
    return '"' + xml(text).replace("\\", "\\\\").replace("\n", "\\n") + '"'
