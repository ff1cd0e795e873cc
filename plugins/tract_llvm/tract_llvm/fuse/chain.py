"""Chains of element-wise operators that are computed while their elements are at hand.

From a tensor on, the chain goes through operators that have a row in ``elements``, each the only reader of what is
before it, as long as the shape stays the same and the other operands are there already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from tract_core.compile.chains import chain_behind
from tract_core.compile.groups import outlet_text
from tract_core.data import Constant
from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.op_text import describe
from tract_core.model.typed import TypedModel, TypedNode
from tract_llvm.elements.expressions import ELEMENTS, QUANTIZED, Apply, Expression, element_of
from tract_llvm.fuse.code_size import MOST_CODE, code_size
from tract_llvm.fuse.known import Known
from tract_llvm.fuse.walk import Walk
from tract_llvm.language.types import ElementType, element_type
from tract_llvm.language.values import Value


@frozen
class Chain:
    """What is computed of the elements of tensors of one shape.

    ``operands``: the tensors that the inputs of the expression come from, stretched to that shape; those that a kernel
    computes itself come before them and are not among them. ``own``: how many of them, the first ones, are inputs of
    the node that begins the group, which brings them into that shape itself. ``outlet``: what comes out. ``nodes``:
    what is fused.
    """

    expression: Expression
    operands: tuple[OutletId, ...]
    outlet: OutletId
    nodes: tuple[int, ...]
    own: int = 0

    @property
    def others(self) -> tuple[OutletId, ...]:
        """The operands that are no inputs of the node that begins the group."""
        return self.operands[self.own :]

    def notes(self, model: TypedModel) -> Iterator[str]:
        """Its steps, by the numbers of what they are computed of."""
        first = len(self.expression.inputs) - len(self.operands)
        for number, element in enumerate(self.expression.inputs):
            what = "what the node computes" if number < first else outlet_text(model, self.operands[number - first])
            yield f"{number} = {what}, {element.name}"
        for number, step in enumerate(self.expression.steps, len(self.expression.inputs)):
            yield f"{number} = {applied_text(step)}"


def applied_text(step: Apply) -> str:
    """An operator on values, for people: its name, its attributes if it has any, what it is computed of, its type."""
    attributes = describe(step.op)
    name = f"{step.op.name}{{{attributes}}}" if attributes else step.op.name
    numbers = "" if isinstance(step.op, Const) else f"({', '.join(map(str, step.operands))})"
    return f"{name}{numbers}, {step.result.name}"


_SMALL: Final = 8
"""Whole numbers up to this one are those that activations are made of, as 0 and 6."""

OperandFn = Callable[[OutletId, tuple[Dim, ...]], bool]
"""Whether a tensor that is there can be an operand of a chain on tensors of a shape."""


def chain_after(walk: Walk, node: int, start: Expression, operand: OperandFn, own: Sequence[OutletId] = ()) -> Chain:
    """The chain behind a node. ``start``: what it computes of elements itself, of ``own``, some inputs of it."""
    return extended(walk, Chain(start, tuple(own), OutletId(node), (node,), len(own)), operand)


def chain_from(walk: Walk, node: int, operand: OperandFn) -> Chain | None:
    """The chain that begins with an element-wise node; ``None`` where native code cannot compute that node."""
    typed = walk.model.nodes[node]
    shape = tuple(walk.model.outlet_fact(OutletId(node)).shape)
    kinds = [walk.known.element_at(outlet) for outlet in typed.inputs]
    known = tuple(one for one in kinds if one is not None)
    if len(known) < len(kinds) or not all(operand(outlet, shape) for outlet in typed.inputs):
        return None
    step = _applied(walk.known, typed, known, tuple(range(len(known))))
    if step is None:
        return None
    return extended(walk, Chain(Expression(known, (step,)), tuple(typed.inputs), OutletId(node), (node,)), operand)


def extended(walk: Walk, chain: Chain, operand: OperandFn) -> Chain:
    """The chain with all nodes behind it that can be computed along, until it is `MOST_CODE`.

    It does not end where the compiler says that this is of no use (`Walk.ends`).
    """
    growing = _Growing(walk, chain, operand)
    mark = end = growing.mark()
    for _ in chain_behind(walk, chain.outlet, growing.take):
        mark = growing.mark()
        if walk.ends(mark.outlet) or not end.steps:
            end = mark
    return growing.chain(end)


class _Mark(NamedTuple):
    """How long a chain was when an outlet came out of it: how many there were of everything."""

    outlet: OutletId
    inputs: int
    operands: int
    steps: int
    nodes: int


class _Growing:
    """A chain that takes nodes, each in a time that does not depend on how many it has.

    New operands come behind the others. So numbers of steps are not known before its end: while it grows, the first
    step has the number `_FIRST_STEP`.
    """

    def __init__(self, walk: Walk, chain: Chain, operand: OperandFn) -> None:
        before = chain.expression
        self._walk, self._operand, self._own = walk, operand, chain.own
        self._inputs, self._operands = list(before.inputs), list(chain.operands)
        self._steps = [_moved(step, len(before.inputs), _FIRST_STEP) for step in before.steps]
        self._nodes, self.outlet = list(chain.nodes), chain.outlet
        self._code_size = sum(map(code_size, self._steps))

    def mark(self) -> _Mark:
        """How long it is."""
        return _Mark(self.outlet, *map(len, (self._inputs, self._operands, self._steps, self._nodes)))

    def chain(self, mark: _Mark) -> Chain:
        """What it was then."""
        inputs = tuple(self._inputs[: mark.inputs])
        steps = tuple(_moved(step, _FIRST_STEP, len(inputs)) for step in self._steps[: mark.steps])
        operands, nodes = self._operands[: mark.operands], self._nodes[: mark.nodes]
        return Chain(Expression(inputs, steps), tuple(operands), mark.outlet, tuple(nodes), self._own)

    def take(self, node: TypedNode, others: Sequence[OutletId]) -> bool:
        """Take the node behind it, where that can be computed along. ``others``: what else that reads."""
        walk, model = self._walk, self._walk.model
        if self._code_size >= MOST_CODE or model.registry[ELEMENTS].find(type(node.op)) is None:
            return False  # before its operands are arranged
        if not walk.known.fits(node):
            return False
        shape = tuple(model.outlet_fact(self.outlet).shape)
        numbers = {outlet: step for outlet in others if (step := known_number(walk.known, outlet)) is not None}
        found: dict[OutletId, ElementType] = {}
        for outlet in others:
            if outlet in numbers:
                continue
            element = walk.known.element_at(outlet)
            if element is None or not walk.bring(outlet, self._nodes) or not self._operand(outlet, shape):
                return False
            found[outlet] = element
        return self._takes(node, found, numbers)

    def _takes(
        self, node: TypedNode, others: Mapping[OutletId, ElementType], numbers: Mapping[OutletId, Apply]
    ) -> bool:
        """Take a node, whose other operands are tensors and numbers that are part of the model."""
        behind = _FIRST_STEP + len(self._steps)
        place = {outlet: len(self._inputs) + number for number, outlet in enumerate(others)}
        place |= {outlet: behind + number for number, outlet in enumerate(numbers)}
        place[self.outlet] = behind - 1 if self._steps else len(self._inputs) - 1
        types = {**others, **{outlet: step.result for outlet, step in numbers.items()}}
        types[self.outlet] = self._steps[-1].result if self._steps else self._inputs[-1]
        operands = tuple(place[outlet] for outlet in node.inputs)
        step = _applied(self._walk.known, node, [types[outlet] for outlet in node.inputs], operands)
        if step is None:
            return False
        self._inputs += others.values()
        self._operands += others
        self._steps += (*numbers.values(), step)
        self._code_size += len(numbers) + code_size(step)
        self._nodes.append(node.id)
        self.outlet = OutletId(node.id)
        return True


_FIRST_STEP: Final = 1 << 32


def _moved(step: Apply, first: int, wanted: int) -> Apply:
    """A step when the number of the first one is ``wanted`` instead of ``first``."""
    operands = tuple(n + wanted - first if n >= first else n for n in step.operands)
    return Apply(step.op, operands, step.result, step.emit)


def known_number(known: Known, outlet: OutletId) -> Apply | None:
    """A step that gives a number that is part of the model, where it is one of those that many models have.

    As kernels know it they need not read it, and whether it is a number at all. Others are read, so that kernels are
    shared.
    """
    array, fact, element = known.constant_array(outlet), known.model.outlet_fact(outlet), known.element_at(outlet)
    if array is None or array.size != 1 or element is None or element.kind != "f" or fact.datum_type.is_quantized():
        return None
    number = float(array.reshape(-1)[0])
    if not number.is_integer() or abs(number) > _SMALL:
        return None
    return Apply(known.model.nodes[outlet.node].op, (0,), element, _number)


def _number(op: Const, like: Value) -> Value:
    """The number that a constant holds, as often as another value has lanes."""
    assert isinstance(op.value, Constant)  # it was looked at
    element = element_type(op.value.datum_type.storage)
    assert element is not None  # and so was its type
    return like.function.constant(float(op.value.array.reshape(-1)[0]), element.computed, like.lanes)


def _applied(known: Known, node: TypedNode, kinds: Sequence[ElementType], operands: tuple[int, ...]) -> Apply | None:
    facts = [known.model.outlet_fact(outlet) for outlet in [*node.inputs, OutletId(node.id)]]
    result = known.element(facts[-1].datum_type.storage)
    element = element_of(known.model.registry, node.op, kinds, result)
    if element is not None and QUANTIZED not in element.kinds and any(fact.datum_type.is_quantized() for fact in facts):
        return None  # what is stored is not what is meant
    return element.applied(node.op, operands, result) if element is not None and result is not None else None


def plain(known: Known) -> OperandFn:
    """Operands with their axes as they are."""
    return lambda outlet, shape: known.model.outlet_fact(outlet).rank <= len(shape)
