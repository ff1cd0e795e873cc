"""Decide how each node of a model is computed: by a kernel, with others, as a view, or by the node executor.

The table ``cpu`` says, for a type of operators, how one is lowered: a function ``(op, site)`` that adds steps to the
program, and returns ``None``, or that adds nothing and returns why there is no native code. What has no row is left to
the node executor. Nodes are visited in order of execution; a row may take nodes that come later into its kernel
(`tract_cpu.lower.fusion`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

from tract_core.data import Constant, DatumType
from tract_core.dims import Dim, is_one, product
from tract_core.model.const import Const
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import TableKey, function_row
from tract_core.runtime.binding_plan import BindingPlan
from tract_core.runtime.host import HostNode
from tract_cpu.isa import Isa
from tract_cpu.language.types import F16, ElementType, element_type
from tract_cpu.lower.constants import Makers
from tract_cpu.lower.copies import copy_step
from tract_cpu.lower.form import Blocked
from tract_cpu.lower.homes import Homes
from tract_cpu.lower.program import HostStep, NativeStep, Program, Step, ViewStep
from tract_cpu.lower.views import Kind, Storage, View

LowerFn = Callable[[Any, "Site"], str | None]

CPU: TableKey[type, LowerFn] = TableKey("cpu", "how native code computes an operator", function_row)


class Lowering:
    """A program while it is made.

    ``taken``: nodes that were computed together with one before them. ``given``: symbols that the inputs give values.
    """

    def __init__(self, model: TypedModel, isa: Isa) -> None:
        self.model = model
        self.isa = isa
        self.steps: list[Step] = []
        self.taken: set[int] = set()
        self.blocked: dict[OutletId, Blocked] = {}
        """Tensors that are there in blocks of channels."""
        self.born_in_blocks: dict[OutletId, Blocked] = {}
        """Those of them that were computed so, as they were written first; copies of them are not among these."""
        self.nowhere = Storage(Kind.ARENA, -1)
        """The storage of views of which only shape and type count."""
        self._views: dict[OutletId, View | None] = {}
        self._constants: list[Array | Future[Array]] = []
        self._makers = Makers()
        self._arena: list[Dim] = []
        self._hosted = 0
        self._copies: dict[View, View] = {}
        self.given = BindingPlan.of([model.outlet_fact(outlet) for outlet in model.inputs]).symbols
        self.homes = Homes(self)
        for number, outlet in enumerate(model.inputs):
            fact = model.outlet_fact(outlet)
            element = self.element(fact.datum_type.storage)
            storage = Storage(Kind.INPUT, number)
            self._views[outlet] = element and View.contiguous(storage, element, tuple(fact.shape))

    def element(self, kind: object) -> ElementType | None:
        """The type of elements of the core as kernels know it; ``None`` where they do not, or not on this machine."""
        found = element_type(kind)
        return None if found is F16 and not self.isa.half else found

    def why_unfit(self, node: int) -> str | None:
        """Why native code cannot compute a node whose operator has some, as its types or sizes are beyond it."""
        typed = self.model.nodes[node]
        for fact in (self.model.outlet_fact(outlet) for outlet in [*typed.outlets(), *typed.inputs]):
            if not fact.shape.symbols() <= self.given:
                return "sizes are only known in the middle of the run"
            if self.element(fact.datum_type.storage) is None:
                return f"native code does not know {fact.datum_type.short}"
        return None

    def has(self, outlet: OutletId) -> bool:
        """Whether a tensor is there already."""
        return outlet in self._views or outlet in self.blocked or self._is_constant(outlet)

    def is_plain(self, outlet: OutletId) -> bool:
        """Whether a tensor is there with its axes as its shape says."""
        return outlet in self._views or self._is_constant(outlet)

    def view(self, outlet: OutletId) -> View | None:
        """Where a tensor is; ``None`` where only the host can hold it."""
        if outlet not in self._views and self._is_constant(outlet):
            self._views[outlet] = self.constant(self.constant_array(outlet))
        if outlet not in self._views:
            blocked, plain = self.blocked[outlet], self.new(outlet)
            for out_of, into in blocked.form.parts(blocked.view, plain):
                self.steps.append(copy_step(out_of, into, self.isa, ()))
        return self._views[outlet]

    def constant_array(self, outlet: OutletId) -> Array | None:
        """The elements of a tensor that is part of the model; ``None`` for any other."""
        op = self.model.nodes[outlet.node].op
        return op.value.array if isinstance(op, Const) and isinstance(op.value, Constant) else None

    def constant(self, array: Array | None) -> View | None:
        """An array that is part of the program; ``None`` where native code cannot read its elements."""
        assert array is not None  # the callers asked
        element = self.element(DatumType.from_numpy(array.dtype))
        if element is None:
            return None
        self._constants.append(array)
        return View.contiguous(Storage(Kind.CONSTANT, len(self._constants) - 1), element, array.shape)

    def made(self, shape: Sequence[Dim], element: ElementType, make: Callable[[], Array]) -> View:
        """An array that is part of the program, which another thread makes meanwhile; of this shape and type."""
        self._constants.append(self._makers.start(make))
        return View.contiguous(Storage(Kind.CONSTANT, len(self._constants) - 1), element, shape)

    def new(self, outlet: OutletId) -> View:
        """Memory for a tensor that a kernel is about to write: where it need not be copied from, as `Homes` says."""
        fact = self.model.outlet_fact(outlet)
        element = self.element(fact.datum_type.storage)
        assert element is not None  # who writes it knows its type
        found = View.contiguous(self.homes.of(outlet), element, tuple(fact.shape))
        self._views[outlet] = found
        return found

    def room(self, size: Dim) -> Storage:
        """Memory of the arena, of so many bytes."""
        self._arena.append(size)
        return Storage(Kind.ARENA, len(self._arena) - 1)

    def place(self, outlet: OutletId, view: View) -> None:
        """A tensor is a view on another one."""
        self._views[outlet] = view

    def host(self, node: HostNode, why: str) -> None:
        """Leave a node to the node executor."""
        inputs = tuple(self.view(outlet) for outlet in node.inputs)
        results: list[Storage] = []
        for outlet, fact in zip(self.model.nodes[node.node].outlets(), node.facts, strict=True):
            storage = Storage(Kind.HOST, self._hosted)
            self._hosted += 1
            results.append(storage)
            element = self.element(fact.datum_type.storage)
            self._views[outlet] = element and View.contiguous(storage, element, tuple(fact.shape))
        self.steps.append(HostStep(node, why, inputs, tuple(results)))

    def contiguous(self, view: View) -> View:
        """The same tensor without gaps: a copy where it may have some, one for all that ask."""
        if view.is_contiguous:
            return view
        if view not in self._copies:
            target = View.contiguous(self.room(product(view.shape) * view.element.bytes), view.element, view.shape)
            self.steps.append(copy_step(view, target, self.isa, ()))
            self._copies[view] = target
        return self._copies[view]

    def near(self, view: View) -> View:
        """The same tensor, with neighbours along the last axis side by side, or one element there: copied if need be.

        Axes that are stretched stay so.
        """
        long = [axis for axis, size in enumerate(view.shape) if not is_one(size)]
        if not long or view.strides[long[-1]] in {0, 1}:
            return view
        shape = tuple(1 if stride == 0 else size for size, stride in zip(view.shape, view.strides, strict=True))
        return self.contiguous(replace(view, shape=shape)).stretched(view.shape)

    def program(self) -> Program:
        """The program, when all nodes were visited: outputs that are not where they belong are copied there."""
        outputs: list[View | None] = []
        for number, outlet in enumerate(self.model.outputs):
            view = self.view(outlet)
            home = Storage(Kind.OUTPUT, number)
            if view is not None and view.storage != home and view.storage.kind is not Kind.HOST:
                target = View.contiguous(home, view.element, view.shape)
                self.steps.append(copy_step(view, target, self.isa, ()))
                view = target
            outputs.append(self.homes.view(view))
        steps = tuple(self.homes.step(step) for step in self.steps)
        views = self.homes.views(self._views)
        constants = self._makers.finished(self._constants, steps)
        return Program(steps, constants, tuple(self._arena), tuple(outputs), views, self.born_in_blocks)

    def _is_constant(self, outlet: OutletId) -> bool:
        return self.constant_array(outlet) is not None


@dataclass(frozen=True, slots=True)
class Site:
    """One node that is about to be lowered."""

    lowering: Lowering
    node: HostNode

    @property
    def outlet(self) -> OutletId:
        """Its first output."""
        return OutletId(self.node.node)

    @property
    def isa(self) -> Isa:
        """The instruction set."""
        return self.lowering.isa

    def facts(self) -> list[TypedFact]:
        """The facts of the inputs."""
        return [self.lowering.model.outlet_fact(outlet) for outlet in self.node.inputs]

    def inputs(self) -> list[View] | None:
        """Where the inputs are; ``None`` where only the host can hold one of them."""
        found = [self.lowering.view(outlet) for outlet in self.node.inputs]
        return None if None in found else [one for one in found if one is not None]

    def known_inputs(self) -> list[View]:
        """Where the inputs are. Only for operators all of whose inputs have types that kernels know."""
        found = self.inputs()
        assert found is not None  # nodes with other inputs are left to the host before
        return found

    def array(self, slot: int) -> Array | None:
        """An input that is part of the model; ``None`` for any other."""
        return self.lowering.constant_array(self.node.inputs[slot])

    def result(self) -> ElementType | None:
        """The type of the first output, where kernels know it."""
        return self.lowering.element(self.node.facts[0].datum_type.storage)

    def place(self, view: View) -> None:
        """The first output is a view on another tensor."""
        self.lowering.place(self.outlet, view)
        self.lowering.steps.append(ViewStep((self.node.node,), (view.storage,)))

    def result_in(self, shape: Sequence[Dim]) -> View:
        """Memory for the first output, looked at in another shape of as many elements."""
        found = self.lowering.new(self.outlet).shaped(shape)
        assert found is not None  # new memory has no gaps
        return found

    def copy_into(self, source: View, target: View) -> None:
        """Add the call that copies a tensor into the first output, or into a part of it."""
        self.add(copy_step(source, target, self.isa, (self.node.node,)))

    def add_all(self, steps: Sequence[NativeStep]) -> None:
        """Add several calls that compute this node together: it is done with the last one."""
        self.lowering.steps += steps[:-1]
        self.add(replace(steps[-1], nodes=(self.node.node,)))

    def add(self, step: NativeStep) -> None:
        """Add a call of a kernel to the program. Its nodes are computed by it."""
        self.lowering.taken.update(step.nodes)
        self.lowering.steps.append(step)
