"""What one execution has: memory of the device, a stream, graphs of what was done for sizes seen before."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from tract_llvm.language.types import numpy_type
from tract_llvm.program.storages import Kind, Storage

from tract_core.dims import evaluate
from tract_core.errors import RunError, TractError
from tract_core.limits import check_room, check_run_time
from tract_core.model.graph import OutletId
from tract_core.model.session import BodyPlan
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_core.runtime.held import Held, owners_of
from tract_core.runtime.parts import Part
from tract_core.runtime.plan import TypedFrozenSimpleState, TypedSimplePlan, TypedSimpleState
from tract_core.runtime.protocol import Observer
from tract_cuda.arrays import DeviceArray
from tract_cuda.binding import bound_launches, count_of, stage_bytes
from tract_cuda.driver.device import Memory, Pinned, Stream
from tract_cuda.driver.library import DriverError
from tract_cuda.graphs import Ready, ReadySegments, Uncaptured
from tract_cuda.kept import KeptOnDevice
from tract_cuda.program import Download, Hosted, Launch, Repeat, Shown, Upload, Work
from tract_cuda.segments import Segment, may_refuse
from tract_cuda.there import NO_ENDS, Ends, ends_of, stand_ins, turn_there

if TYPE_CHECKING:
    from tract_cuda.plan import CudaPlan

MOST_NODES: Final = 1 << 15
"""How many launches are captured in one graph. Where there are more, they are put into the stream in each turn."""

_CHECKED: Final = 1 << 8
"""After how many launches of a loop somebody looks whether there is still time."""

_PAGE: Final = 4096
"""Bytes at multiples of which memory of the host is had."""

_STATUS_BYTES: Final = 4


class Refused(Exception):
    """A kernel refused to do its work."""


class CudaState(TypedSimpleState):
    """One execution. Used by one thread at a time; several run at once, each on its own stream."""

    plan: CudaPlan

    def __init__(self, plan: CudaPlan, plan_of: Callable[[TypedModel], BodyPlan] | None = None) -> None:
        super().__init__(plan, plan_of)
        self._stream: Stream | None = None
        self._arenas: dict[int, Memory] = {}
        self._said: tuple[Memory, Pinned] | None = None
        self._kept = KeptOnDevice(plan.device, plan.program.kept)
        self._ready = ReadySegments()

    def run(
        self,
        inputs: Sequence[Array],
        out: Sequence[Array] | None = None,
        *,
        symbols: Mapping[str, int] | None = None,
        observe: Observer | None = None,
    ) -> list[Array]:
        """One turn: see `PlanState.run`.

        Raises InputError when the arrays do not fit, RunError, with its name, when a node fails.
        """
        plan, turn = self.plan, self.plan.turn
        before = self._host.freeze() if plan.may_refuse else {}
        turn.begin(self._host, inputs, out, symbols)
        self._prepare()
        values: dict[OutletId, Array] = {**plan.constants, **dict(zip(plan.inputs, inputs, strict=True))}
        try:
            outputs = self._outputs(inputs, values, observe)
        except Refused:
            self._host.thaw(before, [step.host for step in plan.steps])
            raise self._reason(inputs, symbols) from None
        self._kept.finish(self._host.session.symbols)
        return outputs if out is None else turn.outputs.fill(out, outputs)

    def repeat(self, inputs: Any, out: Any = None) -> list[Any] | None:
        """A turn with arrays that lie on the device, by `Repeating`; ``None``, and nothing done, without any."""
        turn = turn_there(self.plan, inputs, out)
        if turn is None:
            return None
        plan = self.plan
        sources, targets = turn.seen(self._its_stream())
        plan.turn.begin(self._host, stand_ins(turn.inputs, sources), stand_ins(turn.out, targets) or None)
        self._prepare()
        ends = {**ends_of(Upload, plan.inputs, sources), **ends_of(Download, plan.outputs, targets)}
        try:
            with plan.turn.going(self._host):
                check_run_time()
                found = self._on_device(turn.segment, dict(zip(plan.inputs, turn.inputs, strict=True)), ends)
        except Refused:
            raise self._reason([np.asarray(one) for one in turn.on_host(sources)], None) from None
        self._kept.finish(self._host.session.symbols)
        if turn.out is None:
            return [found[outlet] for outlet in plan.outputs]
        for outlet, array in zip(plan.outputs, turn.out, strict=True):
            if outlet in found:
                np.copyto(array, found[outlet])
        return list(turn.out)

    def _outputs(self, inputs: Sequence[Array], values: dict[OutletId, Array], observe: Observer | None) -> list[Array]:
        plan = self.plan
        with plan.turn.going(self._host) as budget:
            held = Held(budget.room, plan.owners, owners_of(inputs))
            for piece, dying in zip(plan.pieces, plan.dying, strict=True):
                check_run_time()
                if isinstance(piece, Shown):
                    shown = {outlet: values[outlet] for outlet in piece.outlets}
                    given = dict(observe(Part(piece.nodes), shown) or {}) if observe is not None else {}
                elif isinstance(piece, Hosted):
                    given = self._hosted(piece, values)
                else:
                    given = self._on_device(piece, values)
                values.update(given)
                for array in given.values():
                    held.take(array)
                for outlet in dying:
                    if outlet not in plan.constants:
                        held.let_go(values.pop(outlet))
        return [values[outlet] for outlet in plan.outputs]

    def _reason(self, inputs: Sequence[Array], symbols: Mapping[str, int] | None) -> TractError:
        """What the node executor says of a turn in which a kernel refused, from what was kept when it began."""
        state = TypedSimplePlan(self.plan.model).spawn()
        state.thaw(self.freeze())
        try:
            state.run(inputs, symbols=symbols)
        except TractError as error:
            return error
        return RunError("a kernel refused to do its work, which the node executor did without an error")

    def _hosted(self, piece: Hosted, values: Mapping[OutletId, Array]) -> dict[OutletId, Array]:
        node = piece.node
        outputs = node.run(self._host, [values[outlet] for outlet in node.inputs])
        if node.binds:
            self.plan.turn.check_after(node, self._host.session.symbols)
        return {OutletId(node.node, slot): array for slot, array in enumerate(outputs)}

    def _on_device(
        self, segment: Segment, values: Mapping[OutletId, Array], ends: Ends = NO_ENDS
    ) -> dict[OutletId, Array]:
        ready = self._ready_for(segment, ends)
        for outlet, place in ready.uploads:
            np.copyto(place, values[outlet])
        stream = self._its_stream()
        ready.work.launch(stream)
        stream.synchronize()
        if ready.status is not None and ready.status.any():
            raise Refused
        return {outlet: place.copy() for outlet, place in ready.downloads}

    # ---- what is kept

    def reset(self) -> None:
        """Back to a fresh state."""
        super().reset()
        self._kept.reset()

    def freeze(self) -> TypedFrozenSimpleState:
        """A snapshot that can be pickled, and thawed by the node executor too."""
        return TypedFrozenSimpleState({**self._host.freeze(), **self._kept.freeze()})

    def thaw(self, frozen: TypedFrozenSimpleState) -> None:
        """Go back to a snapshot of a state of the same model."""
        super().thaw(TypedFrozenSimpleState(self._kept.thaw(frozen.states)))

    def _prepare(self) -> None:
        """Have memory for what is kept; where that moves, what was made for the old one is gone."""
        if self._kept.prepare(self._host.session.symbols):
            self._ready.forget()

    # ---- for sizes

    def _symbols(self) -> dict[str, int]:
        """Sizes, and what is counted from turn to turn."""
        return {**self._host.session.symbols, **self._kept.counts}

    def _its_stream(self) -> Stream:
        if self._stream is None:
            self._stream = self.plan.device.stream()
        return self._stream

    def _ready_for(self, segment: Segment, ends: Ends) -> Ready:
        """The segment for the sizes of now, and arrays on the device: made, or kept from a turn with the same."""
        known = self._symbols()
        places = ((*end, one.address) for end, one in ends.items())
        sizes = (*(known.get(one) for one in self.plan.symbols), *places)
        found = self._ready.find(segment.number, sizes)
        if found is None:
            addresses = self._addresses(segment.stage, known)
            found = self._made(segment, addresses, known, ends)
            self._ready.put(segment.number, sizes, found)
        return found

    def _addresses(self, last: int, symbols: Mapping[str, int]) -> dict[Storage, int]:
        """Where all storages lie whose sizes are known by a stage."""
        found = {Storage(Kind.CONSTANT, n): address for n, address in self.plan.constant_addresses.items()}
        found[Storage(Kind.STATUS, 0)] = self._status()[0].address
        found |= self._kept.addresses()
        for stage in range(last + 1):
            size, places = stage_bytes(self.plan.arena, stage, symbols)
            memory = self._arena(stage, size)
            found |= {Storage(Kind.ARENA, number): memory.address + place for number, place in places.items()}
        return found

    def _arena(self, stage: int, size: int) -> Memory:
        """The memory of a stage, at least so large. Where it grows, what was made for the old one is gone."""
        memory = self._arenas.get(stage)
        if memory is None or memory.size < size:
            check_room(size)
            self._ready.forget()
            before = None if memory is None else memory.size
            if memory is not None:
                self._its_stream().synchronize()
                del self._arenas[stage], memory
            memory = self._arenas[stage] = self._allocated(size, size if before is None else before + before // 4)
        return memory

    def _allocated(self, size: int, better: int) -> Memory:
        """Memory of so many bytes, or of more, so that what grows bit by bit does not move each time."""
        if better > size:
            with suppress(DriverError):
                return self.plan.device.allocate(better)
        return self.plan.device.allocate(size)

    def _status(self) -> tuple[Memory, Pinned]:
        """Where kernels say that they refuse to do their work, on the device and on the host."""
        if self._said is None:
            self._said = self.plan.device.allocate(_STATUS_BYTES), self.plan.device.pinned(_STATUS_BYTES)
        return self._said

    def _made(
        self, segment: Segment, addresses: Mapping[Storage, int], symbols: Mapping[str, int], ends: Ends
    ) -> Ready:
        stream, copies = self._its_stream(), dict[OutletId, tuple[Pinned, Array]]()
        before = self._ready.take(segment.number)
        for step in segment.steps:
            if isinstance(step, Upload | Download) and (type(step), step.outlet) not in ends:
                copies[step.outlet] = self._pinned_for(step, symbols, {} if before is None else before.pinned)
        status = self._status() if may_refuse(segment) else None
        put = partial(self._put, segment, copies, addresses, dict(symbols), ends)
        launches = count_of(segment.steps, symbols)
        if launches > MOST_NODES:
            work = Uncaptured(put)
        else:
            with stream.capture(None if before is None else before.graph) as capture:
                put()
            work = capture.graph
        said = None if status is None else status[1].array(np.dtype(np.int32), (1,))
        of = {
            kind: tuple((one, copies[one][1]) for one in _outlets(segment, kind) if (kind, one) not in ends)
            for kind in (Upload, Download)
        }
        return Ready(
            work, of[Upload], of[Download], {one: pinned for one, (pinned, _) in copies.items()}, said, launches
        )

    def _put(
        self,
        segment: Segment,
        copies: Mapping[OutletId, tuple[Pinned, Array]],
        addresses: Mapping[Storage, int],
        symbols: Mapping[str, int],
        ends: Ends,
    ) -> None:
        """Put all that a segment does into the stream. ``copies``: the other ends of copies from and to the host."""
        stream, status = self._its_stream(), self._status() if may_refuse(segment) else None
        if status is not None:
            stream.clear(status[0].address, status[0].size)
        for step in segment.steps:
            if isinstance(step, Launch | Repeat):
                self._launch(step, addresses, symbols)
            elif (end := ends.get((type(step), step.outlet))) is not None:
                self._copy_there(step, end, addresses, symbols)
            else:
                self._copy(step, copies[step.outlet], addresses, symbols)
        if status is not None:
            stream.copy_to_host(status[1].address, status[0].address, status[0].size)

    def _copy(
        self,
        step: Upload | Download,
        on_host: tuple[Pinned, Array],
        addresses: Mapping[Storage, int],
        symbols: Mapping[str, int],
    ) -> None:
        (pinned, array), stream = on_host, self._its_stream()
        address = addresses[step.view.storage] + evaluate(step.view.address.offset, symbols)
        if array.nbytes and isinstance(step, Upload):
            stream.copy_to_device(address, pinned.address, array.nbytes)
        elif array.nbytes:
            stream.copy_to_host(pinned.address, address, array.nbytes)

    def _copy_there(
        self, step: Upload | Download, end: DeviceArray, addresses: Mapping[Storage, int], symbols: Mapping[str, int]
    ) -> None:
        address = addresses[step.view.storage] + evaluate(step.view.address.offset, symbols)
        target, source = (address, end.address) if isinstance(step, Upload) else (end.address, address)
        if end.nbytes:
            self._its_stream().copy_on_device(target, source, end.nbytes)

    def _launch(self, step: Work, addresses: Mapping[Storage, int], symbols: Mapping[str, int]) -> None:
        for number, bound in enumerate(bound_launches(step, self.plan.program, addresses, symbols)):
            if number % _CHECKED == 0:
                check_run_time()
            self.plan.launch(self._its_stream(), bound)

    def seconds_of(self, segment: Segment, rounds: int) -> list[tuple[tuple[int, ...], float]]:
        """How long each launch of a segment takes on the device, one behind the other: its nodes, and seconds.

        The tensors are those of the turn before. The least of several ``rounds`` counts.
        """
        symbols, stream = self._symbols(), self._its_stream()
        addresses = self._addresses(segment.stage, symbols)
        steps = [step for step in segment.steps if isinstance(step, Launch | Repeat)]
        with stream.capture() as capture:
            marks = [stream.event(captured=True)]
            for step in steps:
                self._launch(step, addresses, symbols)
                marks.append(stream.event(captured=True))
        least = [float("inf")] * len(steps)
        for _ in range(rounds):
            capture.graph.launch(stream)
            stream.synchronize()
            took = [after.seconds_since(before) for before, after in pairwise(marks)]
            least = list(map(min, least, took))
        return [(step.nodes, seconds) for step, seconds in zip(steps, least, strict=True)]

    def _pinned_for(
        self, step: Upload | Download, symbols: Mapping[str, int], before: Mapping[OutletId, Pinned]
    ) -> tuple[Pinned, Array]:
        """Memory of the host for a copy, as an array too. ``before``: some that nobody needs any more."""
        view = step.view
        shape = tuple(evaluate(size, symbols) for size in view.shape)
        dtype = np.dtype(numpy_type(view.element))
        size, pinned = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize, before.get(step.outlet)
        if pinned is None or pinned.size < size:
            pinned = self.plan.device.pinned(-(-size // _PAGE) * _PAGE)
        return pinned, pinned.array(dtype, shape)


def _outlets(segment: Segment, kind: type[Upload] | type[Download]) -> list[OutletId]:
    return [one.outlet for one in segment.steps if isinstance(one, kind)]
