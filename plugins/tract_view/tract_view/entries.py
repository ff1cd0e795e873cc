"""A model as a list of what can be shown: every node with its texts, and what it reads.

All that a page says of a node is taken here, as later stages change models in place. Constants are no entries: they
are listed with the nodes that read them, as they would drown the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Literal

from tract_core.analysis.inference import KnownTensor
from tract_core.errors import TractError
from tract_core.frontend.node import INTEGER, INTEGERS, NUMBER, NUMBERS, SIZES, TEXT, TEXTS, AttributeKind, Attributes
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
    """A constant that a node reads, and what its node is called: ``name``.

    ``slot``: which input; ``fact``: type and shape; ``number``: its place in the `ConstantTable`.
    """

    slot: int
    name: str
    fact: str
    number: int


@frozen
class Entry:
    """A node of a model, or of a body in it; or an output, as an entry of its own.

    ``kind``: which of these. ``name``, ``op``: of the node, and of its operator; ``attributes``: of that, with their
    texts. ``inputs``: for each input that is no constant, the number of the entry it comes from, which of its outputs
    that is, and which input this is; ``constants``: the others. ``facts``: of the outputs. ``place``: the body, and the
    id of the node in it; ``around``: the number of the entry whose body this is in, -1 outside of all.
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
    _Reading(model, found, constants, (), -1).read()
    return found


class _Reading:
    """Appends the entries of a model, which may be the body of an entry, to a list."""

    def __init__(
        self, model: Graph[Any, Any], found: list[Entry], constants: ConstantTable, path: BodyPath, around: int
    ) -> None:
        self.model = model
        self.found = found
        self.constants = constants
        self.path = path
        self.around = around
        self.numbers: dict[int, int] = {}

    def read(self) -> None:
        model = self.model
        inputs = {outlet.node for outlet in model.inputs}
        shown = {outlet.node for outlet in model.outputs}
        for node_id in model.eval_order([*model.inputs, *model.outputs]):
            node = model.nodes[node_id]
            if _is_constant(node) and node_id not in shown:
                continue
            self.numbers[node_id] = len(self.found)
            self.found.append(self._entry(node, "input" if node_id in inputs else _kind(node)))
            if len(self.path) < DEEPEST:
                self._bodies(node)
        self.found.extend(map(self._output, model.outputs))

    def _bodies(self, node: Node[Any, Any]) -> None:
        for number, body in enumerate(bodies_of(node.op)):
            path = (*self.path, (node.id, number))
            _Reading(body, self.found, self.constants, path, self.numbers[node.id]).read()

    def _entry(self, node: Node[Any, Any], kind: Kind) -> Entry:
        wires = [(outlet, slot) for slot, outlet in enumerate(node.inputs)]
        nodes = self.model.nodes
        return Entry(
            kind,
            short(node.name, LONGEST_NAME),
            short(node.op.name, LONGEST_NAME),
            tuple((self.numbers[one.node], one.slot, slot) for one, slot in wires if one.node in self.numbers),
            tuple(map(self._fact, node.outlets())),
            tuple(_attributes(node.op)),
            tuple(self._constant(one, slot) for one, slot in wires if _is_constant(nodes[one.node])) or self._own(node),
            (self.path, node.id),
            self.around,
        )

    def _own(self, node: Node[Any, Any]) -> tuple[ReadConstant, ...]:
        """The value of a node that is a constant itself, as an output of the model may be."""
        return tuple(self._constant(outlet, 0) for outlet in node.outlets()) if _is_constant(node) else ()

    def _fact(self, outlet: OutletId) -> str:
        return short(str(self.model.outlet_fact(outlet)))

    def _constant(self, outlet: OutletId, slot: int) -> ReadConstant:
        node = self.model.nodes[outlet.node]
        number = self.constants.number(node.op.value)
        return ReadConstant(slot, short(node.name, LONGEST_NAME), self._fact(outlet), number)

    def _output(self, outlet: OutletId) -> Entry:
        name = short(self.model.outlet_name(outlet), LONGEST_NAME)
        wires = ((self.numbers[outlet.node], outlet.slot, 0),)
        place = (self.path, -1)
        return Entry("output", name, "output", wires, (self._fact(outlet),), place=place, around=self.around)


def _kind(node: Node[Any, Any]) -> Kind:
    return "constant" if _is_constant(node) else "node"


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


_KINDS: Final[Sequence[AttributeKind[Any]]] = (INTEGER, INTEGERS, NUMBER, NUMBERS, TEXT, TEXTS, SIZES)


def _of_file(node: Any) -> list[tuple[str, str]]:
    """What a file says of a node; nothing of what is none."""
    return [(name, _as_text(node, name)) for name in node.names] if isinstance(node, Attributes) else []


def _as_text(node: Attributes, name: str) -> str:
    """An attribute, as the first kind that it can be asked for as."""
    kind: AttributeKind[Any]
    for kind in _KINDS:
        with suppress(TractError, TypeError, ValueError, KeyError):
            return str(node.find(name, kind))
    return "a tensor, or a graph"
