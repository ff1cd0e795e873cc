"""What is known of a model before anything has a place in memory: types, constants, and which sizes there are."""

from __future__ import annotations

from typing import Final

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
from tract_llvm.elements.expressions import ELEMENTS, marker_of
from tract_llvm.language.types import ElementType, element_type

LATE: Final = "sizes are only known in the middle of the run"
"""Why a node is left to the host whose sizes no kernel can know in time."""


class Known:
    """What kernels may rely on. ``given``: symbols that have values by now, in any run."""

    def __init__(self, model: TypedModel, given: frozenset[str]) -> None:
        self.model, self.given = model, given
        self._around: dict[int, tuple[frozenset[str], str | None]] = {}
        self._allowed = run_limit(model.limits)

    def moves(self, op: TypedOp) -> bool:
        """Whether a kernel that is no chain only moves or converts the elements of an operator. A compiler says it."""
        return False

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

    def facts_around(self, node: int) -> list[TypedFact]:
        """Those of its outputs and inputs."""
        typed = self.model.nodes[node]
        return [self.model.outlet_fact(outlet) for outlet in [*typed.outlets(), *typed.inputs]]

    def why_unfit(self, node: int) -> str | None:
        """Why native code cannot compute a node whose operator has some, as its types or sizes are beyond it."""
        around = self._around.get(node)
        if around is None:
            symbols = frozenset[str]().union(*(fact.shape.symbols() for fact in self.facts_around(node)))
            around = self._around[node] = symbols, self._why_never(node)
        symbols, why = around
        return why or (None if symbols <= self.given else LATE)

    def fits(self, node: TypedNode) -> bool:
        """Whether types and sizes of a node are none that native code has no kernels for."""
        return self.why_unfit(node.id) is None

    def learn(self, node: HostNode) -> frozenset[str]:
        """What a node gives values is known from here on. Returns what was not known before."""
        tensors = [fact for fact in node.facts if not isinstance(fact.datum_type, Container)]
        definitions = self.model.symbols.definitions
        symbols = definitions.with_known(self.given | BindingPlan.of(tensors, definitions).symbols) - self.given
        self.given = self.given | symbols
        return symbols

    def _why_never(self, node: int) -> str | None:
        for fact in self.facts_around(node):
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
        element = self.model.registry[ELEMENTS].find(type(op))
        return self.moves(op) or (element is not None and marker_of(carried) in element.kinds)
