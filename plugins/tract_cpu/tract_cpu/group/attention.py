"""Attention as it is computed here: which queries side by side, and which one by one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tract_llvm.elements.expressions import ELEMENTS, Apply, Expression, element_of
from tract_llvm.fuse.chain import Chain
from tract_llvm.language.types import ElementType

from tract_core.compile.attention import AttentionAxes, Sizes, Terms, attention_behind, sizes_of_axes, wait_for_mix
from tract_core.compile.groups import outlet_text
from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.binary import Sub
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Exp
from tract_cpu.group.groups import Epilogue
from tract_cpu.group.known import CpuKnown
from tract_cpu.group.start import Start, read_along

FEW: Final = 2
"""From one part in so many of a vector on, queries are computed side by side."""

MOST_VECTORS: Final = 16
"""How many vectors a key or a value may take whose queries are computed one by one."""


@frozen
class Attention(Epilogue):
    """``factors``, ``terms``, ``key``, ``depth``, ``width``: as in `AttentionAxes`. ``chain``: what becomes of scores.

    ``query``: the axis of queries that are computed side by side, empty where these are few, and computed one by one.
    ``powers``: of a score and the largest one. ``zeroes``: whether shares that are NaN count as 0.
    """

    factors: tuple[OutletId, OutletId, OutletId]
    terms: Terms
    query: str
    key: str
    depth: str | None
    width: str | None
    powers: Expression
    zeroes: bool = False

    def notes(self, model: TypedModel) -> Iterator[str]:
        """What is what."""
        for what, outlet, term in zip(("queries", "keys", "values"), self.factors, self.terms, strict=False):
            yield f"{what}: {outlet_text(model, outlet)} along {', '.join(term)}"
        yield f"queries along {self.query or 'none'}, keys along {self.key}"
        yield from Epilogue.notes(self, model)


def waits(start: Start) -> bool:
    """Whether a product waits for that which mixes values by its softmax."""
    elements = start.model.registry[ELEMENTS]

    def passes(node: TypedNode) -> bool:
        return elements.find(type(node.op)) is not None

    return wait_for_mix(start.walk, start.node.node, start.known.fits, passes, zeroes=True)


def gathered(start: Start, chain: Chain) -> Attention | None:
    """The attention that begins with a product and the element-wise operators behind it, if it does."""
    known, model, element = start.known, start.model, chain.expression.result
    axes = attention_behind(start.walk, start.node.node, chain.outlet, known.fits, zeroes=True)
    powers = _powers(known, element.computed)
    query = None if axes is None else _query(known, chain, axes)
    if axes is None or query is None or powers is None:
        return None
    second = model.nodes[axes.nodes[1]].op
    assert isinstance(second, EinSum)  # it was found as one
    kinds = {model.outlet_fact(one).datum_type for one in [chain.outlet, *axes.factors, OutletId(axes.nodes[1])]}
    kinds.add(model.outlet_fact(OutletId(axes.nodes[0])).datum_type)
    if len(kinds) > 1 or second.q_output is not None or second.acc.itemsize > element.computed.bytes:
        return None
    reads = (*((outlet, None) for outlet in axes.factors), *read_along(chain, None))
    return Attention(
        nodes=(*chain.nodes, axes.nodes[0], *axes.zeroing, axes.nodes[1]),
        reads=reads,
        form=None,
        chain=chain,
        factors=axes.factors,
        terms=axes.terms,
        query=query,
        key=axes.key,
        depth=axes.depth,
        width=axes.width,
        powers=powers,
        zeroes=bool(axes.zeroing),
    )


def _powers(known: CpuKnown, element: ElementType) -> Expression | None:
    """exp(score - largest score)"""
    registry, both = known.model.registry, (element, element)
    less, exp = element_of(registry, Sub(), both), element_of(registry, Exp(), (element,))
    if less is None or exp is None:
        return None
    return Expression(both, (Apply(Sub(), (0, 1), element, less.emit), Apply(Exp(), (2,), element, exp.emit)))


def sizes_of(known: CpuKnown, found: Attention | AttentionAxes) -> Sizes:
    """The size of each axis."""
    return sizes_of_axes(known.model, found.factors, found.terms[:3])


def _query(known: CpuKnown, chain: Chain, axes: AttentionAxes) -> str | None:
    """The axis of queries that are computed side by side, empty for none; ``None`` where kernels know neither way."""
    sizes = sizes_of(known, axes)
    lanes = known.isa.lanes(chain.expression.inputs[0].computed.bits)
    count = sizes[axes.alone[-1]] if axes.alone else 1
    if isinstance(count, int) and count * FEW < lanes:
        lengths = [sizes[name] if name else 1 for name in (axes.depth, axes.width)]
        whole = all(are_vectors(size, lanes) for size in lengths)
        return "" if whole and axes.terms[4][-1] == axes.width else None
    return axes.alone[-1]


def are_vectors(size: Dim, lanes: int) -> bool:
    """Whether a size is some whole vectors, and not too many to be written out."""
    return isinstance(size, int) and 0 < size <= MOST_VECTORS * lanes and size % lanes == 0
