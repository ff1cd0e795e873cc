"""The program of a model while it is made: the steps that there are, and where the tensors lie that these give."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from math import prod
from types import MappingProxyType
from typing import Any

from tract_llvm.isa import Isa
from tract_llvm.language.types import U8, ElementType
from tract_llvm.program.keeping import Keeping
from tract_llvm.program.storages import Kind, Storage
from tract_llvm.program.views import View

from tract_core.data import DatumType
from tract_core.dims import Dim, product, symbol
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_core.runtime.host import HostNode
from tract_cpu.draft.constants import take_bytes, without_repeats
from tract_cpu.draft.copies import convert_step, copy_step
from tract_cpu.draft.draft import Draft, Drafted
from tract_cpu.draft.repeats import Repeated
from tract_cpu.group.groups import CpuGroup
from tract_cpu.group.known import CpuKnown
from tract_cpu.lay_out.layout import Layout, PartOf, SameAs
from tract_cpu.program.block_weights import BlockWeights, in_block_panels
from tract_cpu.program.counted import Counted
from tract_cpu.program.form import Blocked, Border
from tract_cpu.program.kept import Kept
from tract_cpu.program.places import TensorPart
from tract_cpu.program.program import (
    HostStep,
    NativeStep,
    ReadStep,
    RunStage,
    ViewStep,
)
from tract_cpu.program.reads import number_name
from tract_cpu.target import USUAL, Rounding


class Lowering(CpuKnown):
    """The program of a model, or the part of a program that computes a body, while it is made."""

    def __init__(
        self,
        model: TypedModel,
        isa: Isa,
        around: Lowering | None = None,
        known: frozenset[str] = frozenset(),
        *,
        layout: Layout,
        wanted: Mapping[OutletId, Storage] = MappingProxyType({}),
        threads: int = 1,
        rounding: Rounding = USUAL,
        like: CpuKnown | None = None,
    ) -> None:
        """``around``: what the body is part of. ``layout``: where tensors are written; ``wanted``: outputs, where so.

        The others are as in `CpuKnown`.
        """
        super().__init__(model, isa, around, known, threads=threads, rounding=rounding, like=like)
        self.draft = Draft() if around is None else around.draft
        self.owner = self.draft.models
        self.draft.models += 1
        self.steps = self.draft.steps
        self.places = self.draft.places
        self.blocked: dict[OutletId, Blocked] = {}
        """Tensors that are there in blocks of channels."""
        self.born_in_blocks: dict[OutletId, Blocked] = {}
        """Those of them that were computed so, as they were written first; copies of them are not among these."""
        self.wholes: dict[OutletId, Blocked] = {}
        """Memory of concatenations whose inputs are written there."""
        self.around: dict[OutletId, Border] = {}
        """Plain tensors that were written with gaps: how many zeros are around each, of which nobody else knows."""
        self.padded: dict[OutletId, Blocked] = {}
        """Results of `Pad` that are there as soon as their inputs are: these are written inside."""
        self.block_weights: dict[OutletId, BlockWeights] = {}
        """Weights in blocks, which are nowhere unpacked: products read them so."""
        self.narrow_weights: dict[OutletId, Array] = {}
        """Weights in narrow floats, which are nowhere widened: products and look-ups read them so."""
        self.bytes_of_rows: dict[Any, Any] = {}
        """Rows that were rounded to bytes for products with such weights: what these are told of them."""
        self.runs_of_rows: dict[Any, Any] = {}
        """Rows in the order of the matrices that they chose: what products are told of them."""
        self.repeated: dict[OutletId, Repeated] = {}
        """Tensors that repeat others, and are written as soon as somebody wants to see them so."""
        self.counted: dict[int, Counted] = {}
        """Inputs of which elements were counted, by the nodes whose sizes depend on that."""
        self._views: dict[OutletId, View | None] = {}
        self._hosted = 0
        self._read: set[int] = set()
        self._copies: dict[tuple[View, ElementType], View] = {}
        self.layout = layout
        self._homes = dict(wanted)
        self._panels: dict[tuple[OutletId, int], View] = {}

    def inside(self, known: CpuKnown, layout: Layout, wanted: Mapping[OutletId, Storage]) -> Lowering:
        """For a body, whose steps are added behind those that there are. ``known``: what is known of it."""
        options: dict[str, Any] = {"threads": self.threads, "rounding": self.rounding, "like": known}
        return Lowering(known.model, self.isa, self, layout=layout, wanted=wanted, **options)

    def attempt(self, lower: Callable[[], None]) -> None:
        """Call a function that adds to the program. Where it raises, the program is as it was before."""
        draft, mark = self.draft, self.draft.mark()
        views, copies, homes = dict(self._views), dict(self._copies), dict(self._homes)
        repeated, panels, bytes_ = dict(self.repeated), dict(self._panels), dict(self.bytes_of_rows)
        runs = dict(self.runs_of_rows)
        try:
            lower()
        except BaseException:
            draft.back_to(mark)
            self._views, self._copies, self._homes = views, copies, homes
            self.repeated, self._panels, self.bytes_of_rows, self.runs_of_rows = repeated, panels, bytes_, runs
            raise

    def take_inputs(self) -> None:
        """The inputs are those of the model, and the outputs had best be written where the caller wants them."""
        model = self.model
        outputs = reversed(list(enumerate(model.outputs)))
        self._homes = {outlet: Storage(Kind.OUTPUT, number) for number, outlet in outputs}
        for number, outlet in enumerate(model.inputs):
            fact = model.outlet_fact(outlet)
            element = self.element(fact.datum_type.storage)
            storage = Storage(Kind.INPUT, number)
            self._views[outlet] = element and View.contiguous(storage, element, tuple(fact.shape))

    def read_sizes(self, node: HostNode) -> None:
        """Have sizes of a node read before it is computed, where only an input holds them, and native code can."""
        if self.wants_reading(node):
            self.read(node)

    def read(self, node: HostNode) -> bool:
        """Have sizes and numbers of a node read, once. Returns whether that can be: not in the middle of a body."""
        reads = self.reads(node)
        if reads is None or node.node in self._read:
            return reads is not None
        if reads.counted is not None:
            counted = self.counted[node.node] = reads.counted(self, node)
            views = [counted.total]
        else:
            views = [self.view(node.inputs[slot]) for slot in reads.slots]
        self.steps.append(ReadStep(node, reads, tuple(view for view in views if view is not None)))
        self._read.add(node.node)
        self._stage(node)
        return True

    def _stage(self, node: HostNode) -> None:
        """What a node gives values is known from here on."""
        self.draft.stages.append(RunStage(len(self.steps) - 1, self.learn(node)))

    def number(self, node: int, place: int) -> Dim:
        """A number that was read for a node."""
        name, stage = number_name(node, place), self.draft.stages[-1]
        self.draft.stages[-1] = replace(stage, symbols=stage.symbols | {name})
        return symbol(name)

    def is_plain(self, outlet: OutletId) -> bool:
        """Whether a tensor is there with its axes as its shape says."""
        return outlet in self._views or outlet in self.repeated or self._is_constant(outlet)

    def view(self, outlet: OutletId) -> View | None:
        """Where a tensor is; ``None`` where only the host can hold it."""
        if outlet not in self._views and self._is_constant(outlet):
            self._views[outlet] = self.constant(self.constant_array(outlet))
        if outlet in self.repeated and outlet not in self._views:
            source = self.repeated.pop(outlet).apart
            target = self.new(outlet).shaped(source.shape)
            assert target is not None  # new memory has no gaps
            self.steps.append(copy_step(source, target, self.isa, (outlet.node,)))
        elif outlet not in self._views:
            blocked, plain = self.blocked[outlet], self.new(outlet)
            held = plain if plain.element == blocked.view.element else self.like(plain, blocked.view.element)
            for out_of, into in blocked.form.parts(blocked.view, held):
                self.copy(out_of, into)
            if held is not plain:
                self.steps.append(convert_step(held, plain, self.isa, ()))
        return self._views[outlet]

    def known_view(self, outlet: OutletId) -> View:
        """Where a tensor is whose type kernels know: nodes with others are left to the host."""
        found = self.view(outlet)
        assert found is not None  # it was looked at when groups were decided on
        return found

    def constant(self, array: Array | None) -> View | None:
        """An array that is part of the program; ``None`` where native code cannot read its elements."""
        assert array is not None  # the callers asked
        element = self.element(DatumType.from_numpy(array.dtype))
        if element is None:
            return None
        constants, once = self.draft.constants, without_repeats(array)
        constants.append(once)
        found = View.contiguous(Storage(Kind.CONSTANT, len(constants) - 1), element, once.shape)
        return found if once is array else found.stretched(array.shape)

    def known_constant(self, array: Array) -> View:
        """The same, of elements that native code knows."""
        found = self.constant(array)
        assert found is not None  # the callers asked
        return found

    def made(self, shape: Sequence[Dim], element: ElementType, make: Callable[[Array], Array], source: Array) -> View:
        """An array that is part of the program, which another thread makes of one of the model; its shape and type.

        Raises LimitExceeded where it is much larger than that, and constants may not take so much.
        """
        take_bytes(prod(map(int, shape)) * element.bytes, source)
        constants = self.draft.constants
        constants.append(self.draft.makers.start(make, source))
        return View.contiguous(Storage(Kind.CONSTANT, len(constants) - 1), element, shape)

    def block_panels(self, outlet: OutletId, width: int) -> View:
        """Weights in blocks, in panels of so many columns: packed once for all that read them so."""
        key = outlet, width
        if key not in self._panels:
            weights = self.block_weights[outlet]
            packed = self.made(weights.shape(width), U8, lambda _: in_block_panels(weights, width), weights.source)
            self._panels[key] = packed
        return self._panels[key]

    def new(self, outlet: OutletId) -> View:
        """Memory for a tensor that a kernel is about to write: where it need not be copied from, as the layout says."""
        fact = self.model.outlet_fact(outlet)
        element = self.element(fact.datum_type.storage)
        assert element is not None  # who writes it knows its type
        found = View.contiguous(self.home(outlet), element, tuple(fact.shape))
        self._views[outlet] = found
        return found

    def home(self, outlet: OutletId) -> Storage:
        """The storage of a tensor without gaps, where the layout has it."""
        if outlet not in self._homes:
            fact, place = self.model.outlet_fact(outlet), self.layout.plain.get(outlet)
            size = fact.datum_type.storage.numpy.itemsize
            if isinstance(place, PartOf):
                self._homes[outlet] = self.draft.part(TensorPart(self.home(place.whole), place.offset, size))
            elif isinstance(place, SameAs):
                self._homes[outlet] = self.home(place.view)
            else:
                self._homes[outlet] = self.draft.room(product(fact.shape) * size)
        return self._homes[outlet]

    def room(self, size: Dim) -> Storage:
        """Memory of the arena, of so many bytes."""
        return self.draft.room(size)

    def place(self, outlet: OutletId, view: View) -> None:
        """A tensor is a view on another one."""
        self._views[outlet] = view

    def is_alone(self, outlet: OutletId) -> bool:
        """Whether the one node that reads a tensor may write to it, as nobody else sees the memory that it is in."""
        if (
            outlet in self.around
            or outlet in self.model.outputs
            or len({one.node for one in self.model.outlet(outlet).successors}) != 1
        ):
            return False
        roots = {one: self.places.root(view.storage).storage for one, view in self._seen()}
        root = roots.get(outlet)
        others = [one for one, storage in roots.items() if storage == root and one != outlet]
        return root is not None and root.kind in {Kind.ARENA, Kind.KEPT} and not others

    def _seen(self) -> list[tuple[OutletId, View]]:
        """All tensors with the places where they are."""
        plain = [(outlet, view) for outlet, view in self._views.items() if view is not None]
        plain += [(outlet, one.once) for outlet, one in self.repeated.items()]
        return [*plain, *((outlet, one.view) for outlet, one in [*self.blocked.items(), *self.wholes.items()])]

    def keep(self, node: int, keeping: Keeping, tensors: Sequence[tuple[ElementType, tuple[Dim, ...]]]) -> list[View]:
        """Memory for what a node keeps from turn to turn, where `why_not_kept` has nothing against it."""
        first = sum(len(one.tensors) for one in self.draft.kept)
        self.draft.kept.append(Kept(node, first, tuple(tensors), keeping))
        return [View.contiguous(Storage(Kind.KEPT, first + place), *one) for place, one in enumerate(tensors)]

    def at_end(self, step: NativeStep) -> None:
        """Have a call done behind all others: it makes what is kept ready for the next turn.

        Where a kernel refuses and the turn is done again, it has not been done yet. No step comes behind that sees
        what it does.
        """
        self.draft.last_steps.append(step)

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
        if node.binds:
            self._stage(node)

    def copy(self, source: View, target: View) -> None:
        """Add the call that copies a tensor to another place, for no node in particular."""
        self.steps.append(copy_step(source, target, self.isa, ()))

    def contiguous(self, view: View) -> View:
        """The same tensor without gaps: a copy where it may have some, one for all that ask."""
        if view.is_contiguous:
            return view
        key = view, view.element
        if key not in self._copies:
            target = self._copies[key] = self.like(view, view.element)
            self.copy(view, target)
        return self._copies[key]

    def converted(self, view: View, element: ElementType) -> View:
        """The same tensor with elements of a type: a copy where it has others, one for all that ask."""
        if view.element == element:
            return view
        key = view, element
        if key not in self._copies:
            target = self._copies[key] = self.like(view, element)
            self.steps.append(convert_step(view, target, self.isa, ()))
        return self._copies[key]

    def like(self, view: View, element: ElementType) -> View:
        """Memory for a tensor of the shape of another one, without gaps."""
        return View.contiguous(self.room(product(view.shape) * element.bytes), element, view.shape)

    def near(self, view: View) -> View:
        """The same tensor, with neighbours along the last axis side by side, or one element there: copied if need be.

        Axes that are stretched stay so.
        """
        if view.is_near:
            return view
        shape = tuple(1 if stride == 0 else size for size, stride in zip(view.shape, view.strides, strict=True))
        return self.contiguous(replace(view, shape=shape)).stretched(view.shape)

    def drafted(self) -> Drafted:
        """All steps, when all groups were lowered: outputs that are not where they belong are copied there."""
        outputs: list[View | None] = []
        for number, outlet in enumerate(self.model.outputs):
            view = self.view(outlet)
            home = Storage(Kind.OUTPUT, number)
            if view is not None and view.storage != home and view.storage.kind is not Kind.HOST:
                target = View.contiguous(home, view.element, view.shape)
                self.copy(view, target)
                view = target
            outputs.append(view)
        draft = self.draft
        return Drafted(
            steps=tuple(self.steps),
            last_steps=tuple(draft.last_steps),
            constants=draft.makers.finished(draft.constants, [*self.steps, *draft.last_steps]),
            arena=tuple(draft.arena),
            places=self.places,
            outputs=tuple(outputs),
            views=self._views,
            blocked=self.born_in_blocks,
            loops=tuple(draft.loops),
            inlined=tuple(draft.inlined),
            kept=tuple(draft.kept),
            stages=tuple(draft.stages),
            convs=tuple(draft.convs),
        )

    def _is_constant(self, outlet: OutletId) -> bool:
        return self.constant_array(outlet) is not None


@frozen
class Site:
    """A group that is about to be lowered. ``node``: the one that begins it."""

    lowering: Lowering
    node: HostNode
    group: CpuGroup

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

    def numbers(self, count: int) -> list[Dim] | None:
        """What is read of inputs in every run before the node is computed, as `READS` says; ``None`` in bodies."""
        if not self.lowering.read(self.node):
            return None
        return [self.lowering.number(self.node.node, place) for place in range(count)]

    def counted(self) -> Counted | None:
        """What was counted for the node in every run before it is computed, as `READS` says; ``None`` in bodies."""
        return self.lowering.counted[self.node.node] if self.lowering.read(self.node) else None

    def result(self) -> ElementType | None:
        """The type of the first output, where kernels know it."""
        return self.lowering.element(self.node.facts[0].datum_type.storage)

    def results(self) -> list[View]:
        """Memory for all outputs."""
        return [self.lowering.new(OutletId(self.node.node, slot)) for slot in range(len(self.node.facts))]

    def place(self, view: View) -> None:
        """The first output is a view on another tensor."""
        self.lowering.place(self.outlet, view)
        self.lowering.steps.append(ViewStep((self.node.node,), (view.storage,)))

    def place_in_blocks(self, blocked: Blocked) -> None:
        """The same, on a tensor in blocks of channels."""
        self.lowering.blocked[self.outlet] = self.lowering.born_in_blocks[self.outlet] = blocked
        self.lowering.steps.append(ViewStep((self.node.node,), (blocked.view.storage,)))

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
        self.lowering.steps.append(step)
