"""The groups of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_llvm.elements.expressions import ELEMENTS, QUANTIZED, Apply, Expression, element_of
from tract_llvm.language.types import ElementType, element_type

from tract_core.compile.chains import chain_behind
from tract_core.compile.groups import Group, Grouping
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.runtime.host import HostNode
from tract_cuda.group.groups import Alone, Behind, Elements, Host
from tract_cuda.lowering import Target
from tract_cuda.table import CUDA, STARTS

MOST_STEPS = 40
"""How many operators a chain has at most."""


class CudaGrouping(Grouping[Group]):
    """What has a row in ``elements`` begins a chain, what has one in ``cuda`` is alone, the rest is the host's."""

    def __init__(
        self, model: TypedModel, nodes: Sequence[HostNode], target: Target, refused: Mapping[int, str]
    ) -> None:
        """``refused``: nodes that no group of several begins with, as there was no kernel for it."""
        super().__init__(model, nodes)
        self._refused = refused
        self._known = frozenset(model.given_symbols())

    def begin(self, node: HostNode) -> Group:
        """The group that begins with a node."""
        typed = self.model.nodes[node.node]
        why = self._why_unfit(typed)
        if why is not None:
            self._known |= node.binds
            return Host((node.node,), why)
        start = self.model.registry[STARTS].find(type(typed.op))
        found = start(typed.op, self, typed) if start is not None and node.node not in self._refused else None
        if found is not None:
            return found
        if self.model.registry[CUDA].find(type(typed.op)) is not None:
            return Alone((node.node,))
        chain = self._chain(typed)
        return chain if chain is not None else Host((node.node,), "there is no kernel for this operator yet")

    def _why_unfit(self, node: TypedNode) -> str | None:
        for outlet in [*node.inputs, *node.outlets()]:
            fact = self.model.outlet_fact(outlet)
            if element_type(fact.datum_type.storage) is None:
                return f"kernels do not know {fact.datum_type.short}"
            if not fact.shape.symbols() <= self._known:
                return "its sizes come up in the middle of the run"
        return None

    def _chain(self, node: TypedNode) -> Elements | None:
        kinds = [element_type(self.model.outlet_fact(one).datum_type.storage) for one in node.inputs]
        types = [one for one in kinds if one is not None]
        step = self._applied(node, types, range(len(types)))
        if step is None or self.model.registry[ELEMENTS].find(type(node.op)) is None:
            return None
        start = Behind(Expression(tuple(types), (step,)), tuple(node.inputs), OutletId(node.id))
        if node.id in self._refused:
            return Elements((node.id,), start)
        return Elements(*self.extended(node, start))

    def extended(self, node: TypedNode, start: Behind) -> tuple[tuple[int, ...], Behind]:
        """The nodes of a group that begins with one, and what is computed behind it. ``start``: what it computes."""
        growing = _Growing(self, start)
        behind = [one.id for one in chain_behind(self, OutletId(node.id), growing.take)]
        return (node.id, *behind), growing.behind()

    def applied(self, node: TypedNode, types: Sequence[ElementType], operands: Sequence[int]) -> Apply | None:
        """A node as a step on elements of these types; ``None`` where no kernel can compute it."""
        return self._applied(node, types, operands) if self._why_unfit(node) is None else None

    def _applied(self, node: TypedNode, types: Sequence[ElementType], operands: Sequence[int]) -> Apply | None:
        facts = [self.model.outlet_fact(one) for one in [*node.inputs, *node.outlets()]]
        result = element_type(facts[-1].datum_type.storage)
        element = element_of(self.model.registry, node.op, types, result)
        if element is None or result is None or len(node.outlets()) != 1:
            return None
        if QUANTIZED not in element.kinds and any(fact.datum_type.is_quantized() for fact in facts):
            return None  # what is stored is not what is meant
        return element.applied(node.op, operands, result)


class _Growing:
    """A chain that takes nodes. Operands come before steps, so numbers of steps are known at its end only."""

    def __init__(self, grouping: CudaGrouping, start: Behind) -> None:
        self._grouping = grouping
        self._inputs, self._operands = list(start.expression.inputs), list(start.operands)
        self._steps = [_moved(one, len(self._inputs), _FIRST) for one in start.expression.steps]
        self._outlet = start.outlet

    def behind(self) -> Behind:
        """What it is now."""
        steps = tuple(_moved(one, _FIRST, len(self._inputs)) for one in self._steps)
        return Behind(Expression(tuple(self._inputs), steps), tuple(self._operands), self._outlet)

    def take(self, node: TypedNode, others: Sequence[OutletId]) -> bool:
        """Take the node behind it, where that can be computed along. ``others``: what else that reads."""
        model = self._grouping.model
        types = {one: element_type(model.outlet_fact(one).datum_type.storage) for one in others}
        known = {one: found for one, found in types.items() if found is not None}
        if len(self._steps) >= MOST_STEPS or len(known) < len(others) or not all(map(self._grouping.has, others)):
            return False
        place = {one: len(self._inputs) + number for number, one in enumerate(others)}
        place[self._outlet] = _FIRST + len(self._steps) - 1 if self._steps else 0
        known[self._outlet] = self._steps[-1].result if self._steps else self._inputs[0]
        step = self._grouping.applied(node, [known[one] for one in node.inputs], [place[one] for one in node.inputs])
        if step is None:
            return False
        self._inputs += [known[one] for one in others]
        self._operands += others
        self._steps.append(step)
        self._outlet = OutletId(node.id)
        return True


_FIRST = 1 << 32


def _moved(step: Apply, first: int, wanted: int) -> Apply:
    """A step when the number of the first one is ``wanted`` instead of ``first``."""
    operands = tuple(n + wanted - first if n >= first else n for n in step.operands)
    return Apply(step.op, operands, step.result, step.emit)
