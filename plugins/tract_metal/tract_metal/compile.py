"""The compiler as a list of passes, each from one frozen value to the next, which can be looked at.

``group`` decides which nodes are computed together; ``place``, which groups MLX computes, and which are left to the
host; ``cut``, in which order, and what becomes one function of MLX.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_core.compile.groups import Group, groups_text, outlet_text
from tract_core.compile.passes import PassFn, through, up_to
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.limits import check_time
from tract_core.model.typed import TypedModel
from tract_core.runtime.host import HostNode, host_nodes
from tract_metal.elements import element_of
from tract_metal.group.grouping import MetalGrouper
from tract_metal.group.groups import Single
from tract_metal.segments import Hosted, Piece, Placed, in_few_pieces, pieces_of
from tract_metal.site import Keeping, Site
from tract_metal.table import KINDS, METAL

NO_WAY = "MLX has nothing for this operator yet"


@frozen
class MetalTarget:
    """What a model is compiled for. ``shows``: whether somebody looks at what each group gives."""

    shows: bool = False


@frozen
class MetalGrouped:
    """A model with its groups, in the order in which they were found."""

    model: TypedModel
    nodes: Mapping[int, HostNode]
    groups: tuple[Group, ...]

    def text(self) -> str:
        """A line for each group: its kind, its nodes; below it, what it says beyond that."""
        return groups_text(self.model, self.groups)


@frozen
class MetalPlaced(MetalGrouped):
    """A model with its groups, and which of them are left to the host."""

    placed: tuple[Placed, ...]

    def text(self) -> str:
        """A line for each group, with where it is computed."""
        lines = (f"{_names(self.model, one.group)}: {one.why or 'MLX'}\n" for one in self.placed)
        return "".join(lines)


@frozen
class MetalCut(MetalPlaced):
    """A model in pieces."""

    pieces: tuple[Piece, ...]

    def text(self) -> str:
        """A line for each piece, and below a function of MLX, what it reads, computes and gives."""
        return "".join(f"{line}\n" for piece in self.pieces for line in _lines(self.model, piece))


def _lines(model: TypedModel, piece: Piece) -> list[str]:
    if isinstance(piece, Hosted):
        return [f"host {piece.node.name} {piece.node.op.name}: {piece.why}"]
    reads, gives = (", ".join(outlet_text(model, one) for one in some) for some in (piece.reads, piece.gives))
    return [f"MLX {reads} -> {gives}", *(f"    {one.kind} {_names(model, one)}" for one in piece.groups)]


def _names(model: TypedModel, group: Group) -> str:
    return ", ".join(model.nodes[node].name for node in group.nodes)


def _grouped(model: TypedModel, target: MetalTarget) -> MetalGrouped:
    return _grouped_without(model, frozenset())


def _grouped_without(model: TypedModel, refused: frozenset[int]) -> MetalGrouped:
    nodes = host_nodes(model)
    return MetalGrouped(model, {node.node: node for node in nodes}, MetalGrouper(model, nodes, refused).found())


def _placed(grouped: MetalGrouped, target: MetalTarget) -> MetalPlaced:
    """Where MLX does not compute a group of several nodes, groups are made again without it."""
    refused = frozenset[int]()
    while True:
        placed = tuple(_place(grouped, group) for group in grouped.groups)
        several = frozenset(one.group.nodes[0] for one in placed if one.why is not None and len(one.group.nodes) > 1)
        if not several:
            return MetalPlaced(grouped.model, grouped.nodes, grouped.groups, placed)
        refused |= several
        grouped = _grouped_without(grouped.model, refused)


def _place(grouped: MetalGrouped, group: Group) -> Placed:
    """Where a group is computed."""
    check_time()
    found = _way_or_why(grouped, group)
    if isinstance(found, str):
        return Placed(group, found)
    return Placed(group, None, found if isinstance(found, Keeping) else None)


def _way_or_why(grouped: MetalGrouped, group: Group) -> object:
    """How MLX computes a group; a text where it does not."""
    model, site = grouped.model, Site(grouped.model, group)
    for outlet in (*site.inputs, *(one for node in group.nodes for one in model.nodes[node].outlets())):
        kind = model.outlet_fact(outlet).datum_type
        if element_of(kind) is None:
            return f"MLX does not compute with {kind.short} on every device"
    if any(grouped.nodes[node].binds for node in group.nodes):
        return "its sizes come up in the run"
    try:
        return way(site)
    except FactError as error:
        return f"sizes do not fit: {error.problem}"


def way(site: Site) -> object:
    """How MLX computes a group: `Computed`, `Keeping` or a function; a text where it does not."""
    registry = site.model.registry
    if not isinstance(site.group, Single):
        row = registry[KINDS].find(type(site.group))
        assert row is not None, "who makes groups has a row for them"
        return row(site.group, site)
    row = registry[METAL].find(type(site.op))
    return NO_WAY if row is None else row(site.op, site)


def _cut(placed: MetalPlaced, target: MetalTarget) -> MetalCut:
    ordered = in_few_pieces(placed.model, placed.placed, placed.nodes)
    pieces = pieces_of(placed.model, ordered, placed.nodes, each=target.shows)
    return MetalCut(placed.model, placed.nodes, placed.groups, tuple(ordered), tuple(pieces))


COMPILE: Final[Mapping[str, PassFn[MetalTarget]]] = {"group": _grouped, "place": _placed, "cut": _cut}
"""The passes by name, in order: ``(value, target) -> value``. The first one takes a model in normal form."""


def compiled(model: TypedModel, target: MetalTarget) -> MetalCut:
    """What all passes make of a model in normal form."""
    return through(COMPILE.values(), model, target)


def after(name: str, model: TypedModel, target: MetalTarget) -> MetalGrouped:
    """What the passes up to the one of this name make of a model in normal form, which has a text."""
    return through(up_to(name, COMPILE), model, target)
