"""Models inside of operators, whose launches become launches of the model around."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tract_llvm.language.types import U8
from tract_llvm.program.storages import Address, Kind, Storage
from tract_llvm.program.views import View

from tract_core.dims import Dim, exact_div, product
from tract_core.errors import TractError
from tract_core.frozen import frozen
from tract_core.model.typed import TypedModel
from tract_cuda.compile import Chosen, after
from tract_cuda.language.arch import ACCESS_BYTES
from tract_cuda.lowering import Site, Within
from tract_cuda.maps import is_multiple
from tract_cuda.program import CudaProgram, Download, Hosted, Launch, Repeat, Work


class Unfit(Exception):
    """A body has something that kernels do not do; the text says what."""


@frozen
class Body:
    """A model with its program, none of which is done by the host. ``inputs``: where it finds its inputs."""

    model: TypedModel
    program: CudaProgram
    inputs: tuple[View, ...]

    @staticmethod
    def of(
        site: Site, model: TypedModel, sizes: Mapping[str, Dim], inputs: Sequence[View], *, repeated: bool = False
    ) -> Body:
        """``sizes``: what its symbols are in the model around; ``repeated``: whether it is done in a loop.

        Raises Unfit.
        """
        target = site.lowering.target
        try:
            body = model.substitute(sizes)
            within = Within(_as_inputs(body, inputs), target.within.loops + repeated)
            found = after("choose_kernels", body, replace(target, shows=False, within=within))
            assert isinstance(found, Chosen), "that is what this pass makes"
        except TractError as error:
            raise Unfit(f"in its body: {error.problem}") from None
        if any(condition.holds() != 1 for condition, _ in found.model.conditions):
            raise Unfit("its body is for some sizes only")
        hosted = next((step for step in found.program.steps if isinstance(step, Hosted)), None)
        if hosted is not None:
            raise Unfit(f"in its body, node {hosted.node.name!r}: {hosted.why}")
        assert not found.program.kept, "bodies keep nothing"
        return Body(found.model, found.program, tuple(inputs))

    def inside(self, site: Site, targets: Mapping[int, View]) -> Inside:
        """It with memory in the model around.

        ``targets``: for outputs, by slot, where to write them straight away, if that can be. Of two for one tensor,
        the first one counts.
        """
        storages: dict[Storage, Address] = {}
        for slot, target in targets.items():
            own = self._own_storage(slot)
            if own is not None and own not in storages and _takes(target):
                storages[own] = target.address
        for number, size in enumerate(self.program.arena):
            own = Storage(Kind.ARENA, number)
            if own not in storages:
                storages[own] = Address(site.lowering.scratch(U8, (size,)).storage)
        for number, array in self.program.read_constants().items():
            storages[Storage(Kind.CONSTANT, number)] = Address(site.lowering.constant(array).storage)
        for slot, view in enumerate(self.inputs):
            storages[Storage(Kind.INPUT, slot)] = Address(view.storage)
        return Inside(self, site, storages)

    def left(self, slot: int) -> View | None:
        """Where it leaves an output; ``None`` for a constant."""
        steps = (one for one in self.program.steps if isinstance(one, Download))
        return next((one.view for one in steps if one.outlet == self.model.outputs[slot]), None)

    def _own_storage(self, slot: int) -> Storage | None:
        """The storage that an output has for itself, if there is one."""
        view = self.left(slot)
        if view is None or view.storage.kind is not Kind.ARENA or view.offset != 0 or not view.is_contiguous:
            return None
        whole = product(view.shape) * view.element.bytes == self.program.arena[view.storage.number]
        return view.storage if whole else None


def _as_inputs(body: TypedModel, inputs: Sequence[View]) -> tuple[View, ...]:
    """Where the inputs lie, of the sizes that the body says, in storages that only the body knows."""
    shapes = [tuple(body.outlet_fact(outlet).shape) for outlet in body.inputs]
    return tuple(
        replace(view, storage=Storage(Kind.INPUT, slot), shape=shape)
        for slot, (view, shape) in enumerate(zip(inputs, shapes, strict=True))
    )


def _takes(target: View) -> bool:
    """Whether kernels that write to the begin of a storage may write there, in vectors too."""
    return target.is_contiguous and is_multiple(target.address.offset, ACCESS_BYTES)


@frozen
class Inside:
    """A body with memory. ``storages``: where its own ones begin in the model around."""

    body: Body
    site: Site
    storages: Mapping[Storage, Address]

    def output(self, slot: int) -> View:
        """Where it leaves an output."""
        view = self.body.left(slot)
        if view is None:
            array = self.body.model.outlet_fact(self.body.model.outputs[slot]).constant
            assert array is not None, "what no step gives is part of the model"
            return self.site.lowering.constant(array)
        moved = self._address(view.address)
        offset = exact_div(moved.offset, view.element.bytes)
        assert offset is not None, "tensors begin at multiples of their elements"
        return replace(view, storage=moved.storage, offset=offset)

    def add(self) -> None:
        """Add its launches."""
        for step in self.body.program.steps:
            if isinstance(step, Launch | Repeat):
                self.site.lowering.steps.append(self._moved(step))

    def deliver(self, targets: Mapping[int, Sequence[View]]) -> None:
        """Add copies of its outputs, by slot, to where they are not yet."""
        for slot, views in targets.items():
            for target in views:
                source = self.output(slot)
                if (source.storage, source.offset) != (target.storage, target.offset):
                    self.site.lowering.copy(source, target, self.site.group.nodes)

    def _moved(self, step: Work) -> Work:
        nodes = self.site.group.nodes
        if isinstance(step, Repeat):
            return replace(step, steps=tuple(map(self._moved, step.steps)), nodes=nodes)
        arguments = tuple(self._address(one) if isinstance(one, Address) else one for one in step.arguments)
        writes = tuple(self._address(Address(one)).storage for one in step.writes)
        return replace(step, arguments=arguments, writes=writes, nodes=nodes)

    def _address(self, one: Address) -> Address:
        found = self.storages.get(one.storage)
        return one if found is None else Address(found.storage, found.offset + one.offset)
