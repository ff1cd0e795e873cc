"""A model, cut where a node is left to the host: what lies between is one function of MLX."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tract_core.compile.groups import Group, given_by, is_constant
from tract_core.compile.lifetimes import read_by
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.runtime.host import HostNode
from tract_metal.group.groups import reads_of


@frozen
class Placed:
    """A group. ``why``: it is left to the host, ``None`` where MLX computes it; ``keeps``: whether it keeps state."""

    group: Group
    why: str | None
    keeps: bool = False


@frozen
class Hosted:
    """One node that the node executor of the core runs, on arrays of NumPy. ``why``: for want of what."""

    node: HostNode
    why: str

    @property
    def reads(self) -> tuple[OutletId, ...]:
        """The tensors that it reads."""
        return tuple(dict.fromkeys(self.node.inputs))


@frozen
class Segment:
    """Groups that MLX computes in one go, in order. ``number``: which segment.

    ``reads``, ``weights``, ``gives``: tensors of others, those that are part of the model, and what others want of it.
    ``keeps``: the nodes that keep something between turns.
    """

    number: int
    groups: tuple[Group, ...]
    reads: tuple[OutletId, ...]
    weights: tuple[OutletId, ...]
    gives: tuple[OutletId, ...]
    keeps: tuple[int, ...]


Piece = Segment | Hosted


class _Order:
    """Groups in the order in which they are computed, while it is found."""

    def __init__(self, model: TypedModel, nodes: Mapping[int, HostNode]) -> None:
        self._model, self._nodes = model, nodes
        self._there = set(model.inputs)
        self._known = model.given_symbols()
        self.found: list[Placed] = []

    def take(self, waiting: Sequence[Placed], *, hosted: bool) -> list[Placed]:
        """Take all that can be computed by now on one side, one behind the other. Returns the rest."""
        rest = list[Placed]()
        for one in waiting:
            if (one.why is not None) is hosted and self._is_ready(one):
                self.found.append(one)
                self._there.update(given_by(self._model, one.group.nodes))
                self._learn(one)
            else:
                rest.append(one)
        return rest

    def _is_ready(self, one: Placed) -> bool:
        reads = read_by(self._model, one.group.nodes)
        if not all(outlet in self._there or is_constant(self._model, outlet) for outlet in reads):
            return False
        nodes = [self._nodes[node] for node in one.group.nodes]
        if one.why is not None:
            return all(self._known.issuperset(node.needs) for node in nodes)
        return all(self._known.issuperset({*node.needs, *node.promise.symbols}) for node in nodes)

    def _learn(self, one: Placed) -> None:
        binds = frozenset[str]().union(*(self._nodes[node].binds for node in one.group.nodes))
        if binds:
            self._known = self._model.symbols.definitions.with_known(self._known | binds)


def in_few_pieces(model: TypedModel, placed: Sequence[Placed], nodes: Mapping[int, HostNode]) -> list[Placed]:
    """The same groups in another order: of those whose inputs are there, all of MLX come before any of the host."""
    order, waiting, stuck = _Order(model, nodes), list(placed), 0
    hosted = False
    while waiting and stuck < 2:
        rest = order.take(waiting, hosted=hosted)
        stuck = 0 if len(rest) < len(waiting) else stuck + 1
        waiting, hosted = rest, not hosted
    return [*order.found, *waiting]


def pieces_of(model: TypedModel, placed: Sequence[Placed], nodes: Mapping[int, HostNode], *, each: bool) -> list[Piece]:
    """The pieces of a model. ``each``: whether every group is one of its own, as somebody looks at what it gives."""
    runs = list(_runs(placed, nodes, each=each))
    wanted = _wanted_behind(model, runs)
    keeping = {one.group.nodes[0] for one in placed if one.keeps}
    found = list[Piece]()
    for place, run in enumerate(runs):
        if isinstance(run, Hosted):
            found.append(run)
            continue
        reads, weights = (
            tuple(outlet for outlet in _reads(model, run) if is_constant(model, outlet) is constant)
            for constant in (False, True)
        )
        gives = tuple(outlet for outlet in _gives(model, run) if outlet in wanted[place] or each)
        number = sum(isinstance(one, Segment) for one in found)
        kept = tuple(group.nodes[0] for group in run if group.nodes[0] in keeping)
        found.append(Segment(number, tuple(run), reads, weights, gives, kept))
    return found


def _wanted_behind(model: TypedModel, runs: Sequence[Hosted | list[Group]]) -> list[frozenset[OutletId]]:
    """For each run, which of its tensors later ones read, or the caller."""
    made = [_gives(model, run) for run in runs]
    owner = {outlet: place for place, outlets in enumerate(made) for outlet in outlets}
    found: list[set[OutletId]] = [set() for _ in runs]
    for place, run in enumerate(runs):
        for outlet in _reads(model, run):
            if owner.get(outlet, place) != place:
                found[owner[outlet]].add(outlet)
    for outlet in model.outputs:
        if outlet in owner:
            found[owner[outlet]].add(outlet)
    return [frozenset(one) for one in found]


def _gives(model: TypedModel, run: Hosted | list[Group]) -> list[OutletId]:
    if isinstance(run, Hosted):
        return list(model.nodes[run.node.node].outlets())
    return [outlet for group in run for outlet in given_by(model, group.nodes)]


def _runs(placed: Sequence[Placed], nodes: Mapping[int, HostNode], *, each: bool) -> Iterator[Hosted | list[Group]]:
    here = list[Group]()
    for one in placed:
        if here and (each or one.why is not None):
            yield here
            here = []
        if one.why is None:
            here.append(one.group)
        else:
            yield Hosted(nodes[one.group.nodes[0]], one.why)
    if here:
        yield here


def _reads(model: TypedModel, run: Hosted | list[Group]) -> list[OutletId]:
    if isinstance(run, Hosted):
        return list(run.reads)
    inside = {node for group in run for node in group.nodes}
    reads = (outlet for group in run for outlet in reads_of(model, group) if outlet.node not in inside)
    return list(dict.fromkeys(reads))


def dying_after(pieces: Sequence[Piece], outputs: Sequence[OutletId]) -> list[list[OutletId]]:
    """For each piece, the tensors that nobody needs behind it."""
    last: dict[OutletId, int] = {}
    for place, piece in enumerate(pieces):
        given = piece.gives if isinstance(piece, Segment) else ()
        last |= dict.fromkeys((*piece.reads, *given), place)
    found: list[list[OutletId]] = [[] for _ in pieces]
    for outlet, place in last.items():
        if outlet not in outputs:
            found[place].append(outlet)
    return found
