"""Neighbouring nodes that are one program for rows: they reduce along the same axes, or compute elements.

From a node on, nodes join that read what those before them give, as long as all else that they read is there already:
so all of them can be computed where the first one stands.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_llvm.elements.expressions import ELEMENTS

from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedNode
from tract_cpu.draft.lowering import Lowering
from tract_cpu.elements.code_size import MOST_CODE, code_size
from tract_cpu.elements.nest import NESTS, Nest, Unknown
from tract_cpu.program.form import Form

MOST_OF_ROWS: Final = 2 * MOST_CODE
"""How much code a program for rows may be, loads included."""


@frozen
class Region:
    """``values``: the numbers of the values of the nest that are outlets of nodes."""

    nest: Nest
    values: dict[OutletId, int]

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes, in the order in which they joined."""
        return tuple(dict.fromkeys(outlet.node for outlet in self.values))


def region_from(lowering: Lowering, first: int, form: Form | None = None) -> Region | None:
    """The program for rows that begins with a node; ``None`` where there is none, or where nothing is reduced.

    ``form``: that of tensors in blocks of channels, on which the program works.
    """
    model = lowering.model
    node = model.nodes[first]
    reduces = model.registry[NESTS].find(type(node.op)) is not None
    shape = model.outlet_fact(node.inputs[0] if reduces else OutletId(first)).shape
    if form is not None and (len(shape) <= form.axis or shape[form.axis] != form.channels):
        return None
    growing = _Growing(lowering, Region(Nest(lowering, tuple(shape), form), {}))
    if not growing.join(node):
        return None
    growing.grow(node.inputs[:1] if reduces else ())
    return growing.region if growing.region.nest.axes is not None else None


@frozen
class _Growing:
    """A region that nodes join."""

    lowering: Lowering
    region: Region

    def grow(self, sources: Sequence[OutletId]) -> None:
        """Have every node join that can, of those that read what nodes of the region give, or one of ``sources``."""
        joined, more = set(self.region.nodes), True
        while more:
            more = False
            for outlet in [*sources, *self.region.values]:
                readers = {reader.node for reader in self.lowering.model.outlet(outlet).successors}
                for number in sorted(readers - joined):
                    if self.join(self.lowering.model.nodes[number]):
                        joined.add(number)
                        more = True

    def join(self, node: TypedNode) -> bool:
        """Add a node, where it fits."""
        nest = self.region.nest
        before = len(nest.steps), len(nest.tensors), nest.axes
        try:
            value = self._value(node) if sum(map(code_size, nest.steps)) < MOST_OF_ROWS else None
        except Unknown:
            value = None
        if value is None:
            nest.cut(*before[:2])
            nest.axes = before[2]
            return False
        self.region.values[OutletId(node.id)] = value
        return True

    def _value(self, node: TypedNode) -> int | None:
        """The value that a node gives; ``None`` where it is none of this region. May raise Unknown."""
        lowering, nest = self.lowering, self.region.nest
        model = lowering.model
        row = model.registry[NESTS].find(type(node.op))
        if row is None and model.registry[ELEMENTS].find(type(node.op)) is None:
            return None
        outlets = [*node.inputs, *node.outlets()]
        facts = [model.outlet_fact(outlet) for outlet in outlets]
        if len(node.outlets()) != 1 or any(fact.datum_type.is_quantized() for fact in facts):
            return None  # of a quantised type, what is stored is not what is meant
        result = lowering.element(facts[-1].datum_type)
        if result is None or lowering.why_unfit(node.id) is not None:
            return None
        if row is not None:
            if nest.shape_of(outlets[0]) != nest.shape or not nest.along(row.axes(node.op)):
                return None
            if nest.shape_of(outlets[-1]) not in {nest.shape, nest.row_shape}:
                return None  # sizes that conditions make equal are known behind the node only
            operands = self._operands(node, outlets[0])
            return row.write(node.op, nest, operands[0], result) if operands else None
        if nest.shape_of(outlets[-1]) not in (nest.shape, nest.row_shape):
            return None
        operands = self._operands(node, outlets[-1])
        return nest.apply(node.op, *operands, result=result) if operands else None

    def _operands(self, node: TypedNode, like: OutletId) -> list[int] | None:
        found: list[int] = []
        for outlet in node.inputs:
            number = self.region.values.get(outlet)
            if number is None:
                view = self.region.nest.operand(outlet, like)
                if view is None:
                    return None
                number = self.region.nest.load(view)
            found.append(number)
        return found
