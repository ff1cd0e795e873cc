"""What one execution has: functions of MLX for sizes seen before, and what operators keep between turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import mlx.core as mx
import numpy as np

from tract_core.errors import RunError, TractError
from tract_core.limits import check_run_time
from tract_core.model.graph import OutletId
from tract_core.model.session import BodyPlan
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_core.runtime.parts import Part
from tract_core.runtime.plan import TypedFrozenSimpleState, TypedSimplePlan, TypedSimpleState
from tract_core.runtime.protocol import Observer
from tract_metal.elements import to_mlx, to_numpy
from tract_metal.segments import Hosted, Segment

if TYPE_CHECKING:
    from tract_metal.plan import MetalPlan


class Refused(Exception):
    """A function found that the turn is wrong, as an index is beyond its axis."""


class Tensors:
    """The tensors of one turn: in NumPy, on the device, or both. Each is copied once, when first wanted."""

    def __init__(self, in_numpy: Mapping[OutletId, Array]) -> None:
        self._in_numpy, self._on_device = dict(in_numpy), dict[OutletId, mx.array]()

    def put(self, given: Mapping[OutletId, Array]) -> None:
        """Tensors that the host computed."""
        self._in_numpy.update(given)
        for outlet in given:
            self._on_device.pop(outlet, None)

    def put_on_device(self, given: Mapping[OutletId, mx.array]) -> None:
        """Tensors that MLX computes."""
        self._on_device.update(given)

    def in_numpy(self, outlet: OutletId) -> Array:
        """A tensor in NumPy."""
        if outlet not in self._in_numpy:
            self._in_numpy[outlet] = to_numpy(self._on_device[outlet])
        return self._in_numpy[outlet]

    def on_device(self, outlet: OutletId) -> mx.array:
        """A tensor on the device."""
        if outlet not in self._on_device:
            self._on_device[outlet] = to_mlx(self._in_numpy[outlet])
        return self._on_device[outlet]

    def forget(self, outlets: Sequence[OutletId]) -> None:
        """Nobody needs these any more."""
        for outlet in outlets:
            self._in_numpy.pop(outlet, None)
            self._on_device.pop(outlet, None)


LOST: Final = "what this state kept is lost, as MLX failed while it wrote to it"


class MetalState(TypedSimpleState):
    """One execution. Used by one thread at a time.

    ``_kept``: what nodes keep, as of the turn before; ``_keeps``: the same while a turn goes on. MLX writes to memory
    in place where nobody else holds it: what is kept is let go of once nothing can refuse the turn any more. ``_lost``:
    whether the turn failed even then.
    """

    plan: MetalPlan

    def __init__(self, plan: MetalPlan, plan_of: Callable[[TypedModel], BodyPlan] | None = None) -> None:
        super().__init__(plan, plan_of)
        self._kept: dict[int, list[mx.array]] = {}
        self._keeps: dict[int, list[mx.array]] = {}
        self._lost = False

    def run(
        self,
        inputs: Sequence[Array],
        out: Sequence[Array] | None = None,
        *,
        symbols: Mapping[str, int] | None = None,
        observe: Observer | None = None,
    ) -> list[Array]:
        """One turn: see `PlanState.run`.

        Raises InputError when the arrays do not fit, RunError, with its name, when a node fails, and where MLX failed
        in a turn before so that nothing is left of what was kept.
        """
        plan, turn = self.plan, self.plan.turn
        self._check_there()
        turn.begin(self._host, inputs, out, symbols)
        tensors = Tensors({**plan.constants, **dict(zip(plan.inputs, inputs, strict=True))})
        hosted = super().freeze().states if plan.hosts_states else {}
        self._keeps = dict(self._kept)
        try:
            with turn.going(self._host), plan.device.computing():
                for piece, dying in zip(plan.pieces, plan.dying, strict=True):
                    check_run_time()
                    self._do(piece, tensors, observe)
                    tensors.forget([outlet for outlet in dying if outlet not in plan.constants])
                outputs = [tensors.in_numpy(outlet) for outlet in plan.outputs]
        except Refused:
            raise self._reason(inputs, symbols, hosted) from None
        self._kept, self._lost = self._keeps, False
        return outputs if out is None else turn.outputs.fill(out, outputs)

    def reset(self) -> None:
        """Back to a fresh state."""
        super().reset()
        self._kept, self._lost = {}, False

    def freeze(self) -> TypedFrozenSimpleState:
        """A snapshot, in NumPy, as the node executor would give it. Raises RunError where MLX lost what was kept."""
        self._check_there()
        return TypedFrozenSimpleState({**super().freeze().states, **self._frozen()})

    def _frozen(self) -> dict[int, Any]:
        """What nodes keep on the device, as the node executor would freeze it."""
        return {
            node: self.plan.keeping[node].frozen([to_numpy(one) for one in arrays])
            for node, arrays in self._kept.items()
        }

    def _check_there(self) -> None:
        if self._lost:
            raise RunError(LOST, hint="reset the state, or go on from a snapshot")

    def thaw(self, frozen: TypedFrozenSimpleState) -> None:
        """Go back to a snapshot of a state of the same model."""
        here = {node: content for node, content in frozen.states.items() if node in self.plan.keeping}
        others = {node: content for node, content in frozen.states.items() if node not in here}
        super().thaw(TypedFrozenSimpleState(others))
        self._kept, self._lost = {}, False
        for node, content in here.items():
            arrays = self.plan.keeping[node].thawed(content)
            if arrays is not None:
                self._kept[node] = [to_mlx(np.ascontiguousarray(one)) for one in arrays]

    def _do(self, piece: Segment | Hosted, tensors: Tensors, observe: Observer | None) -> None:
        if isinstance(piece, Hosted):
            nodes, outlets = (piece.node.node,), self._hosted(piece, tensors)
        else:
            ends = observe is None and piece is self.plan.pieces[-1]
            nodes, outlets = piece.groups[-1].nodes, self._on_device(piece, tensors, ends=ends)
        if observe is not None:
            shown = {outlet: tensors.in_numpy(outlet) for outlet in outlets}
            tensors.put(dict(observe(Part(nodes), shown) or {}))

    def _hosted(self, piece: Hosted, tensors: Tensors) -> Sequence[OutletId]:
        node = piece.node
        outputs = node.run(self._host, [tensors.in_numpy(outlet) for outlet in node.inputs])
        if node.binds:
            self.plan.turn.check_after(node, self._host.session.symbols)
        given = {OutletId(node.node, slot): array for slot, array in enumerate(outputs)}
        tensors.put(given)
        return list(given)

    def _on_device(self, segment: Segment, tensors: Tensors, *, ends: bool) -> Sequence[OutletId]:
        """``ends``: whether nothing is done behind it that may refuse the turn."""
        shapes = {node: [one.shape for one in self._kept[node]] for node in segment.keeps if node in self._kept}
        function = self.plan.functions.of(segment, self._host.session.symbols, shapes)
        given = function.function(*self._arguments(segment, tensors))
        if not shapes:  # nothing is written to, so that all of it is computed at once
            mx.eval(given)
        if function.recorded.refuses and given.pop().item():
            raise Refused
        if ends:
            self._let_go(segment)
        mx.eval(given)
        found = iter(given)
        tensors.put_on_device({outlet: next(found) for outlet in segment.gives})
        self._keeps |= {node: [next(found) for _ in range(count)] for node, count in function.recorded.keeps.items()}
        return segment.gives

    def _arguments(self, segment: Segment, tensors: Tensors) -> list[mx.array]:
        """What a segment's function takes: what it reads, weights, and what nodes kept."""
        kept = [array for node in segment.keeps for array in self._kept.get(node, ())]
        return [*map(tensors.on_device, segment.reads), *self.plan.weights_of(segment), *kept]

    def _let_go(self, segment: Segment) -> None:
        """Hold no array any more that MLX could write to."""
        for node in segment.keeps:
            self._lost |= self._kept.pop(node, None) is not None
            self._keeps.pop(node, None)

    def _reason(
        self, inputs: Sequence[Array], symbols: Mapping[str, int] | None, hosted: Mapping[int, Any]
    ) -> TractError:
        """What the node executor says of a turn that a function of MLX found to be wrong.

        ``hosted``: what operators had kept in NumPy when it began.
        """
        state = TypedSimplePlan(self.plan.model).spawn()
        state.thaw(TypedFrozenSimpleState({**hosted, **self._frozen()}))
        try:
            state.run(inputs, symbols=symbols)
        except TractError as error:
            return error
        return RunError("MLX refused to do a turn, which the node executor did without an error")
