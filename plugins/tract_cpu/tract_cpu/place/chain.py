"""Chains with their operands where they lie."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tract_llvm.elements.expressions import Expression
from tract_llvm.program.views import View

from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_cpu.draft.copies import converting
from tract_cpu.draft.lowering import Lowering, Site
from tract_cpu.group.groups import Epilogue


@frozen
class PlacedChain:
    """A `Chain` of ``nodes`` in memory. ``operands``: stretched to the shape of what comes out."""

    expression: Expression
    operands: tuple[View, ...]
    outlet: OutletId
    nodes: tuple[int, ...]


PlaceFn = Callable[[OutletId, tuple[Dim, ...]], View]
"""Where an operand of a chain on tensors of a shape is, stretched to that shape."""


def placed(site: Site, place: PlaceFn, own: Sequence[View] = ()) -> PlacedChain:
    """The chain of a group. ``own``: the operands that the node before it brings itself into that shape."""
    assert isinstance(site.group, Epilogue)  # who asks has a chain
    chain = site.group.chain
    shape = tuple(site.lowering.model.outlet_fact(chain.outlet).shape)
    operands = (*own, *(place(outlet, shape) for outlet in chain.others))
    expression = chain.expression
    if site.group.form is not None:
        expression = _held(site.lowering, expression, operands)
    return PlacedChain(expression, operands, chain.outlet, chain.nodes)


def _held(lowering: Lowering, expression: Expression, operands: Sequence[View]) -> Expression:
    """The same, of operands whose elements are held in other types, and so is the result."""
    first = len(expression.inputs) - len(operands)
    inputs = (*expression.inputs[:first], *(view.element for view in operands))
    result = lowering.held(expression.result)
    wider = [] if result == expression.result else [converting(len(expression.types) - 1, result)]
    return Expression(inputs, (*expression.steps, *wider))


def as_they_are(lowering: Lowering) -> PlaceFn:
    """Operands with their axes as they are."""
    return lambda outlet, shape: lowering.known_view(outlet).stretched(shape)


def near(lowering: Lowering) -> PlaceFn:
    """The same, with neighbours along the last axis side by side, or one element there."""
    return lambda outlet, shape: lowering.near(lowering.known_view(outlet).stretched(shape))
