"""The program of a model while it is made: the steps that there are, and where the tensors lie that these give."""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, TypeVar

import numpy as np
from tract_llvm.language.types import I32, ElementType, element_type
from tract_llvm.program.keeping import Keeping
from tract_llvm.program.storages import Kind, Storage
from tract_llvm.program.views import View, memory_order, seen

from tract_core.compile.groups import Group, given_by
from tract_core.data import Constant, DatumType
from tract_core.dims import Dim, product, symbol, symbols_of
from tract_core.frozen import frozen
from tract_core.model.const import Const
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_core.runtime.host import HostNode
from tract_cuda.blocks import BlockTensor, unpack_launch
from tract_cuda.kernels.kernel import KernelPlan
from tract_cuda.language.arch import Arch
from tract_cuda.maps import copy_launch, keep_launch
from tract_cuda.program import (
    CudaProgram,
    Download,
    Given,
    Hosted,
    KeptTensors,
    Launch,
    Repeat,
    RunStage,
    Shown,
    Step,
    Upload,
    count_name,
    launches_in,
    refuses,
)

T = TypeVar("T")


@frozen
class Within:
    """What is around the body of an operator: where its inputs lie already, and how many ``loops``."""

    inputs: tuple[View, ...] = ()
    loops: int = 0

    @property
    def symbols(self) -> frozenset[str]:
        """Those that tell where the inputs lie."""
        dims = (dim for view in self.inputs for dim in (*view.shape, *view.strides, view.offset))
        return frozenset[str]().union(*map(symbols_of, dims))


OUTERMOST: Final = Within()
"""Nothing: the inputs come from the host."""


@frozen
class Target:
    """What a model is compiled for.

    ``multiprocessors``: how many the device has. ``tf32``: whether products of f32 may lose digits. ``shows``: whether
    somebody looks at what each group gives. ``within``: what is around the model.
    """

    arch: Arch
    multiprocessors: int = 132
    tf32: bool = False
    shows: bool = False
    within: Within = OUTERMOST


class Lowering:
    """Tensors are on the device as views, on the host as arrays, or both: each is copied once, when first wanted."""

    def __init__(self, model: TypedModel, target: Target) -> None:
        self.model, self.target = model, target
        self.steps: list[Step] = []
        given = target.within.inputs
        self._views: dict[OutletId, View] = dict(zip(model.inputs, given, strict=True)) if given else {}
        self._in_blocks: dict[OutletId, tuple[BlockTensor, tuple[int, ...]]] = {}
        self._copies: dict[View, View] = {}
        self._shared: dict[Hashable, Any] = {}
        self._on_host: set[OutletId] = set() if given else set(model.inputs)
        self._arena: list[Dim] = []
        self._constants: list[Array] = []
        self._kept: list[KeptTensors] = []
        self._at_end: list[tuple[View, View]] = []
        self._stages: list[RunStage] = [RunStage(0, model.given_symbols() | target.within.symbols)]

    # ---- where tensors are

    def element(self, outlet: OutletId) -> ElementType | None:
        """The type of the elements that are stored of a tensor; ``None`` where kernels know none."""
        return element_type(self.model.outlet_fact(outlet).datum_type.storage)

    def view(self, outlet: OutletId) -> View:
        """Where a tensor lies on the device, with any strides. Where it does not, it is copied or unpacked first."""
        if outlet not in self._views:
            array = self.constant_array(outlet)
            if outlet in self._in_blocks:
                self._views[outlet] = self._unpacked(outlet)
            else:
                self._views[outlet] = self._uploaded(outlet) if array is None else self.constant(array)
        return self._views[outlet]

    def in_blocks(self, outlet: OutletId) -> BlockTensor | None:
        """A tensor as it lies in blocks, for kernels that unpack it as they read; ``None`` where it does not."""
        found = self._in_blocks.get(outlet)
        return None if found is None else found[0]

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

    # ---- what stays from turn to turn

    def why_not_kept(self, facts: Sequence[TypedFact]) -> str | None:
        """Why nothing can be kept from turn to turn on the device whose sizes are among those of ``facts``."""
        if self.target.within != OUTERMOST:
            return "it keeps its state between turns, inside of a body"
        symbols = frozenset[str]().union(*(fact.shape.symbols() for fact in facts))
        known = symbols <= self.model.given_symbols()
        return None if known else "it keeps a state whose sizes come up in the middle of the run"

    def keep(
        self,
        node: int,
        keeping: Keeping,
        tensors: Sequence[tuple[ElementType, tuple[Dim, ...]]],
        counts: Sequence[Dim] = (),
    ) -> list[View]:
        """Memory for what a node keeps from turn to turn, where `why_not_kept` has nothing against it.

        ``counts``: what becomes, with each turn, of the numbers that `count_name` names.
        """
        first = sum(len(one.tensors) for one in self._kept)
        named = tuple((count_name(node, place), then) for place, then in enumerate(counts))
        self._kept.append(KeptTensors(node, first, tuple(tensors), named, keeping))
        return [View.contiguous(Storage(Kind.KEPT, first + place), *one) for place, one in enumerate(tensors)]

    def keep_at_end(self, source: View, kept: View) -> None:
        """Have what is kept hold what a tensor holds, behind all other steps, if no kernel refused until then."""
        self._at_end.append((source, kept))

    def put(self, outlet: OutletId, view: View) -> None:
        """A tensor lies there, as a part of another one, or in another order."""
        self._views[outlet] = view

    def put_blocks(self, outlet: OutletId, tensor: BlockTensor, nodes: Sequence[int]) -> None:
        """A tensor lies there in blocks. It is unpacked to memory, for ``nodes``, once a kernel wants it there."""
        self._in_blocks[outlet] = tensor, tuple(nodes)

    # ---- steps

    def launch(
        self,
        kernel: KernelPlan,
        grid: Sequence[Dim],
        arguments: Mapping[str, Given],
        writes: Sequence[View],
        nodes: Sequence[int] = (),
    ) -> None:
        """Add the launch of a kernel: see `Launch.of`."""
        self.steps.append(Launch.of(kernel, grid, arguments, writes, nodes))

    def copy(self, source: View, target: View, nodes: Sequence[int] = ()) -> None:
        """Copy a tensor, bit by bit; its axes are stretched where those of the target are longer."""
        self.steps.append(copy_launch(source, target, nodes))

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What several groups want of the same tensors: the first one has it made, by steps of its own."""
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    @contextmanager
    def attempt(self) -> Generator[None]:
        """What is added here is taken back where an exception leaves."""
        before = list(self.steps), dict(self._views), dict(self._in_blocks), dict(self._copies), set(self._on_host)
        shared = dict(self._shared)
        lists = self._arena, self._constants, self._kept, self._at_end
        lengths = list(map(len, lists))
        try:
            yield
        except BaseException:
            self.steps, self._views, self._in_blocks, self._copies, self._on_host = before
            self._shared = shared
            for one, length in zip(lists, lengths, strict=True):
                del one[length:]
            raise

    @contextmanager
    def repeated(self, count: Dim, nodes: Sequence[int]) -> Generator[Dim]:
        """What is added here is done ``count`` times, for ``nodes``. Gives which time it is, from 0 on, as a symbol.

        Whoever reads tensors there that are not on the device yet asks for them before.
        """
        index, around, copies = f"#iteration{self.target.within.loops}", self.steps, dict(self._copies)
        shared = dict(self._shared)
        self.steps = []
        yield symbol(index)
        inside = [step for step in self.steps if isinstance(step, Launch | Repeat)]
        assert len(inside) == len(self.steps), "whoever needs anything of the host asks for it before"
        around.append(Repeat(count, index, tuple(inside), tuple(nodes)))
        self.steps, self._copies, self._shared = around, copies, shared  # nobody else reads what may not be made

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
            self._in_blocks.pop(outlet, None)
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
        self._keep()
        first, *later = self._stages
        counted = frozenset(name for one in self._kept for name, _ in one.counts)
        stages = (replace(first, symbols=first.symbols | counted), *later)
        return CudaProgram(tuple(self.steps), tuple(self._arena), tuple(self._constants), stages, tuple(self._kept))

    def _keep(self) -> None:
        """What stays for the next turn is written last: where anything fails before, nothing has changed."""
        last = next((n for n, one in reversed([*enumerate(self.steps)]) if isinstance(one, Hosted | Shown)), -1)
        unsure = any(map(refuses, launches_in(self.steps[last + 1 :])))
        for source, kept in self._at_end:
            self.steps.append(keep_launch(source, kept, self.status()) if unsure else copy_launch(source, kept))

    def _unpacked(self, outlet: OutletId) -> View:
        tensor, nodes = self._in_blocks[outlet]
        found = self.scratch(tensor.form.to, tensor.shape)
        self.steps.append(unpack_launch(tensor, found, nodes))
        return found

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
        self, kernel: KernelPlan, grid: Sequence[Dim], arguments: Mapping[str, Given], writes: Sequence[View]
    ) -> None:
        """Add the launch of a kernel that computes the group: see `Launch.of`."""
        self.lowering.launch(kernel, grid, arguments, writes, self.group.nodes)
