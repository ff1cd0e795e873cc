"""The program of a model while it is made: the steps that there are, and where the tensors lie that these give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from tract_llvm.language.types import I32, ElementType, element_type
from tract_llvm.program.views import Kind, Storage, View, memory_order, seen

from tract_core.compile.groups import Group, given_by
from tract_core.data import Constant, DatumType
from tract_core.dims import Dim, product
from tract_core.frozen import frozen
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_core.runtime.host import HostNode
from tract_cuda.kernels.kernel import KernelPlan
from tract_cuda.language.arch import Arch
from tract_cuda.maps import copy_launch
from tract_cuda.program import CudaProgram, Download, Hosted, Launch, RunStage, Shown, Step, Upload


@frozen
class Target:
    """What a model is compiled for.

    ``multiprocessors``: how many the device has. ``tf32``: whether products of f32 may lose digits. ``shows``: whether
    somebody looks at what each group gives.
    """

    arch: Arch
    multiprocessors: int = 132
    tf32: bool = False
    shows: bool = False


class Lowering:
    """Tensors are on the device as views, on the host as arrays, or both: each is copied once, when first wanted."""

    def __init__(self, model: TypedModel, target: Target) -> None:
        self.model, self.target = model, target
        self.steps: list[Step] = []
        self._views: dict[OutletId, View] = {}
        self._copies: dict[View, View] = {}
        self._on_host: set[OutletId] = set(model.inputs)
        self._arena: list[Dim] = []
        self._constants: list[Array] = []
        self._stages: list[RunStage] = [RunStage(0, model.given_symbols())]

    # ---- where tensors are

    def element(self, outlet: OutletId) -> ElementType | None:
        """The type of the elements that are stored of a tensor; ``None`` where kernels know none."""
        return element_type(self.model.outlet_fact(outlet).datum_type.storage)

    def view(self, outlet: OutletId) -> View:
        """Where a tensor lies on the device, with any strides. It is copied there first where it is not."""
        if outlet not in self._views:
            array = self.constant_array(outlet)
            self._views[outlet] = self._uploaded(outlet) if array is None else self.constant(array)
        return self._views[outlet]

    def contiguous(self, outlet: OutletId) -> View:
        """The same without gaps, with the axes as its shape says: a copy where it does not lie so."""
        return self.compact(self.view(outlet))

    def compact(self, view: View) -> View:
        """A tensor without gaps: itself, or a copy."""
        if view.is_contiguous:
            return view
        if view not in self._copies:
            copy = self.scratch(view.element, view.shape)
            self.steps.append(copy_launch(view, copy))
            self._copies[view] = copy
        return self._copies[view]

    def packed(self, view: View) -> View:
        """A tensor without gaps: where it is part of the model, copied before the model runs."""
        if view.is_contiguous or view.storage.kind is not Kind.CONSTANT:
            return self.compact(view)
        array = self._constants[view.storage.number]
        return self.constant(np.ascontiguousarray(seen(view, np.ascontiguousarray(array))))

    def constant_array(self, outlet: OutletId) -> Array | None:
        """The elements of a tensor that is part of the model; ``None`` for any other."""
        op = self.model.nodes[outlet.node].op
        return op.value.array if isinstance(op, Const) and isinstance(op.value, Constant) else None

    def constant(self, array: Array) -> View:
        """An array that lies on the device before the model runs, as packed weights."""
        element = element_type(DatumType.from_numpy(array.dtype))
        assert element is not None, "groups are made of tensors whose types kernels know"
        self._constants.append(array)
        return View.contiguous(Storage(Kind.CONSTANT, len(self._constants) - 1), element, array.shape)

    def new(self, outlet: OutletId) -> View:
        """Memory for a tensor that a kernel is about to write, without gaps."""
        element = self.element(outlet)
        assert element is not None, "groups are made of tensors whose types kernels know"
        found = self.scratch(element, tuple(self.model.outlet_fact(outlet).shape))
        self.put(outlet, found)
        return found

    def new_like(self, outlet: OutletId, like: View) -> View:
        """The same, with axes in memory in the order that those of another tensor of its shape have.

        So what kernels chose for a convolution goes on behind it.
        """
        order = memory_order(like)
        if order is None or len(order) != len(self.model.outlet_fact(outlet).shape):
            return self.new(outlet)
        element, shape = self.element(outlet), tuple(self.model.outlet_fact(outlet).shape)
        assert element is not None, "groups are made of tensors whose types kernels know"
        found = self.scratch(element, [shape[axis] for axis in order])
        self.put(outlet, found.transposed([order.index(axis) for axis in range(len(order))]))
        return self._views[outlet]

    def scratch(self, element: ElementType, shape: Sequence[Dim]) -> View:
        """Memory for what is between kernels."""
        self._arena.append(product(shape) * element.bytes)
        return View.contiguous(Storage(Kind.ARENA, len(self._arena) - 1), element, shape)

    def status(self) -> View:
        """A number that is 0; what a kernel writes there says that it refused to do its work, as an index was wrong.

        Then the node executor does the turn, and says what is wrong.
        """
        return View.contiguous(Storage(Kind.STATUS, 0), I32, (1,))

    def put(self, outlet: OutletId, view: View) -> None:
        """A tensor lies there, as a part of another one, or in another order."""
        self._views[outlet] = view

    # ---- steps

    def launch(
        self,
        kernel: KernelPlan,
        grid: Sequence[Dim],
        arguments: Mapping[str, View | Dim],
        writes: Sequence[View],
        nodes: Sequence[int] = (),
    ) -> None:
        """Add the launch of a kernel: see `Launch.of`."""
        self.steps.append(Launch.of(kernel, grid, arguments, writes, nodes))

    def copy(self, source: View, target: View, nodes: Sequence[int] = ()) -> None:
        """Copy a tensor, bit by bit; its axes are stretched where those of the target are longer."""
        self.steps.append(copy_launch(source, target, nodes))

    def host(self, node: HostNode, why: str) -> None:
        """Leave a node to the host. What it gives is there; what kernels read of it is copied once they do."""
        for outlet in node.inputs:
            self.bring_to_host(outlet)
        self.steps.append(Hosted(node, why))
        self._on_host.update(self.model.nodes[node.node].outlets())
        if node.binds:
            self._stages.append(RunStage(len(self.steps), node.binds))

    def show(self, nodes: Sequence[int]) -> None:
        """Have what a group gives looked at, on the host. Whoever reads it from here on reads what was made of it."""
        outlets = tuple(given_by(self.model, nodes))
        for outlet in outlets:
            self.bring_to_host(outlet)
            self._views.pop(outlet, None)
        self.steps.append(Shown(tuple(nodes), outlets))

    def bring_to_host(self, outlet: OutletId) -> None:
        """Have a tensor on the host."""
        if outlet not in self._on_host and self.constant_array(outlet) is None:
            self.steps.append(Download(outlet, self.contiguous(outlet)))
            self._on_host.add(outlet)

    def program(self) -> CudaProgram:
        """All steps, and the outputs of the model on the host."""
        for outlet in self.model.outputs:
            self.bring_to_host(outlet)
        return CudaProgram(tuple(self.steps), tuple(self._arena), tuple(self._constants), tuple(self._stages))

    def _uploaded(self, outlet: OutletId) -> View:
        element, shape = self.element(outlet), tuple(self.model.outlet_fact(outlet).shape)
        assert element is not None, "groups are made of tensors whose types kernels know"
        found = self.scratch(element, shape)
        self.steps.append(Upload(outlet, found))
        return found


@frozen
class Site:
    """One group, where its kernels are chosen. ``node``: with which it begins."""

    lowering: Lowering
    node: HostNode
    group: Group

    @property
    def outlet(self) -> OutletId:
        """The first tensor that the node gives."""
        return OutletId(self.node.node)

    @property
    def arch(self) -> Arch:
        """What for."""
        return self.lowering.target.arch

    def op(self, kind: type[TypedOp]) -> TypedOp:
        """The operator, which is of a type."""
        assert isinstance(self.node.op, kind)
        return self.node.op

    def inputs(self) -> list[View]:
        """Where the inputs of the node lie, with any strides."""
        return [self.lowering.view(outlet) for outlet in self.node.inputs]

    def compact_inputs(self) -> list[View]:
        """The same without gaps."""
        return [self.lowering.contiguous(outlet) for outlet in self.node.inputs]

    def results(self) -> list[View]:
        """New memory for all outputs of the node."""
        return [self.lowering.new(outlet) for outlet in self.lowering.model.nodes[self.node.node].outlets()]

    def place(self, view: View) -> None:
        """What the node gives lies there."""
        self.lowering.put(self.outlet, view)

    def launch(
        self, kernel: KernelPlan, grid: Sequence[Dim], arguments: Mapping[str, View | Dim], writes: Sequence[View]
    ) -> None:
        """Add the launch of a kernel that computes the group: see `Launch.of`."""
        self.lowering.launch(kernel, grid, arguments, writes, self.group.nodes)
