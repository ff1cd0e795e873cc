"""Which nodes one kernel computes, and in which order: what a runtime that compiles decides first.

A group is what one kernel computes. A `Grouper` goes through the nodes in order of execution and has the runtime begin
a group with each that is in none yet; the runtime says what its kernels can take along, and this module finds it: the
chain of element-wise nodes behind a tensor, all nodes around one that reduce or compute elements along the same axes,
a product that waits for another one. Nothing here knows memory or machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, TypeVar

from tract_core.data import Constant
from tract_core.frozen import frozen
from tract_core.limits import check_time
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.runtime.host import HostNode

SMALL: Final = 1 << 16
"""Elements of a tensor that is computed before its turn where that is of use."""

MOST_EARLY: Final = 16
"""How many nodes are computed before their turn, one behind the other."""


@frozen
class Group:
    """Nodes that one kernel computes. ``nodes``: their ids, the one first that began the group.

    Classes of groups say what is computed beyond that; the name of its class is what a group is called in texts.
    """

    nodes: tuple[int, ...]

    @property
    def kind(self) -> str:
        """What it is called."""
        return type(self).__name__.lower()

    def notes(self, model: TypedModel) -> Iterator[str]:
        """What its text says beyond its nodes. ``model``: what these are of."""
        yield from ()


G = TypeVar("G", bound=Group)


class Grouper(Generic[G]):
    """Puts the nodes of a model into groups. A runtime derives from it, and says how a group begins.

    ``groups``: those that there are by now, in the order in which they are computed. ``there``: the tensors that these
    give, beside inputs and constants.
    """

    def __init__(self, model: TypedModel, nodes: Sequence[HostNode]) -> None:
        """``nodes``: in order of execution."""
        self.model = model
        self.groups: list[G] = []
        self.there: set[OutletId] = set(model.inputs)
        self.nodes = {node.node: node for node in nodes}
        self._taken: set[int] = set()
        self._waiting: dict[int, int] = {}
        self._awaited: dict[int, tuple[int, ...]] = {}
        self._brings = False

    def begin(self, node: HostNode) -> G | None:
        """The group that begins with a node; ``None`` where the node waits for another one (`wait`)."""
        raise NotImplementedError

    def begin_early(self, node: HostNode) -> G | None:
        """The same before its turn, so that what reads it can be computed along; ``None`` where that is not wanted."""
        return None

    def added(self, group: G) -> None:
        """A group is one of them now."""

    def found(self) -> tuple[G, ...]:
        """All groups. Raises LimitExceeded when the time to prepare the model is up."""
        for node in list(self.nodes.values()):
            if node.node not in self._waiting:
                for number in (*self._awaited.get(node.node, ()), node.node):
                    self.visit(self.nodes[number])
        return tuple(self.groups)

    def visit(self, node: HostNode) -> None:
        """Have a node in a group, unless it is in one, or is a constant."""
        check_time()
        if node.node not in self._taken and not self.is_constant(OutletId(node.node)):
            self._add(self.begin(node))

    def _add(self, group: G | None) -> None:
        if group is not None:
            self.groups.append(group)
            self._taken.update(group.nodes)
            self.there.update(given_by(self.model, group.nodes))
            self.added(group)

    def is_constant(self, outlet: OutletId) -> bool:
        """Whether a tensor is part of the model, as an array: not as sizes, which are computed."""
        return is_constant(self.model, outlet)

    def is_taken(self, node: int) -> bool:
        """Whether a node is in a group already, as one that was computed before its turn."""
        return node in self._taken

    def has(self, outlet: OutletId) -> bool:
        """Whether a tensor is there already."""
        return outlet in self.there or self.is_constant(outlet)

    def only_reader(self, outlet: OutletId) -> TypedNode | None:
        """The node that alone reads a tensor, at one or several of its inputs; ``None`` where others see it, too."""
        readers = {reader.node for reader in self.model.outlet(outlet).successors}
        if outlet in self.model.outputs or len(readers) != 1:
            return None
        return self.model.nodes[readers.pop()]

    def reader_at_one(self, outlet: OutletId) -> TypedNode | None:
        """The node that alone reads a tensor, at one of its inputs; ``None`` where there is more to it."""
        node = self.only_reader(outlet)
        return node if node is not None and node.inputs.count(outlet) == 1 else None

    def wait(self, nodes: Sequence[int], last: int) -> None:
        """Have nodes visited, in this order, right before another one that comes later."""
        self._waiting.update(dict.fromkeys(nodes, last))
        self._awaited[last] = tuple(nodes)

    def waits(self, node: int) -> bool:
        """Whether a node waits for another one, or did."""
        return node in self._waiting

    def bring(self, outlet: OutletId, group: Sequence[int]) -> bool:
        """Have a small tensor computed before its turn, where that is possible. Returns whether the tensor is there.

        ``group``: the nodes that are about to be computed, and would read it.
        """
        if self.has(outlet) or self._brings:
            return self.has(outlet)
        self._brings = True
        found = self._brought(outlet, frozenset(group), MOST_EARLY)
        self._brings = False
        return found

    def _brought(self, outlet: OutletId, group: frozenset[int], most: int) -> bool:
        """``most``: of how many nodes, one behind the other, it may be made of what is there."""
        if self.has(outlet):
            return True
        node, volume = self.model.nodes[outlet.node], self.model.outlet_fact(outlet).shape.volume
        if not most or node.id in group or node.op.checks or not isinstance(volume, int) or volume > SMALL:
            return False
        if not all(self._brought(one, group, most - 1) for one in node.inputs):
            return False
        host = self.nodes.get(node.id)
        free = host is not None and node.id not in self._taken and not self.waits(node.id)
        early = self.begin_early(host) if host is not None and free else None
        self._add(early)
        return self.has(outlet)


def given_by(model: TypedModel, nodes: Sequence[int]) -> Iterator[OutletId]:
    """The tensors of a group with these nodes that somebody else reads, or the caller; all of its last node."""
    inside = set(nodes)
    for number in nodes:
        last = number == nodes[-1]
        for outlet in model.nodes[number].outlets():
            if (
                last
                or outlet in model.outputs
                or any(one.node not in inside for one in model.outlet(outlet).successors)
            ):
                yield outlet


def is_constant(model: TypedModel, outlet: OutletId) -> bool:
    """Whether a tensor is part of a model, as an array."""
    op = model.nodes[outlet.node].op
    return isinstance(op, Const) and isinstance(op.value, Constant)


def neighbours(
    model: TypedModel, sources: Sequence[OutletId], joined: Sequence[int], join: Callable[[TypedNode], bool]
) -> None:
    """Have every node join a group that can, of those that read what nodes of the group give, or one of ``sources``.

    ``joined``: the nodes that it has, to which ``join`` adds one where it fits.
    """
    inside, order, more = set(joined), list(joined), True
    while more:
        more = False
        for outlet in [*sources, *map(OutletId, order)]:
            readers = {reader.node for reader in model.outlet(outlet).successors}
            for number in sorted(readers - inside):
                if join(model.nodes[number]):
                    inside.add(number)
                    order.append(number)
                    more = True


def groups_text(model: TypedModel, groups: Sequence[Group]) -> str:
    """A line for each group: its kind and its nodes; below it, what it says beyond that."""
    lines: list[str] = []
    for number, group in enumerate(groups):
        lines.append(f"{number:>4} {group.kind} {', '.join(model.nodes[node].name for node in group.nodes)}")
        lines += (f"       {note}" for note in group.notes(model))
    return "\n".join(lines) + "\n"


def outlet_text(model: TypedModel, outlet: OutletId) -> str:
    """A tensor by the name of its node, with the number of the output where that is not the first one."""
    name = model.nodes[outlet.node].name
    return f"{name}:{outlet.slot}" if outlet.slot else name
