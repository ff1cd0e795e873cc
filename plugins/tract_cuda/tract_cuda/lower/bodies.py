"""Models inside of operators, whose launches become launches of the model around."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tract_llvm.language.types import U8
from tract_llvm.program.views import Address, Kind, Storage, View

from tract_core.dims import Dim
from tract_core.errors import TractError
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_cuda.compile import Chosen, after
from tract_cuda.lowering import Site
from tract_cuda.program import CudaProgram, Download, Hosted, Launch, Shown, Upload


class Unfit(Exception):
    """A body has something that kernels do not do; the text says what."""


@frozen
class Body:
    """A model with its program, none of which is done by the host."""

    model: TypedModel
    program: CudaProgram

    @staticmethod
    def of(site: Site, model: TypedModel, sizes: Mapping[str, Dim]) -> Body:
        """``sizes``: what its symbols are in the model around. Raises Unfit."""
        try:
            body = model.substitute(sizes)
            found = after("choose_kernels", body, replace(site.lowering.target, shows=False))
            assert isinstance(found, Chosen), "that is what this pass makes"
        except TractError as error:
            raise Unfit(f"in its body: {error.problem}") from None
        if any(condition.holds() != 1 for condition, _ in body.conditions):
            raise Unfit("its body is for some sizes only")
        hosted = next((step for step in found.program.steps if isinstance(step, Hosted)), None)
        if hosted is not None:
            raise Unfit(f"in its body, node {hosted.node.name!r}: {hosted.why}")
        return Body(body, found.program)

    def inside(self, site: Site) -> Inside:
        """It with memory in the model around."""
        storages: dict[Storage, Storage] = {}
        for number, size in enumerate(self.program.arena):
            storages[Storage(Kind.ARENA, number)] = site.lowering.scratch(U8, (size,)).storage
        for number, array in enumerate(self.program.constants):
            storages[Storage(Kind.CONSTANT, number)] = site.lowering.constant(array).storage
        return Inside(self, site, storages)


@frozen
class Inside:
    """A body with memory. ``storages``: what its own ones are in the model around."""

    body: Body
    site: Site
    storages: Mapping[Storage, Storage]

    def input(self, slot: int) -> View | None:
        """Where it reads an input; ``None`` where it reads none of it."""
        outlet = self.body.model.inputs[slot]
        steps = self.body.program.steps
        found = next((one.view for one in steps if isinstance(one, Upload) and one.outlet == outlet), None)
        return None if found is None else self._placed(found)

    def output(self, slot: int, inputs: Sequence[View]) -> View:
        """Where it leaves an output. ``inputs``: what it was given, which it may give again."""
        model = self.body.model
        outlet = model.outputs[slot]
        if outlet in model.inputs:
            return inputs[model.inputs.index(outlet)]
        steps = self.body.program.steps
        found = next((one.view for one in steps if isinstance(one, Download) and one.outlet == outlet), None)
        return self._placed(found) if found is not None else self._constant(outlet)

    def add(self) -> None:
        """Add its launches once."""
        for step in self.body.program.steps:
            assert not isinstance(step, Hosted | Shown)  # it was looked at
            if isinstance(step, Launch):
                arguments = tuple(self._address(one) if isinstance(one, Address) else one for one in step.arguments)
                writes = tuple(self.storages.get(one, one) for one in step.writes)
                moved = replace(step, arguments=arguments, writes=writes, nodes=self.site.group.nodes)
                self.site.lowering.steps.append(moved)

    def _placed(self, view: View) -> View:
        return replace(view, storage=self.storages.get(view.storage, view.storage))

    def _address(self, one: Address) -> Address:
        return replace(one, storage=self.storages.get(one.storage, one.storage))

    def _constant(self, outlet: OutletId) -> View:
        array = self.body.model.outlet_fact(outlet).constant
        assert array is not None, "what no step gives is part of the model"
        return self.site.lowering.constant(array)
