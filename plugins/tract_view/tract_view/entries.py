"""A model as a list of what can be shown: every node with its texts, and what it reads.

All that a page says of a node is taken here, as later stages change models in place. Constants are no entries: they
are listed with the nodes that read them, as they would drown the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal

from tract_core.analysis.inference import KnownTensor
from tract_core.errors import TractError
from tract_core.frontend.node import INTEGER, INTEGERS, NUMBER, NUMBERS, SIZES, TEXT, TEXTS, Attributes
from tract_core.frozen import frozen
from tract_core.model.bodies import bodies_of
from tract_core.model.const import Const
from tract_core.model.op_text import attributes_of
from tract_core.texts import printable
from tract_view.constants import ConstantTable

if TYPE_CHECKING:
    from tract_core.model.graph import Graph, Node, OutletId
    from tract_core.runtime.parts import BodyPath

Kind = Literal["input", "node", "constant", "output"]

LONGEST_NAME: Final = 300
LONGEST_TEXT: Final = 500
"""Characters of a name, and of an attribute or a fact, that are kept; what is cut says so."""

MOST_ATTRIBUTES: Final = 64
DEEPEST: Final = 8
"""Attributes of a node, and bodies in bodies, that are shown."""


@frozen
class ReadConstant:
    """A constant that a node reads. ``slot``: which input; ``number``: its place in the `ConstantTable`."""

    slot: int
    name: str
    fact: str
    number: int


@frozen
class Entry:
    """A node of a model, or of a body in it.

    ``inputs``: for each input that is no constant, the number of the entry it comes from, which of its outputs that is,
    and which input this is. ``facts``: of the outputs. ``place``: the body, and the id of the node in it; ``around``:
    the number of the entry whose body this is in, -1 outside of all.
    """

    kind: Kind
    name: str
    op: str
    inputs: tuple[tuple[int, int, int], ...] = ()
    facts: tuple[str, ...] = ()
    attributes: tuple[tuple[str, str], ...] = ()
    constants: tuple[ReadConstant, ...] = ()
    place: tuple[BodyPath, int] = ((), -1)
    around: int = -1


def short(text: str, most: int = LONGEST_TEXT) -> str:
    """A text in one line, which steers nothing; of a long one the beginning, and how long it is."""
    if len(text) > most:
        text = f"{text[:most]}… ({len(text)} characters)"
    return printable(text)


def entries_of(model: Graph[Any, Any], constants: ConstantTable) -> list[Entry]:
    """The nodes of a model and its bodies, each after what it reads; those of a body behind the node that runs it."""
    found: list[Entry] = []
    _Reading(found, constants).read(model, (), -1)
    return found


class _Reading:
    """Appends the entries of one model after the other to a list."""

    def __init__(self, found: list[Entry], constants: ConstantTable) -> None:
        self.found = found
        self.constants = constants

    def read(self, model: Graph[Any, Any], path: BodyPath, around: int) -> None:
        numbers: dict[int, int] = {}
        inputs = {outlet.node for outlet in model.inputs}
        shown = {outlet.node for outlet in model.outputs}
        for node_id in model.eval_order([*model.inputs, *model.outputs]):
            node = model.nodes[node_id]
            if isinstance(node.op, (Const, KnownTensor)) and node_id not in shown:
                continue
            kind = "input" if node_id in inputs else "constant" if _is_constant(node) else "node"
            numbers[node_id] = len(self.found)
            self.found.append(self._entry(model, node, kind, numbers, (path, node_id), around))
            if len(path) < DEEPEST:
                for number, body in enumerate(bodies_of(node.op)):
                    self.read(body, (*path, (node_id, number)), numbers[node_id])
        for outlet in model.outputs:
            self.found.append(_output(model, outlet, numbers, path, around))

    def _entry(
        self,
        model: Graph[Any, Any],
        node: Node[Any, Any],
        kind: Kind,
        numbers: dict[int, int],
        place: tuple[BodyPath, int],
        around: int,
    ) -> Entry:
        wires = [(outlet, slot) for slot, outlet in enumerate(node.inputs)]
        return Entry(
            kind,
            short(node.name, LONGEST_NAME),
            short(node.op.name, LONGEST_NAME),
            tuple((numbers[one.node], one.slot, slot) for one, slot in wires if one.node in numbers),
            tuple(short(str(model.outlet_fact(outlet))) for outlet in node.outlets()),
            tuple(_attributes(node.op)),
            tuple(self._constant(model, one, slot) for one, slot in wires if _is_constant(model.nodes[one.node])),
            place,
            around,
        )

    def _constant(self, model: Graph[Any, Any], outlet: OutletId, slot: int) -> ReadConstant:
        node = model.nodes[outlet.node]
        fact = short(str(model.outlet_fact(outlet)))
        return ReadConstant(slot, short(node.name, LONGEST_NAME), fact, self.constants.number(node.op.value))


def _output(
    model: Graph[Any, Any], outlet: OutletId, numbers: dict[int, int], path: BodyPath, around: int
) -> Entry:
    name = short(model.outlet_name(outlet), LONGEST_NAME)
    wires = ((numbers[outlet.node], outlet.slot, 0),)
    return Entry("output", name, "output", wires, (short(str(model.outlet_fact(outlet))),), (), (), (path, -1), around)


def _is_constant(node: Node[Any, Any]) -> bool:
    return isinstance(node.op, (Const, KnownTensor))


def _attributes(op: Any) -> Iterator[tuple[str, str]]:
    """The fields of an operator as texts; of a node of a file, the attributes that the file gives it."""
    if isinstance(op, (Const, KnownTensor)):
        return
    try:
        pairs = _of_file(getattr(op, "node", None)) or attributes_of(op)
    except TractError as error:
        pairs = [("attributes", f"cannot be shown: {error}")]
    for name, text in pairs[:MOST_ATTRIBUTES]:
        yield short(name), short(text)
    if len(pairs) > MOST_ATTRIBUTES:
        yield "…", f"and {len(pairs) - MOST_ATTRIBUTES} more"


_KINDS: Final = (INTEGER, INTEGERS, NUMBER, NUMBERS, TEXT, TEXTS, SIZES)


def _of_file(node: Any) -> list[tuple[str, str]]:
    """What a file says of a node; nothing of what is none."""
    return [(name, _as_text(node, name)) for name in node.names] if isinstance(node, Attributes) else []


def _as_text(node: Attributes, name: str) -> str:
    """An attribute, as the first kind that it can be asked for as."""
    for kind in _KINDS:
        with suppress(TractError, TypeError, ValueError, KeyError):
            return str(node.find(name, kind))
    return "a tensor, or a graph"
