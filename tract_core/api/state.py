"""Executions that go on from call to call, and their snapshots."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, cast, overload

from tract_core.api.calls import Calls, named_inputs
from tract_core.api.feeding import Feeding
from tract_core.api.interface import TypedInterface, interface_of
from tract_core.api.progress import Progress, check_begins, check_can_end, check_takes_symbols
from tract_core.api.runtime import calling
from tract_core.api.streaming import streams_of
from tract_core.errors import InputError, Unsupported
from tract_core.runtime.binding import check_assertions
from tract_core.runtime.conditions import check_conditions
from tract_core.runtime.protocol import Repeating

if TYPE_CHECKING:
    from tract_core.api.runnable import Runnable
    from tract_core.api.tensor import Tensor
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.keys import Array
    from tract_core.prepared.signature import ModelSignature
    from tract_core.runtime.protocol import PlanState


class State(TypedInterface):
    """What the nodes of a `Runnable` keep from one call of `run` to the next.

    Used by one thread at a time: what is called while another call goes on raises InputError, and disturbs nothing.
    """

    __slots__ = ("_calls", "_inner", "_is_used", "_known", "_progress", "_repeating", "_runnable")

    def __init__(
        self, runnable: Runnable, calls: Calls, inner: PlanState, known: Mapping[str, int] | None = None, come: int = 0
    ) -> None:
        """For this package; users call `Runnable.spawn_state`.

        ``known``: values of symbols that no input tells. ``come``: how many positions of a signal have come already.
        """
        self._known = known
        streams = "pulse.input_axes" in interface_of(runnable).properties
        self._progress = Progress.of(runnable.typed, come) if streams else None
        self._runnable = runnable
        self._calls = calls
        self._inner = inner
        self._repeating = inner if isinstance(inner, Repeating) else None
        self._is_used = Lock()

    @property
    def typed(self) -> TypedModel:
        """The model, as the core has it. To be read, not changed."""
        return self._runnable.typed

    @property
    def _interface(self) -> TypedModel | ModelSignature:
        """What knows the inputs and outputs: the model, or what is known of it before it is there."""
        return interface_of(self._runnable)

    @overload
    def run(self, inputs: Sequence[Any] | Mapping[str, Any], out: None = None) -> list[Tensor]: ...
    @overload
    def run(
        self, inputs: Sequence[Any] | Mapping[str, Any], out: Sequence[Array] | Mapping[str, Array]
    ) -> list[Array]: ...
    def run(self, inputs: Sequence[Any] | Mapping[str, Any], out: Any = None) -> list[Any]:
        """The next turn. Inputs, outputs and ``out`` are those of `Runnable.run`."""
        if not self._is_used.acquire(False):  # a keyword takes longer, and every call comes here
            raise _in_use()
        try:
            if self._repeating is not None and self._known is None:
                found = self._calls.repeat(self._repeating, inputs, out)
            else:
                found = None
            if found is None:
                found = self._calls.run(self._inner, inputs, out, self._known)
            if self._progress is not None:
                self._progress.turn(inputs)
        finally:
            self._is_used.release()
        return found

    @contextmanager
    def _using(self) -> Generator[None]:
        """Around what no other thread may come into. Raises InputError where one is there."""
        if not self._is_used.acquire(blocking=False):
            raise _in_use()
        try:
            yield
        finally:
            self._is_used.release()

    def __call__(self, *inputs: Any, **named: Any) -> list[Tensor]:
        """`run`, with the first inputs in order and the others by name."""
        return self.run(named_inputs(inputs, named, self.input_names()))

    def stream(self, source: Iterable[Any], whole: Mapping[str, Any] | None = None) -> Iterator[Any]:
        """What a model that takes its signal in pulses makes of one that comes in chunks.

        ``source``: arrays of any length along the axis of the stream; where several inputs stream, one per input, in
        order or by name. ``whole``: the other inputs, by name. Yields tensors, or lists of them where the model has
        several outputs, as soon as they are known: along the axis of the stream, laid one after the other, they are
        what the model would give for the whole signal, not a position more or less.

        Models of the established engine do not say how long their outputs are. Of these come as many whole pulses as of
        the signal: the last positions may be behind the end, and mean nothing.

        Raises InputError for a model that takes no stream, for a state that is in the middle of a signal, and for
        chunks that do not fit.
        """
        check_begins(self._progress, told=self._known)
        return Feeding(self, whole or {}).stream(source)

    def feed(self, whole: Mapping[str, Any] | None = None) -> Feeding:
        """What `stream` does, for chunks that are pushed as they come: as by a client, or a callback of a sound card.

        ``whole``: the inputs that do not stream, by name. Raises InputError for a model that takes no stream, for a
        state that is in the middle of a signal, and for an input that is missing.
        """
        check_begins(self._progress, told=self._known)
        return Feeding(self, whole or {})

    def end_of_stream(self, total: int) -> None:
        """Say how long the signal is, for a model that takes it in pulses, before the pulse in which it ends.

        ``total``: how many positions the first input that streams has in all. What comes in behind the end may be
        anything; what the model puts there, as padding, comes out as if the signal had been given whole.

        Raises InputError for a model that takes no stream, for a length that the model does not take, for another one
        than was said before, and where the signal has ended already; Unsupported for a runtime that cannot be told.
        """
        model = self.typed
        streams = streams_of(model)
        counts: list[int | None] = [None] * len(streams.inputs)
        counts[next(slot for slot, one in enumerate(streams.inputs) if one is not None)] = total
        known = {streams.symbol: streams.symbol_for(counts)}
        check_assertions(model.symbols, known)
        check_conditions(model, known)
        check_takes_symbols(self._inner, self._runnable.runtime.name())
        with self._using():
            check_can_end(self._progress, total, told=self._known, now=known)
            self._known = known

    def reset(self) -> None:
        """Forget the turns so far: the state is as `Runnable.spawn_state` gave it."""
        with self._using():
            with calling(self._runnable.runtime, "reset"):
                self._inner.reset()
            self._known = None
            if self._progress is not None:
                self._progress.come = 0

    def freeze(self) -> FrozenState:
        """A snapshot of the state, which later calls do not change. The state itself can go on."""
        with self._using(), calling(self._runnable.runtime, "freeze"):
            come = 0 if self._progress is None else self._progress.come
            return FrozenState(self._runnable, self._inner.freeze(), self._known, come)

    def __repr__(self) -> str:
        return f"State of {self._runnable}"

    def _repr_html_(self) -> str:
        from tract_core.api.display import html_of_state

        come = None if self._progress is None else self._progress.come
        return html_of_state(f"State on {self._runnable.runtime.name()}", self.typed, come)

    def __reduce__(self) -> tuple[object, ...]:
        raise InputError("a State cannot be pickled", hint="pickle what freeze() returns")


def _in_use() -> InputError:
    return InputError(
        "the State is in use: another call of it has not returned yet",
        hint="give each thread a State of its own, from spawn_state(); many may have one of the same Runnable",
    )


class FrozenState:
    """A snapshot of a `State`. Immutable; it can be pickled, and takes its model along.

    Frozen states of one `Runnable` that are pickled together share one copy of the model. A pickle is a program that
    runs when it is opened: open only those of people whom you trust.
    """

    __slots__ = ("_come", "_frozen", "_known", "_runnable")

    def __init__(self, runnable: Runnable, frozen: Any, known: Mapping[str, int] | None = None, come: int = 0) -> None:
        """For this package; users call `State.freeze`."""
        self._known, self._come = known, come
        self._runnable = runnable
        self._frozen = frozen

    @property
    def kept(self) -> Mapping[int, Any]:
        """What each node keeps, by its number, in the order of the model. To be read, not changed.

        Raises Unsupported for a runtime that does not tell.
        """
        from tract_core.runtime.plan import TypedFrozenSimpleState

        found = self._frozen.states if isinstance(self._frozen, TypedFrozenSimpleState) else self._frozen
        if not isinstance(found, Mapping):
            raise Unsupported(f"runtime {self._runnable.runtime.name()} does not tell what nodes keep")
        return dict(sorted(cast("Mapping[int, Any]", found).items()))

    def with_kept(self, kept: Mapping[int, Any]) -> FrozenState:
        """A snapshot where nodes keep something else, of the same form as in `kept`."""
        from tract_core.runtime.plan import TypedFrozenSimpleState

        whole: Any = {**self.kept, **kept}
        if isinstance(self._frozen, TypedFrozenSimpleState):
            whole = TypedFrozenSimpleState(whole)
        return FrozenState(self._runnable, whole, self._known, self._come)

    def unfreeze(self) -> State:
        """A new state that goes on from the snapshot. Can be called any number of times."""
        runnable = self._runnable
        with calling(runnable.runtime, "unfreeze"):
            inner = runnable.plan.spawn()
            inner.thaw(self._frozen)
        calls = Calls(interface_of(runnable), runnable.plan, runnable.runtime)
        return State(runnable, calls, inner, self._known, self._come)

    def __repr__(self) -> str:
        return f"FrozenState of {self._runnable}"

    def _repr_html_(self) -> str:
        from tract_core.api.display import html_of_state

        try:
            kept = self.kept
        except Unsupported:
            kept = None
        streams = "pulse.input_axes" in interface_of(self._runnable).properties
        kind = f"FrozenState on {self._runnable.runtime.name()}"
        return html_of_state(kind, self._runnable.typed, self._come if streams else None, kept)

    def __reduce__(self) -> tuple[object, ...]:
        return FrozenState, (self._runnable, self._frozen, self._known, self._come)
