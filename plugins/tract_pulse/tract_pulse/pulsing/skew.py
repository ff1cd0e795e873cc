"""Scores by relative position, as Transformer-XL has them (Dai et al. 2019, appendix B).

The product of each row with a table by distance, ``[rows, 2 * rows - 1]``, is skewed by a padding, two reshapes and two
slices, so that each column stands under its position. In a pulse, the same is done with the distances of the window.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from tract_core.dims import Dim, evaluate, is_symbolic, symbols_of
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.questions import node_axes
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.axis import Reshape
from tract_core.ops.einsum import EinSum
from tract_core.ops.pad import Pad, PadConstant
from tract_core.ops.slice import Slice
from tract_pulse.bands.analysis import growing

LENGTHS: Final = range(1, 257)
"""Lengths of signals for which sizes are compared: sizes are piecewise linear in the length."""


@frozen
class Skew:
    """``rows``: what is multiplied with the table, along axis ``row``, as input ``slot`` of ``product``.

    ``path``: from the slice of a table to the other factor, each node with the slot that it reads. ``axis``: of the
    distances in that slice; ``centre``: where the table has distance 0.
    """

    product: TypedNode
    rows: OutletId
    row: int
    slot: int
    path: tuple[tuple[TypedNode, int], ...]
    axis: int
    centre: int


def skew_of(whole: TypedModel, node: TypedNode, symbol: str) -> Skew | None:
    """The skew that a node ends; ``None`` for any other node."""
    chain = _chain(whole, node)
    if chain is None:
        return None
    last, back, first, forth, pad, product = chain
    rank = whole.output_facts(product)[0].rank
    rows, distances = whole.output_facts(product)[0].shape[-2:]
    wanted: list[tuple[Dim, Dim]] = [
        (distances, rows * 2 - 1),
        *zip((*forth.before, *forth.after), (rows, rows * 2, rows * 2, rows), strict=True),
        *zip((first.start, first.end), (1, rows * 2), strict=True),
        *zip((*back.before, *back.after), (rows * 2 - 1, rows, rows, rows * 2 - 1), strict=True),
        *zip((last.start, last.end), (0, rows), strict=True),
    ]
    places = (last.axis, back.at, first.axis, forth.at) == (rank - 1, rank - 2, rank - 2, rank - 2)
    pads = ((0, 0),) * (rank - 1) + ((1, 0),)
    if not places or pad.pads != pads or not isinstance(pad.mode, PadConstant) or not _alike(wanted, symbol):
        return None
    return _of_product(whole, product, symbol, rows)


def _chain(whole: TypedModel, node: TypedNode) -> tuple[Slice, Reshape, Slice, Reshape, Pad, TypedNode] | None:
    """The operators of a skew, from the last one back, and the product in front of them."""
    ops = list[Any]()
    for kind in (Slice, Reshape, Slice, Reshape, Pad):
        if not isinstance(node.op, kind):
            return None
        ops.append(node.op)
        node = whole.nodes[node.inputs[0].node]
    turns = (size for op in (ops[1], ops[3]) for size in (len(op.before), len(op.after)))
    if any(size != 2 for size in turns) or not isinstance(node.op, EinSum) or len(node.inputs) != 2:
        return None
    return (*ops, node)


def _alike(pairs: Iterable[tuple[Dim, Dim]], symbol: str) -> bool:
    """Whether sizes are equal for all signals but those without a position."""
    listed = list(pairs)
    if any(not symbols_of(dim) <= {symbol} for pair in listed for dim in pair):
        return False
    return all(_at(a, symbol, count) == _at(b, symbol, count) for count in LENGTHS for a, b in listed)


def _at(dim: Dim, symbol: str, count: int) -> int:
    return evaluate(dim, {symbol: count})


def _of_product(whole: TypedModel, product: TypedNode, symbol: str, rows: Dim) -> Skew | None:
    mapping = node_axes(whole, product)
    if mapping is None:
        return None
    row, distance = mapping.outputs[0][-2:]
    for slot in (0, 1):
        mine, other = mapping.inputs[slot], mapping.inputs[1 - slot]
        if mine.count(row) == 1 and distance not in mine and other.count(distance) == 1 and row not in other:
            found = _table(whole, product.inputs[1 - slot], other.index(distance), symbol, rows)
            if found is not None:
                return Skew(product, product.inputs[slot], mine.index(row), slot, *found)
    return None


def _table(
    whole: TypedModel, outlet: OutletId, axis: int, symbol: str, rows: Dim
) -> tuple[tuple[tuple[TypedNode, int], ...], int, int] | None:
    """The way from a slice of a table, whose middle is always the same place, to a tensor by distance."""
    path = list[tuple[TypedNode, int]]()
    while True:
        node = whole.nodes[outlet.node]
        if isinstance(node.op, Slice) and node.op.axis == axis:
            path.append((node, 0))
            middle, table = node.op.start + rows - 1, whole.outlet_fact(node.inputs[0])
            centre = _at(middle, symbol, 1) if symbols_of(middle) <= {symbol} else -1
            if (
                is_symbolic(table.shape[axis])
                or growing(table, symbol)
                or not _alike([(middle, centre), (node.op.end, centre + rows)], symbol)
            ):
                return None
            return tuple(reversed(path)), axis, centre
        grows = [slot for slot, source in enumerate(node.inputs) if growing(whole.outlet_fact(source), symbol)]
        mapping = node_axes(whole, node)
        if len(grows) != 1 or mapping is None or outlet.slot:
            return None
        source = mapping.track(("out", 0, axis), ("in", grows[0]))
        if source is None:
            return None
        path.append((node, grows[0]))
        outlet, axis = node.inputs[grows[0]], source
