"""Graphs as pictures: what there is to draw, where it goes, and how it is written.

`picture_of` turns a graph into boxes and arrows; `svg_of` places and draws them without any other program, `dot_of`
writes them for Graphviz, and `drawn_by_graphviz` has Graphviz draw them where it is installed.
"""

from __future__ import annotations

from tract_core.drawing.dot import dot_of, drawn_by_graphviz
from tract_core.drawing.picture import Picture, picture_of
from tract_core.drawing.svg import inline_svg_of, svg_of

__all__ = ["Picture", "dot_of", "drawn_by_graphviz", "inline_svg_of", "picture_of", "svg_of"]
