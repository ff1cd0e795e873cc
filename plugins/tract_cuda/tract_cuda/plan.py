"""A model, compiled for a device, with its weights there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from tract_core.model.session import BodyPlan
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import STATE, Array
from tract_core.runtime.explain import Explanation, Placement
from tract_core.runtime.host import Bodies
from tract_core.runtime.observed import ObservedState
from tract_core.runtime.parts import BodyPath, bodies_within
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.runtime.protocol import Observer, Timing
from tract_cuda.binding import BoundLaunch
from tract_cuda.compile import ALIGNMENT, compiled
from tract_cuda.driver.device import Device, Function, Stream
from tract_cuda.kernels.kernel import KernelPlan
from tract_cuda.lowering import Target
from tract_cuda.program import Hosted, Launch, Repeat, launches_in
from tract_cuda.program_text import kernels_text
from tract_cuda.ptx import ptx_for
from tract_cuda.segments import Segment, dying_after, may_refuse, pieces_of
from tract_cuda.state import CudaState
from tract_cuda.there import turn_there
from tract_cuda.timing import timings


class CudaPlan(TypedSimplePlan):
    """Immutable: many threads may spawn states from it, which share the weights."""

    def __init__(self, model: TypedModel, device: Device, target: Target) -> None:
        """Raises Unsupported where an operator has neither a kernel nor a NumPy meaning, RunError without memory."""
        found = compiled(model, target)
        super().__init__(found.model)
        self.device, self.target = device, target
        self.groups, self.program, self.arena = found.groups, found.program, found.arena
        self.pieces = list(pieces_of(self.program.steps))
        self.dying = dying_after(self.pieces, self.outputs)
        self.segments = sum(isinstance(piece, Segment) for piece in self.pieces)
        self.may_refuse = any(isinstance(piece, Segment) and may_refuse(piece) for piece in self.pieces)
        self.symbols = sorted(self.program.symbols())
        self.bodies = Bodies(lambda body: CudaPlan(body, device, target))
        self.function = cache(self._function)
        for step in launches_in(self.program.steps):
            self.function(step.kernel, False)
        self._weights, self.constant_addresses = self._uploaded()

    def spawn(self) -> CudaState:
        """A fresh state."""
        return CudaState(self)

    def repeat(self, inputs: Any, out: Any = None) -> list[Any] | None:
        """A turn on a fresh state with arrays that lie on the device, by `Repeating`; ``None`` without any."""
        return None if turn_there(self, inputs, out) is None else self.spawn().repeat(inputs, out)

    def spawn_with(self, plan_of: Callable[[TypedModel], BodyPlan]) -> CudaState:
        """A fresh state, whose operators ask ``plan_of`` who runs their bodies."""
        return CudaState(self, plan_of)

    def spawn_observed(self, observe: Observer) -> ObservedState:
        """A fresh state, in whose turns ``observe`` sees what each group gives, on the host, and may exchange it."""
        return ObservedState(self.shown().spawn(), observe)

    def timed_run(self, inputs: Sequence[Array]) -> list[Timing]:
        """One turn on a fresh state, and how long each group took, without copies to the device and back."""
        return timings(self, inputs)

    def shown(self) -> CudaPlan:
        """The plan of the same model whose states show what each group gives."""
        return CudaPlan(self.model, self.device, replace(self.target, shows=True))

    def explain(self) -> Explanation:
        """Which kernels compute which nodes, and what is left to the host, with the reason; those of bodies too."""
        found: list[Placement] = []
        for path, body in bodies_within(self.model):
            plan = self.bodies(body) if path else self
            assert isinstance(plan, CudaPlan), "that is what bodies are made into"
            found += plan.placements(path, self.model)
        return Explanation("cuda", tuple(found))

    def launch(self, stream: Stream, bound: BoundLaunch) -> None:
        """Launch a kernel with its numbers."""
        stream.launch(self.function(bound.step.kernel, bound.wide), bound.grid, bound.arguments())

    def _function(self, kernel: KernelPlan, wide: bool) -> Function:
        return self.device.function(ptx_for(kernel, self.target.arch, wide=wide))

    def _uploaded(self) -> tuple[Any, dict[int, int]]:
        """All weights that kernels read in one piece of memory of the device, and where each is, by its number."""
        arrays = {number: np.ascontiguousarray(one) for number, one in self.program.read_constants().items()}
        places, end = dict[int, int](), 0
        for number, array in arrays.items():
            places[number] = end
            end += -(-array.nbytes // ALIGNMENT) * ALIGNMENT
        memory = self.device.allocate(end)
        for number, array in arrays.items():
            if array.nbytes:
                self.device.write(memory.address + places[number], array)
        return memory, {number: memory.address + place for number, place in places.items()}

    def hosted(self) -> dict[int, str]:
        """The nodes that are left to the host, each with the reason."""
        return {piece.node.node: piece.why for piece in self.pieces if isinstance(piece, Hosted)}

    def placements(self, body: BodyPath, whole: TypedModel) -> Iterator[Placement]:
        """Where its nodes run. ``body``: the way to it from the model ``whole``."""
        hosted = self.hosted()
        launched: dict[int, list[str]] = {}
        for step in self.program.steps:
            if isinstance(step, Launch | Repeat) and step.nodes:
                launched.setdefault(step.nodes[0], []).append(kernels_text(step))
        for group in self.groups:
            first = group.nodes[0]
            if first in hosted:
                kind = type(self.model.nodes[first].op)
                how = "numpy" if self.model.registry[STATE].find(kind) is None else "state"
                yield Placement.of(whole, group.nodes, "cpu", how, hosted[first], body=body)
            else:
                kernels = ", ".join(launched.get(first, ())) or "it lies in what is there"
                yield Placement.of(whole, group.nodes, self.device.name, group.kind, kernels, body=body)
