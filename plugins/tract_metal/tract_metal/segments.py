"""A model, cut where a node is left to the host: what lies between is one function of MLX."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import count

from tract_core.compile.groups import Group, given_by, is_constant
from tract_core.compile.lifetimes import read_by
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.runtime.host import HostNode
from tract_metal.group.groups import reads_of
from tract_metal.site import Keeping


@frozen
class Placed:
    """A group. ``why``: it is left to the host, ``None`` where MLX computes it; ``keeping``: how it keeps state."""

    group: Group
    why: str | None
    keeping: Keeping | None = None


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
    """Groups in the order in which they are computed, while it is found: by their places in the order so far.

    ``_behind``: for each, which wait for it; ``_missing``: for how many others each one waits; ``_ready``: those that
    wait for none, of MLX and of the host.
    """

    def __init__(self, model: TypedModel, placed: Sequence[Placed], nodes: Mapping[int, HostNode]) -> None:
        self._placed = placed
        self._behind: list[list[int]] = [[] for _ in placed]
        self._missing: list[int] = []
        self._ready: dict[bool, list[int]] = {False: [], True: []}
        owner, teller = self._makers(model, nodes)
        for place, one in enumerate(placed):
            inside = [nodes[node] for node in one.group.nodes]
            names = {name for node in inside for name in _names_before(node, hosted=one.why is not None)}
            before = {owner[outlet] for outlet in read_by(model, one.group.nodes) if outlet in owner}
            before |= {teller[name] for name in names if name in teller}
            before.discard(place)
            self._missing.append(len(before))
            for other in before:
                self._behind[other].append(place)
            if not before:
                heappush(self._ready[one.why is not None], place)

    def _makers(self, model: TypedModel, nodes: Mapping[int, HostNode]) -> tuple[dict[OutletId, int], dict[str, int]]:
        """For each tensor that a group gives, and each symbol that comes up in the run, the place of that group."""
        owner, teller = dict[OutletId, int](), dict[str, int]()
        known = model.given_symbols()
        for place, one in enumerate(self._placed):
            owner |= dict.fromkeys(given_by(model, one.group.nodes), place)
            binds = frozenset[str]().union(*(nodes[node].binds for node in one.group.nodes))
            if binds:
                more = model.symbols.definitions.with_known(known | binds)
                teller |= dict.fromkeys(more - known, place)
                known = more
        return owner, teller

    def found(self) -> list[Placed]:
        """All, those of one side as long as there are any."""
        order, hosted = list[Placed](), False
        while any(self._ready.values()):
            while self._ready[hosted]:
                order.append(self._taken(heappop(self._ready[hosted])))
            hosted = not hosted
        return order

    def _taken(self, place: int) -> Placed:
        for other in self._behind[place]:
            self._missing[other] -= 1
            if not self._missing[other]:
                heappush(self._ready[self._placed[other].why is not None], other)
        return self._placed[place]


def _names_before(node: HostNode, *, hosted: bool) -> Iterable[str]:
    """The symbols that have values before a node is computed; MLX has to know all sizes of what it gives."""
    return node.needs if hosted else (*node.needs, *node.promise.symbols)


def in_few_pieces(model: TypedModel, placed: Sequence[Placed], nodes: Mapping[int, HostNode]) -> list[Placed]:
    """The same groups in another order: of those whose inputs are there, all of MLX come before any of the host."""
    return _Order(model, placed, nodes).found()


def pieces_of(model: TypedModel, placed: Sequence[Placed], nodes: Mapping[int, HostNode], *, each: bool) -> list[Piece]:
    """The pieces of a model. ``each``: whether every group is one of its own, as somebody looks at what it gives."""
    runs = list(_runs(placed, nodes, each=each))
    wanted = _wanted_behind(model, runs)
    keeping = {one.group.nodes[0] for one in placed if one.keeping is not None}
    found, numbers = list[Piece](), count()
    for place, run in enumerate(runs):
        if isinstance(run, Hosted):
            found.append(run)
            continue
        reads, weights = (
            tuple(outlet for outlet in _reads(model, run) if is_constant(model, outlet) is constant)
            for constant in (False, True)
        )
        gives = tuple(outlet for outlet in _gives(model, run) if outlet in wanted[place] or each)
        kept = tuple(group.nodes[0] for group in run if group.nodes[0] in keeping)
        found.append(Segment(next(numbers), tuple(run), reads, weights, gives, kept))
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
