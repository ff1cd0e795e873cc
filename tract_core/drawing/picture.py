"""What a picture of a graph shows: a box per node, an arrow per tensor that one node takes from another.

Constants would drown the rest: they are lines in the boxes of the nodes that read them. The bodies of loops and
branches are pictures of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

from tract_core.analysis.inference import KnownTensor
from tract_core.data import Constant
from tract_core.frozen import frozen
from tract_core.model.bodies import bodies_of
from tract_core.model.const import Const
from tract_core.model.fact import InferenceFact
from tract_core.model.graph import Graph, Node, OutletId
from tract_core.texts import printable

Kind = Literal["input", "node", "constant", "output"]

MOST_NOTES: Final = 3
"""Constants of a node that are listed."""

LONGEST: Final = 32
"""Characters of a name that are shown; the whole of it appears under the pointer."""

DEEPEST: Final = 8
"""Bodies in bodies that are drawn."""


@frozen
class Box:
    """One thing to draw. ``title``: the operator, or the name of an input or output. ``notes``: its constants.

    ``tooltip``: all there is to say, for whoever points at it.
    """

    kind: Kind
    title: str
    name: str = ""
    notes: tuple[str, ...] = ()
    tooltip: str = ""


@frozen
class Arrow:
    """A tensor on its way between two boxes, given by their numbers. ``slot``: which of the source's outputs it is.

    ``label``: its fact, at one of its arrows. ``source``, ``target``: these boxes.
    """

    source: int
    target: int
    slot: int = 0
    label: str = ""


@frozen
class Picture:
    """A graph to draw. ``bodies``: pictures of the bodies of boxes, with the numbers of the boxes.

    ``title``: what stands above it.
    """

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    bodies: tuple[tuple[int, Picture], ...] = ()

    @property
    def size(self) -> int:
        """How many boxes there are, those of bodies too."""
        return len(self.boxes) + sum(body.size for _, body in self.bodies)


def picture_of(
    graph: Graph[Any, Any], title: str = "", *, constants: bool = False, only: frozenset[int] | None = None
) -> Picture:
    """The picture of a graph. ``constants``: they get boxes too. ``only``: ids of the nodes to draw."""
    return _Drawing(graph, constants=constants, only=only).picture(title, DEEPEST)


class _Drawing:
    """The boxes and arrows of one graph, as they are found."""

    def __init__(self, graph: Graph[Any, Any], *, constants: bool, only: frozenset[int] | None) -> None:
        self.graph = graph
        self.constants = constants
        order = (graph.nodes[number] for number in graph.eval_order([*graph.inputs, *graph.outputs]))
        self.nodes = [node for node in order if only is None or node.id in only]
        self.whole = only is None
        self.boxes: list[Box] = []
        self.arrows: list[Arrow] = []
        self.place: dict[int, int] = {}
        self._labelled: set[OutletId] = set()

    def picture(self, title: str, depth: int) -> Picture:
        bodies: list[tuple[int, Picture]] = []
        for node in self.nodes:
            if _is_constant(node) and not self._has_box(node):
                continue
            self.place[node.id] = len(self.boxes)
            self.boxes.append(self._box(node))
            for outlet in node.inputs:
                self._arrow(outlet, self.place[node.id])
            for number, body in enumerate(bodies_of(node.op) if depth else ()):
                drawing = _Drawing(body, constants=self.constants, only=None)
                named = f"body {number} of {_short(node.name)} ({node.op.name})"
                bodies.append((self.place[node.id], drawing.picture(named, depth - 1)))
        for outlet in self.graph.outputs if self.whole else ():
            name = self.graph.outlet_name(outlet)
            self.boxes.append(Box("output", _short(name), tooltip=f"output {printable(name)}\n{self._fact(outlet)}"))
            self._arrow(outlet, len(self.boxes) - 1)
        return Picture(printable(title), tuple(self.boxes), tuple(self.arrows), tuple(bodies))

    def _has_box(self, node: Node[Any, Any]) -> bool:
        """Whether a constant is drawn: where that is asked for, and where it is an output."""
        return self.constants or any(outlet in self.graph.outputs for outlet in node.outlets())

    def _box(self, node: Node[Any, Any]) -> Box:
        facts = "\n".join(self._fact(outlet) for outlet in node.outlets())
        tooltip = f"node {node.id}: {printable(node.op.name)}\n{printable(node.name)}\n{facts}"
        if any(outlet in self.graph.inputs for outlet in node.outlets()):
            return Box("input", _short(node.name), tooltip=tooltip)
        if _is_constant(node):
            return Box("constant", "Const", _short(node.name), tooltip=tooltip)
        return Box("node", _short(node.op.name), _short(node.name), tuple(self._notes(node)), tooltip)

    def _notes(self, node: Node[Any, Any]) -> Iterator[str]:
        """What the constants are that a node reads: numbers where they are single, else type and shape."""
        read = [outlet for outlet in node.inputs if _is_constant(self.graph.nodes[outlet.node])]
        hidden = [outlet for outlet in read if not self._has_box(self.graph.nodes[outlet.node])]
        for outlet in hidden[:MOST_NOTES]:
            value = self.graph.nodes[outlet.node].op.value
            single = isinstance(value, Constant) and value.array.size == 1 and value.array.dtype.kind != "O"
            yield _short(str(value.array.reshape(-1)[0])) if single else self._fact(outlet)
        if len(hidden) > MOST_NOTES:
            yield f"and {len(hidden) - MOST_NOTES} more"

    def _arrow(self, outlet: OutletId, target: int) -> None:
        source = self.place.get(outlet.node)
        if source is None:
            return
        said = self.graph.outlet_fact(outlet) != InferenceFact()
        label = _short(self._fact(outlet)) if said and outlet not in self._labelled else ""
        self._labelled.add(outlet)
        self.arrows.append(Arrow(source, target, outlet.slot, label))

    def _fact(self, outlet: OutletId) -> str:
        return printable(str(self.graph.outlet_fact(outlet)))


def _is_constant(node: Node[Any, Any]) -> bool:
    return isinstance(node.op, (Const, KnownTensor))


def _short(name: str) -> str:
    """A name that fits into a box: of a long one the beginning and the end, which tells it from others."""
    name = printable(name)
    if len(name) <= LONGEST:
        return name
    return f"{name[: LONGEST // 3]}…{name[-(LONGEST - LONGEST // 3 - 1) :]}"
