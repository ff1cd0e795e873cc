"""Neighbouring nodes that are one program for rows: they reduce along the same axes, or compute elements.

From a node on, nodes join that read what those before them give, as long as all else that they read is there already:
so all of them can be computed where the first one stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from tract_core.compile.groups import neighbours, outlet_text
from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.plugins.registry import Registry
from tract_llvm.elements.expressions import ELEMENTS
from tract_llvm.fuse.chain import OperandFn, applied_text
from tract_llvm.fuse.code_size import MOST_CODE, code_size
from tract_llvm.fuse.nest import NESTS, Nest, Unknown
from tract_llvm.fuse.steps import Fold, Load, RowStep
from tract_llvm.fuse.walk import Walk

MOST_OF_ROWS: Final = 2 * MOST_CODE
"""How much code a program for rows may be, loads included."""


@frozen
class Operand:
    """A tensor that is loaded. ``shape``: what it is stretched to, as the model has it."""

    outlet: OutletId
    shape: tuple[Dim, ...]


@frozen
class Region:
    """``steps``, ``tensors``, ``shape``, ``axes``: as in `Nest`, of which this is the whole.

    ``values``: the numbers of the values that are outlets of nodes, in the order in which these joined.
    """

    steps: tuple[RowStep, ...]
    tensors: tuple[object, ...]
    shape: tuple[Dim, ...]
    axes: frozenset[int]
    values: tuple[tuple[OutletId, int], ...]

    @staticmethod
    def of(nest: Nest, values: Mapping[OutletId, int]) -> Region:
        """What a nest has become."""
        axes = frozenset[int]() if nest.axes is None else nest.axes
        return Region(tuple(nest.steps), tuple(nest.tensors), nest.shape, axes, tuple(values.items()))

    @property
    def nodes(self) -> tuple[int, ...]:
        """The nodes, in the order in which they joined."""
        return tuple(dict.fromkeys(outlet.node for outlet, _ in self.values))

    def notes(self, model: TypedModel) -> Iterator[str]:
        """Its steps, by the numbers of what they are computed of."""
        yield f"along axes {', '.join(map(str, sorted(self.axes))) or '-'} of {','.join(map(str, self.shape))}"
        for number, step in enumerate(self.steps):
            yield f"{number} = {self._text(model, step)}"

    def _text(self, model: TypedModel, step: RowStep) -> str:
        if isinstance(step, Load):
            tensor = self.tensors[step.tensor]
            what = outlet_text(model, tensor.outlet) if isinstance(tensor, Operand) else tensor
            return f"{what}, {step.result.name}"
        if isinstance(step, Fold):
            return f"{step.reducer.name.lower()} of {step.operand}, {step.result.name}"
        return applied_text(step)


NestOf = Callable[[Registry, Sequence[Dim]], Nest | None]
"""The nest for tensors of a shape; ``None`` where there is none."""


def region_from(walk: Walk, first: int, operand: OperandFn, nest_of: NestOf = Nest) -> Region | None:
    """The program for rows that begins with a node; ``None`` where there is none, or where nothing is reduced.

    ``operand``: whether a tensor can be read there.
    """
    model = walk.model
    node = model.nodes[first]
    reduces = model.registry[NESTS].find(type(node.op)) is not None
    shape = tuple(model.outlet_fact(node.inputs[0] if reduces else OutletId(first)).shape)
    nest = nest_of(model.registry, shape)
    growing = None if nest is None else _Growing(walk, nest, operand)
    if growing is None or not growing.join(node):
        return None
    neighbours(model, node.inputs[:1] if reduces else (), [first], growing.join)
    return Region.of(growing.nest, growing.values) if growing.nest.axes is not None else None


class _Growing:
    """A region that nodes join."""

    def __init__(self, walk: Walk, nest: Nest, operand: OperandFn) -> None:
        self._walk, self._operand = walk, operand
        self.nest = nest
        self.values: dict[OutletId, int] = {}

    def join(self, node: TypedNode) -> bool:
        """Add a node, where it fits."""
        if not self._may_join(node) or sum(map(code_size, self.nest.steps)) >= MOST_OF_ROWS:
            return False
        nest = self.nest.copy()
        try:
            value = self._value(node, nest)
        except Unknown:
            return False
        if value is None:
            return False
        self.nest, self.values[OutletId(node.id)] = nest, value
        return True

    def _may_join(self, node: TypedNode) -> bool:
        """Whether there are elements, or rows, of that operator at all."""
        model, known, kind = self._walk.model, self._walk.known, type(node.op)
        if self._walk.is_taken(node.id):
            return False
        if model.registry[NESTS].find(kind) is None and model.registry[ELEMENTS].find(kind) is None:
            return False
        facts = [model.outlet_fact(outlet) for outlet in [*node.inputs, *node.outlets()]]
        if len(node.outlets()) != 1 or any(fact.datum_type.is_quantized() for fact in facts):
            return False  # of a quantised type, what is stored is not what is meant
        return known.why_unfit(node.id) is None

    def _value(self, node: TypedNode, nest: Nest) -> int | None:
        """The value that a node gives; ``None`` where it is none of this region. May raise Unknown."""
        registry, outlet = self._walk.model.registry, OutletId(node.id)
        row, result = registry[NESTS].find(type(node.op)), self._walk.known.element_at(outlet)
        if result is None:
            return None
        if row is not None:
            if self._shape(nest, node.inputs[0]) != nest.shape or not nest.along(row.axes(node.op)):
                return None
            if self._shape(nest, outlet) not in {nest.shape, nest.row_shape}:
                return None  # sizes that conditions make equal are known behind the node only
            operands = self._operands(node, nest, node.inputs[0])
            return row.write(node.op, nest, operands[0], result) if operands else None
        if self._shape(nest, outlet) not in {nest.shape, nest.row_shape}:
            return None
        operands = self._operands(node, nest, outlet)
        return nest.apply(node.op, *operands, result=result) if operands else None

    def _shape(self, nest: Nest, outlet: OutletId) -> tuple[Dim, ...]:
        return nest.shape_in(self._walk.model.outlet_fact(outlet).shape)

    def _operands(self, node: TypedNode, nest: Nest, like: OutletId) -> list[int] | None:
        found: list[int] = []
        shape = tuple(self._walk.model.outlet_fact(like).shape)
        for outlet in node.inputs:
            number, element = self.values.get(outlet), self._walk.known.element_at(outlet)
            if number is None:
                if element is None or not self._walk.has(outlet) or not self._operand(outlet, shape):
                    return None
                number = nest.load(Operand(outlet, shape), element)
            found.append(number)
        return found
