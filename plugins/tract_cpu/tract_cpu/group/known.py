"""What is known of a model, or of a body, before anything has a place in memory: types, sizes, instructions."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.elements.expressions import ELEMENTS, marker_of
from tract_llvm.isa import Isa
from tract_llvm.language.types import ElementType, element_type

from tract_core.data import Constant, Container
from tract_core.limits import run_limit
from tract_core.model.const import Const
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.plugins.keys import Array
from tract_core.runtime.binding_plan import BindingPlan
from tract_core.runtime.host import HostNode
from tract_cpu.program.form import Forms
from tract_cpu.program.reads import LATE, READS, Reads
from tract_cpu.table import MOVES


class Known:
    """What kernels may rely on.

    ``threads``: how many there may be, which changes no result. ``winograd``: whether convolutions may be computed by
    Winograd's method. ``given``: symbols that have values by now, in any run; ``given_at_begin``: those of them that
    the inputs give. ``is_body``: whether the model is a body of an operator. ``forms``: of what concatenations put
    together, by their nodes, as far as somebody asked.
    """

    def __init__(
        self,
        model: TypedModel,
        isa: Isa,
        around: Known | None = None,
        known: frozenset[str] = frozenset(),
        *,
        threads: int = 1,
        winograd: bool = True,
        like: Known | None = None,
    ) -> None:
        """``around``: what the body is part of. ``known``: symbols that no input gives, but whoever runs the model.

        ``like``: what another pass knew of the same model at last, so that it is not found out again.
        """
        self.model, self.isa = model, isa
        self.threads, self.winograd = threads, winograd
        self.is_body = around is not None
        before = like or around
        self.given_at_begin = before.given_at_begin if before is not None else known | _given_by_inputs(model)
        self.given: frozenset[str] = self.given_at_begin if around is None else around.given
        self.forms: dict[int, Forms | None] = {} if like is None else like.forms
        self._around: dict[int, tuple[frozenset[str], str | None]] = {} if like is None else like._around
        self._allowed = run_limit(model.limits)

    def element(self, kind: object) -> ElementType | None:
        """The type of elements of the core as kernels know it; ``None`` where they do not."""
        return element_type(kind)

    def element_at(self, outlet: OutletId) -> ElementType | None:
        """The type of the elements that are stored of a tensor."""
        return element_type(self.model.outlet_fact(outlet).datum_type.storage)

    def constant_array(self, outlet: OutletId) -> Array | None:
        """The elements of a tensor that is part of the model; ``None`` for any other."""
        op = self.model.nodes[outlet.node].op
        return op.value.array if isinstance(op, Const) and isinstance(op.value, Constant) else None

    def facts_of(self, node: HostNode) -> list[TypedFact]:
        """The facts of the inputs of a node."""
        return [self.model.outlet_fact(outlet) for outlet in node.inputs]

    def why_unfit(self, node: int) -> str | None:
        """Why native code cannot compute a node whose operator has some, as its types or sizes are beyond it."""
        around = self._around.get(node)
        if around is None:
            around = self._around[node] = self._symbols_around(node), self._why_never(node)
        symbols, why = around
        return why or (None if symbols <= self.given else LATE)

    def fits(self, node: TypedNode) -> bool:
        """Whether types and sizes of a node are none that native code has no kernels for."""
        return self.why_unfit(node.id) is None

    def why_not_kept(self, facts: Sequence[TypedFact]) -> str | None:
        """Why native code cannot keep something from turn to turn whose sizes are among those of ``facts``."""
        if self.is_body:
            return "it keeps its state between turns, inside of a body"
        symbols = frozenset[str]().union(*(fact.shape.symbols() for fact in facts))
        return (
            None if symbols <= self.given_at_begin else "it keeps a state whose sizes come up in the middle of the run"
        )

    def reads(self, node: HostNode) -> Reads | None:
        """How sizes and numbers of a node are read before it is computed, where that can be: not inside of a body."""
        reads = self.model.registry[READS].find(type(node.op))
        if reads is None or self.is_body or None in [self.element_at(node.inputs[slot]) for slot in reads.slots]:
            return None
        return reads

    def wants_reading(self, node: HostNode) -> bool:
        """Whether only an input holds sizes of a node, which native code can read before it computes it."""
        sizes = frozenset[str]().union(*(fact.shape.symbols() for fact in node.facts))
        if sizes <= self.given or self.reads(node) is None:
            return False
        return all(self.element(fact.datum_type.storage) is not None for fact in self._facts_around(node.node))

    def learn(self, node: HostNode) -> frozenset[str]:
        """What a node gives values is known from here on. Returns what was not known before."""
        tensors = [fact for fact in node.facts if not isinstance(fact.datum_type, Container)]
        definitions = self.model.symbols.definitions
        symbols = definitions.with_known(self.given | BindingPlan.of(tensors, definitions).symbols) - self.given
        self.given = self.given | symbols
        return symbols

    def _symbols_around(self, node: int) -> frozenset[str]:
        return frozenset[str]().union(*(fact.shape.symbols() for fact in self._facts_around(node)))

    def _why_never(self, node: int) -> str | None:
        for fact in self._facts_around(node):
            if fact.shape.is_concrete and int(fact.shape.volume) * fact.datum_type.itemsize > self._allowed:
                return "no run may have a tensor of that size"
            element = self.element(fact.datum_type.storage)
            if element is None:
                return f"native code does not know {fact.datum_type.short}"
            if element.is_carried and not self._carries(self.model.nodes[node].op, element):
                return f"native code only moves and converts {fact.datum_type.short}"
        return None

    def _carries(self, op: TypedOp, carried: ElementType) -> bool:
        """Whether an operator only moves or converts its elements."""
        if self.model.registry[MOVES].find(type(op)) is not None:
            return True
        element = self.model.registry[ELEMENTS].find(type(op))
        return element is not None and marker_of(carried) in element.kinds

    def _facts_around(self, node: int) -> list[TypedFact]:
        typed = self.model.nodes[node]
        return [self.model.outlet_fact(outlet) for outlet in [*typed.outlets(), *typed.inputs]]


def _given_by_inputs(model: TypedModel) -> frozenset[str]:
    facts = [model.outlet_fact(outlet) for outlet in model.inputs]
    return BindingPlan.of(facts, model.symbols.definitions).symbols
