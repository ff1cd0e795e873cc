"""A model made ready for MLX: its pieces, and its weights on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import mlx.core as mx
import numpy as np

from tract_core.model.graph import OutletId
from tract_core.model.session import BodyPlan
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import STATE, Array
from tract_core.runtime.explain import Explanation, Placement
from tract_core.runtime.host import Bodies
from tract_core.runtime.observed import ObservedState
from tract_core.runtime.parts import BodyPath, bodies_within
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.runtime.protocol import Observer, Timing
from tract_core.runtime.stopwatch import timed_run
from tract_metal.compile import MetalTarget, compiled
from tract_metal.device import MetalDevice
from tract_metal.elements import to_mlx
from tract_metal.functions import Functions
from tract_metal.segments import Hosted, Segment, dying_after
from tract_metal.state import MetalState


class MetalPlan(TypedSimplePlan):
    """Immutable: many threads may spawn states from it, which share the weights."""

    def __init__(self, model: TypedModel, device: MetalDevice, target: MetalTarget | None = None) -> None:
        """Raises Unsupported where an operator has neither a way in MLX nor a NumPy meaning."""
        super().__init__(model)
        self.device, self.target = device, target or MetalTarget()
        found = compiled(model, self.target)
        self.placed, self.pieces = found.placed, found.pieces
        self.dying = dying_after(self.pieces, self.outputs)
        self.keeping = {one.group.nodes[0]: one.keeping for one in self.placed if one.keeping is not None}
        """How the nodes are computed that keep something on the device."""
        self.hosts_states = any(isinstance(one, Hosted) and one.node.state is not None for one in self.pieces)
        self.bodies = Bodies(lambda body: MetalPlan(body, device))
        self.functions = Functions(model, len(self.pieces), compiles=device.compiles)
        self._on_device: dict[OutletId, mx.array] = {}
        self._weights: dict[int, list[mx.array]] = {}

    def weights_of(self, segment: Segment) -> list[mx.array]:
        """The tensors of a segment that are part of the model, on the device: copied there when first wanted."""
        found = self._weights.get(segment.number)
        if found is None:
            arrays = [self._weight(outlet) for outlet in segment.weights]
            mx.eval(arrays)
            found = self._weights[segment.number] = arrays
        return found

    def _weight(self, outlet: OutletId) -> mx.array:
        found = self._on_device.get(outlet)
        if found is None:
            found = self._on_device[outlet] = to_mlx(np.ascontiguousarray(self.constants[outlet]))
        return found

    def spawn(self) -> MetalState:
        """A fresh state."""
        return MetalState(self)

    def spawn_with(self, plan_of: Callable[[TypedModel], BodyPlan]) -> MetalState:
        """A fresh state, whose operators ask ``plan_of`` who runs their bodies."""
        return MetalState(self, plan_of)

    def spawn_observed(self, observe: Observer) -> ObservedState:
        """A fresh state, in whose turns ``observe`` sees what each group gives, in NumPy, and may exchange it."""
        return ObservedState(self.shown().spawn(), observe)

    def timed_run(self, inputs: Sequence[Array]) -> list[Timing]:
        """One turn on a fresh state, and how long each group took when it is computed by itself."""
        plan = self.shown()
        plan.spawn().run(inputs)  # MLX compiles its kernels when they first run
        return timed_run(plan, inputs)

    def shown(self) -> MetalPlan:
        """The plan of the same model whose states show what each group gives."""
        return MetalPlan(self.model, self.device, replace(self.target, shows=True))

    def explain(self) -> Explanation:
        """Which nodes MLX computes, and what is left to the host, with the reason; those of bodies too."""
        found: list[Placement] = []
        for path, body in bodies_within(self.model):
            plan = self.bodies(body) if path else self
            assert isinstance(plan, MetalPlan), "that is what bodies are made into"
            found += plan.placements(path, self.model)
        return Explanation("metal", tuple(found))

    def placements(self, body: BodyPath, whole: TypedModel) -> Iterator[Placement]:
        """Where its nodes run. ``body``: the way to it from the model ``whole``."""
        for one in self.placed:
            nodes = one.group.nodes
            if one.why is None:
                yield Placement.of(
                    whole, nodes, f"mlx:{self.device.name}", one.group.kind, "MLX computes it", body=body
                )
            else:
                how = (
                    "numpy" if self.model.registry[STATE].find(type(self.model.nodes[nodes[0]].op)) is None else "state"
                )
                yield Placement.of(whole, nodes, "cpu", how, one.why, body=body)

    @property
    def hosted(self) -> dict[int, str]:
        """The nodes that are left to the host, each with the reason."""
        return {piece.node.node: piece.why for piece in self.pieces if isinstance(piece, Hosted)}
