"""The graph: nodes, the outlets that they offer, and the edges between them.

Node ids are positions in ``Graph.nodes`` and stay valid until `Graph.compact`. A node that was removed stays in the
list as a `Vacant` one until then.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

import numpy as np

from tract_core.dims import SymbolScope
from tract_core.errors import GraphError
from tract_core.limits import DEFAULT_LIMITS, count_node
from tract_core.model.names import Names, checked_name
from tract_core.model.op import Op

FactT = TypeVar("FactT")
OpT = TypeVar("OpT", bound=Op)
OpT_co = TypeVar("OpT_co", bound=Op, covariant=True)


class OutletId(NamedTuple):
    """One output of one node: the identifier of a tensor in a graph."""

    node: int
    slot: int = 0

    def __str__(self) -> str:
        return f"{self.node}/{self.slot}"


class InletId(NamedTuple):
    """One input of one node."""

    node: int
    slot: int

    def __str__(self) -> str:
        return f"{self.node}/{self.slot}"


@dataclass(slots=True)
class Outlet(Generic[FactT]):
    """Information for one output of a node: its fact, and the inputs that read it, in the order in which they came.

    The readers are the keys of a dictionary: one of a hundred thousand is removed as quickly as the only one.
    """

    fact: FactT
    successors: dict[InletId, None] = field(default_factory=dict[InletId, None])


@dataclass(slots=True)
class Node(Generic[FactT, OpT_co]):
    """An operator in its place in a graph. ``id`` is the node's position in ``Graph.nodes``."""

    id: int
    name: str
    op: OpT_co
    inputs: list[OutletId]
    outputs: list[Outlet[FactT]]

    def outlets(self) -> list[OutletId]:
        """The identifiers of the node's outputs, in order."""
        if len(self.outputs) == 1:  # as nearly always
            return [OutletId(self.id)]
        return [OutletId(self.id, slot) for slot in range(len(self.outputs))]

    def __str__(self) -> str:
        return f"#{self.id} {self.name!r} {self.op.name}"


class Vacant(Op):
    """What a removed node holds until the graph is compacted."""

    announces: ClassVar[tuple[str, ...]] = ()
    tells: ClassVar[tuple[str, ...]] = ()
    checks: ClassVar[bool] = False
    judges: ClassVar[tuple[int, ...]] = ()

    def __reduce__(self) -> str:
        return "VACANT"  # there is one: copies and pickles of a graph refer to it


VACANT: Final[Any] = Vacant()


class Graph(Generic[FactT, OpT]):
    """A directed graph of operators.

    ``inputs`` and ``outputs``: the outlets that make the model's interface, in order. ``outlet_labels``: names given to
    outlets other than the name of their node. ``properties``: arrays by name. ``symbols``: the scope of the symbolic
    sizes that occur in it. ``limits``: what typing, simplifying and running the model may take.
    """

    def __init__(self, symbols: SymbolScope | None = None) -> None:
        self.nodes: list[Node[FactT, OpT]] = []
        self.inputs: list[OutletId] = []
        self.outputs: list[OutletId] = []
        self.outlet_labels: dict[OutletId, str] = {}
        self.properties: dict[str, np.ndarray[Any, Any]] = {}
        self.symbols = SymbolScope() if symbols is None else symbols
        self.limits = DEFAULT_LIMITS
        self._ids = Names()

    def add_node(self, name: str, op: OpT, facts: Iterable[FactT], inputs: Sequence[OutletId] = ()) -> Node[FactT, OpT]:
        """Append a node. A name that is taken gets a numbered suffix.

        Raises GraphError for an unknown input, and for a name that cannot be shown (`tract_core.texts`).
        """
        count_node()
        number, name = len(self.nodes), self.unique_name(name)
        node = Node(number, name, op, list(inputs), [Outlet(fact) for fact in facts])
        for slot, outlet in enumerate(node.inputs):
            self.outlet(outlet).successors[InletId(number, slot)] = None
        self.nodes.append(node)
        self._ids.give(name, number)
        return node

    def unique_name(self, name: str) -> str:
        """``name`` if no node has it, else ``name.1``, ``name.2`` ..., the first that is free.

        Raises GraphError for a name that cannot be shown.
        """
        return self._ids.free(checked_name(name))

    def rename(self, node_id: int, name: str) -> None:
        """Give a node another name, made unique."""
        node = self.nodes[node_id]
        self._ids.take(node.name, node_id)
        node.name = self.unique_name(name)
        self._ids.give(node.name, node_id)

    def reconnect(self, inlet: InletId, outlet: OutletId) -> None:
        """Make an input read another outlet."""
        node = self.nodes[inlet.node]
        del self.outlet(node.inputs[inlet.slot]).successors[inlet]
        node.inputs[inlet.slot] = outlet
        self.outlet(outlet).successors[inlet] = None

    def rewire(self, node: Node[FactT, OpT], op: OpT, inputs: Sequence[OutletId]) -> None:
        """Give a node of the graph another operator, which reads ``inputs`` and has as many outputs."""
        for slot, outlet in enumerate(node.inputs):
            del self.outlet(outlet).successors[InletId(node.id, slot)]
        node.op, node.inputs = op, list(inputs)
        for slot, outlet in enumerate(node.inputs):
            self.outlet(outlet).successors[InletId(node.id, slot)] = None

    def set_outputs(self, outlets: Iterable[OutletId]) -> None:
        """Choose the outlets that are the model's outputs, in order."""
        self.outputs = list(outlets)

    def set_label(self, outlet: OutletId, label: str) -> None:
        """Give an outlet a name of its own. Raises GraphError for one that cannot be shown."""
        self.outlet_labels[outlet] = checked_name(label)

    def node(self, node_id: int) -> Node[FactT, OpT]:
        """The node of that id. Raises GraphError when there is none."""
        if not 0 <= node_id < len(self.nodes):
            raise GraphError(f"no node {node_id}: the graph has {len(self.nodes)}")
        return self.nodes[node_id]

    def node_by_name(self, name: str) -> Node[FactT, OpT]:
        """The node of that name. Raises GraphError, with the nearest names, when there is none."""
        if name in self._ids:
            return self.nodes[self._ids[name]]
        raise GraphError(f"no node named {name!r}", hint=_did_you_mean(name, self._ids))

    def has_node(self, name: str) -> bool:
        """Whether a node has that name."""
        return name in self._ids

    def outlet(self, outlet: OutletId) -> Outlet[FactT]:
        """The outlet of that id. Raises GraphError when there is none."""
        node, slot = outlet
        try:
            if node >= 0 and slot >= 0:
                return self.nodes[node].outputs[slot]
        except IndexError:
            pass
        raise GraphError(f"no outlet {outlet}: the graph has {len(self.nodes)} nodes")

    def outlet_fact(self, outlet: OutletId) -> FactT:
        """The fact of an outlet. Raises GraphError when there is none."""
        node, slot = outlet
        if node >= 0 and slot >= 0:
            try:
                return self.nodes[node].outputs[slot].fact
            except IndexError:
                pass
        return self.outlet(outlet).fact

    def set_outlet_fact(self, outlet: OutletId, fact: FactT) -> None:
        """Replace the fact of an outlet."""
        self.outlet(outlet).fact = fact

    def outlet_named(self, name: str) -> OutletId:
        """The tensor of that name: of an input or an output, a label, a node, or ``NODE:SLOT`` for a later output.

        Raises GraphError, with the nearest names, when there is none.
        """
        interface = {self.outlet_name(outlet): outlet for outlet in (*self.inputs, *self.outputs)}
        labelled = {label: outlet for outlet, label in self.outlet_labels.items()}
        found = interface.get(name) or labelled.get(name)
        if found is not None:
            return found
        base, _, slot = (name, "", "0") if name in self._ids else name.rpartition(":")
        if base in self._ids and slot.isdecimal():
            outlet = OutletId(self._ids[base], int(slot))
            self.outlet(outlet)
            return outlet
        hint = _did_you_mean(name, dict.fromkeys((*interface, *labelled, *self._ids)))
        raise GraphError(f"the model has no tensor named {name!r}", hint=hint)

    def outlet_name(self, outlet: OutletId) -> str:
        """The label of an outlet, else its node's name (with ``:slot`` for the second and later outputs)."""
        if outlet in self.outlet_labels:
            return self.outlet_labels[outlet]
        name = self.nodes[outlet.node].name
        return name if outlet.slot == 0 else f"{name}:{outlet.slot}"

    def input_facts(self, node: Node[FactT, OpT]) -> list[FactT]:
        """The facts of a node's inputs, in order."""
        nodes = self.nodes
        return [nodes[number].outputs[slot].fact for number, slot in node.inputs]

    def output_facts(self, node: Node[FactT, OpT]) -> list[FactT]:
        """The facts of a node's outputs, in order."""
        return [outlet.fact for outlet in node.outputs]

    def live_nodes(self) -> Iterator[Node[FactT, OpT]]:
        """The nodes that were not removed, in order of id."""
        return (node for node in self.nodes if node.op is not VACANT)

    def eval_order(self, targets: Sequence[OutletId] | None = None) -> list[int]:
        """Ids of the nodes that ``targets`` (default: the model's outputs) need, each after what it reads.

        Raises GraphError when the graph has a cycle.
        """
        order: list[int] = []
        state: dict[int, bool] = {}  # False while a node's inputs are being visited, True once it is placed
        for target in self.outputs if targets is None else targets:
            self._visit(target.node, state, order)
        return order

    def _visit(self, root: int, state: dict[int, bool], order: list[int]) -> None:
        stack: list[tuple[int, Iterator[OutletId]]] = []
        if root not in state:
            state[root] = False
            stack.append((root, iter(self.node(root).inputs)))
        while stack:
            current, inputs = stack[-1]
            for outlet in inputs:
                placed = state.get(outlet.node)
                if placed is False:
                    raise GraphError(f"cycle through node {self.node(outlet.node).name!r}")
                if placed is None:
                    state[outlet.node] = False
                    stack.append((outlet.node, iter(self.node(outlet.node).inputs)))
                    break
            else:
                state[current] = True
                order.append(current)
                stack.pop()

    def remove_if_dead(self, node_id: int) -> list[int]:
        """Remove a node that nothing reads, and the producers that this leaves unread.

        Returns the ids of the nodes that lost a reader and remain. Inputs and outputs of the model stay.
        """
        return [touched_id for touched_id in self.remove_dead([node_id]) if touched_id != node_id]

    def remove_dead(self, node_ids: Iterable[int]) -> list[int]:
        """Remove those of these nodes that nothing reads, and the producers that this leaves unread.

        Returns the ids of the nodes that were looked at and remain.
        """
        touched: list[int] = []
        pending = list(node_ids)
        while pending:
            node = self.nodes[pending.pop()]
            if node.op is VACANT:
                continue
            if any(outlet.successors for outlet in node.outputs) or self._has_interface(node) or self.must_stay(node):
                touched.append(node.id)
                continue
            self._vacate(node)
            pending.extend({outlet.node for outlet in node.inputs})
            node.inputs = []
        return touched

    def _has_interface(self, node: Node[FactT, OpT]) -> bool:
        return any(outlet in self.outputs or outlet in self.inputs for outlet in node.outlets())

    def must_stay(self, node: Node[FactT, OpT]) -> bool:
        """Whether a node that nothing reads is needed all the same."""
        return False

    def _vacate(self, node: Node[FactT, OpT]) -> None:
        for slot, outlet in enumerate(node.inputs):
            producer = self.nodes[outlet.node]
            if producer.op is not VACANT:
                del producer.outputs[outlet.slot].successors[InletId(node.id, slot)]
        self._ids.take(node.name, node.id)
        for outlet in node.outlets():
            self.outlet_labels.pop(outlet, None)
        node.op, node.outputs = VACANT, []

    def prune(self) -> None:
        """Remove the nodes that the outputs do not need (inputs stay). The ids of the others stay valid."""
        needed = set(self.eval_order([*self.inputs, *self.outputs]))
        for node in self.live_nodes():
            if node.id not in needed:
                self._vacate(node)
                node.inputs = []

    def rewind(self, count: int) -> None:
        """Take back every node after the first ``count``; nothing before may have been changed to read one of them."""
        while len(self.nodes) > count:
            node = self.nodes[-1]
            if node.op is not VACANT:
                self._vacate(node)
            self.nodes.pop()
        self.inputs = [outlet for outlet in self.inputs if outlet.node < count]
        self.outputs = [outlet for outlet in self.outputs if outlet.node < count]

    def compact(self) -> None:
        """Drop what the outputs do not need (inputs stay) and renumber the nodes in an order of evaluation."""
        order = self.eval_order([*self.inputs, *self.outputs])
        if order == list(range(len(self.nodes))):
            return
        renumbered = {old: new for new, old in enumerate(order)}
        kept = [self.nodes[old] for old in order]
        for node in kept:
            node.id = renumbered[node.id]
            node.inputs = [OutletId(renumbered[o.node], o.slot) for o in node.inputs]
            for outlet in node.outputs:
                outlet.successors = {
                    InletId(renumbered[i.node], i.slot): None for i in outlet.successors if i.node in renumbered
                }
        self.nodes = kept
        self._ids = Names((node.name, node.id) for node in kept)
        self.inputs = [OutletId(renumbered[o.node], o.slot) for o in self.inputs]
        self.outputs = [OutletId(renumbered[o.node], o.slot) for o in self.outputs]
        labels = {o: text for o, text in self.outlet_labels.items() if o.node in renumbered}
        self.outlet_labels = {OutletId(renumbered[o.node], o.slot): text for o, text in labels.items()}

    def check_edges(self) -> None:
        """Raise GraphError unless every edge is recorded on both of its ends and names are unique."""
        for node in self.live_nodes():
            if self._ids.get(node.name) != node.id:
                raise GraphError(f"two nodes share the name {node.name!r}", where=str(node))
            for slot, outlet in enumerate(node.inputs):
                if InletId(node.id, slot) not in self.outlet(outlet).successors:
                    raise GraphError(f"input {slot} is not among the readers of outlet {outlet}", where=str(node))
            for slot, outlet in enumerate(node.outputs):
                for reader in outlet.successors:
                    if self.node(reader.node).inputs[reader.slot] != OutletId(node.id, slot):
                        raise GraphError(f"output {slot} lists a reader that reads something else", where=str(node))
        for outlet in [*self.inputs, *self.outputs]:
            self.outlet(outlet)


def _did_you_mean(name: str, there: Iterable[str]) -> str | None:
    from difflib import get_close_matches

    names = list(there)
    near = get_close_matches(name, names, n=3)
    if not near and len(names) <= MOST_LISTED:
        return f"there are {', '.join(names)}"
    return f"did you mean {', '.join(near)}?" if near else None


MOST_LISTED: Final = 12
"""Names that are all listed where none of them is near."""
