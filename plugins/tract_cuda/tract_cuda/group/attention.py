"""Attention whose matrix is never written: which one there are kernels for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tract_llvm.elements.expressions import ELEMENTS, Apply, Expression, element_of
from tract_llvm.fuse.chain import Chain
from tract_llvm.language.types import ElementType, element_type

from tract_core.compile.attention import AttentionAxes, Terms, attention_behind, sizes_of_axes, wait_for_mix
from tract_core.compile.groups import outlet_text
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.binary import Sub
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Exp
from tract_cuda.group.grouping import CudaGrouper
from tract_cuda.group.groups import Epilogue

FEW: Final = 16
"""Fewer queries are computed as products of few rows, which use all of the device."""

LONGEST: Final = 128
"""How many numbers a query or a value has at most: registers hold them."""


@frozen
class Attention(Epilogue):
    """``factors``, ``terms``, ``key``, ``depth``, ``width``: as in `AttentionAxes`. ``chain``: what becomes of scores.

    ``query``: the axis of queries. ``powers``: of a score and the largest one.
    """

    factors: tuple[OutletId, OutletId, OutletId]
    terms: Terms
    query: str
    key: str
    depth: str
    width: str
    powers: Expression

    def notes(self, model: TypedModel) -> Iterator[str]:
        """What is what."""
        for what, outlet, term in zip(("queries", "keys", "values"), self.factors, self.terms, strict=False):
            yield f"{what}: {outlet_text(model, outlet)} along {', '.join(term)}"
        yield f"queries along {self.query}, keys along {self.key}"
        yield from Epilogue.notes(self, model)


def waits(grouping: CudaGrouper, node: TypedNode) -> bool:
    """Whether a product waits for that which mixes values by its softmax."""
    elements = grouping.model.registry[ELEMENTS]

    def passes(one: TypedNode) -> bool:
        return elements.find(type(one.op)) is not None

    return wait_for_mix(grouping, node.id, lambda one: _fits(grouping, one), passes)


def attention_of(grouping: CudaGrouper, node: TypedNode, chain: Chain) -> Attention | None:
    """The attention that begins with a product and the element-wise nodes behind it, if there are kernels for it."""
    model, element = grouping.model, chain.expression.result
    axes = attention_behind(grouping, node.id, chain.outlet, lambda one: _fits(grouping, one))
    powers = powers_of(model, element.computed)
    if axes is None or powers is None or axes.depth is None or axes.width is None:
        return None
    query, second = _query(model, axes), model.nodes[axes.nodes[1]].op
    assert isinstance(second, EinSum), "it was found as one"
    if query is None or element.kind != "f" or second.q_output is not None:
        return None
    outlets = [*axes.factors, *map(OutletId, axes.nodes)]
    if any(element_type(model.outlet_fact(one).datum_type.storage) != element for one in outlets):
        return None
    if second.acc.itemsize > element.computed.bytes:
        return None
    nodes = (*chain.nodes, *axes.nodes)
    return Attention(nodes, chain, axes.factors, axes.terms, query, axes.key, axes.depth, axes.width, powers)


def powers_of(model: TypedModel, element: ElementType) -> Expression | None:
    """exp(score - largest score)"""
    registry, both = model.registry, (element, element)
    less, exp = element_of(registry, Sub(), both), element_of(registry, Exp(), (element,))
    if less is None or exp is None:
        return None
    return Expression(both, (Apply(Sub(), (0, 1), element, less.emit), Apply(Exp(), (2,), element, exp.emit)))


def _fits(grouping: CudaGrouper, node: TypedNode) -> bool:
    return grouping.known.fits(node) and node.id not in grouping.refused


def _query(model: TypedModel, axes: AttentionAxes) -> str | None:
    """The axis of queries; ``None`` where these are few, or longer than what registers hold."""
    sizes = sizes_of_axes(model, axes.factors, axes.terms[:3])
    lengths = [sizes[name] for name in (axes.depth, axes.width) if name is not None]
    if not axes.alone or any(not isinstance(size, int) or not 0 < size <= LONGEST for size in lengths):
        return None
    count = sizes[axes.alone[-1]]
    return None if isinstance(count, int) and count < FEW else axes.alone[-1]
