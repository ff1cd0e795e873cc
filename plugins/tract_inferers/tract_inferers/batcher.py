"""Observations become batches, and batches responses: `Batcher` for what is pushed, `infer_many` for whole arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Generic, Self, TypeVar, cast

import numpy as np

from tract_core.errors import InputError, TractError
from tract_inferers.compatible import check_compatible, interface_of
from tract_inferers.inferer import Inferer, Remembering
from tract_inferers.observations import check_names, checked_id, checked_ids, columns, element, in_order, rows_of
from tract_inferers.responses import Array, Response, Responses, State
from tract_inferers.scratch import CAPACITY, ScratchPad, ScratchPadView
from tract_inferers.slots import Slots, as_slots, position

InfererT = TypeVar("InfererT", bound=Inferer)

_MISSING: Final = object()

_WANTED: Final = "a batch is a dictionary from agents to observations"


class Batcher:
    """Observations that wait for a run, one row each, in memory that is used again for the next batch.

    It belongs to the interface of the inferer that it was made for: every `execute` takes one with the same inputs and
    outputs. ``size``: rows that there is room for at first; it grows. ``brain``: what noise is told, see
    `ScratchPadView`. ``refuse_nan``: whether observations with not-a-number are refused.
    """

    def __init__(self, inferer: Inferer, size: int = CAPACITY, *, brain: int = 0, refuse_nan: bool = False) -> None:
        if not isinstance(size, (int, np.integer)) or size < 0:  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            raise InputError(f"is {size!r:.60}, wanted an integer from 0", where="size")
        self._raw = interface_of(inferer)
        self._shown = as_slots(inferer.input_shapes())
        self._inputs = [(slot, _place_of(slot.name, self._raw[0])) for slot in self._shown]
        self._pad = ScratchPad(*self._raw, capacity=size)
        self._agents: set[int] = set()
        self._rows: dict[int, int] = {}  # of some of them, see `_row_of`
        self._brain = brain
        self.refuse_nan = refuse_nan

    @classmethod
    def new_sized(cls, inferer: Inferer, size: int) -> Self:
        """With room for ``size`` rows."""
        return cls(inferer, size)

    def push(self, agent: int, observation: State, *, replace: bool = False) -> None:
        """Add the observation of an agent, an array by the name of each input.

        ``replace``: whether it takes the place of one that waits. Raises InputError, and adds nothing, for names that
        are unknown or missing, for arrays that do not fit, and for an agent whose observation waits, unless it is
        replaced.
        """
        values: list[tuple[int, Array]] = []
        try:
            for slot, place in self._inputs:
                value = observation.get(slot.name, _MISSING)
                if self.refuse_nan or not (
                    value.__class__ is np.ndarray and value.dtype is slot.dtype and value.shape == slot.shape
                ):
                    if value is _MISSING:
                        break
                    value = element(value, slot, refuse_nan=self.refuse_nan)
                values.append((place, cast("Array", value)))
            if len(observation) != len(self._inputs) or len(values) != len(self._inputs):
                check_names(observation, self._shown)
            if agent.__class__ is not int or agent < 0 or agent >> 64:
                agent = checked_id(agent)
        except (TractError, AttributeError, TypeError) as error:
            raise self._refused(agent, observation, error) from None
        if agent not in self._agents:
            row = self._pad.next(agent)
        elif replace:
            row = self._row_of(agent)
        else:
            raise _has_a_row(agent)
        for place, value in values:
            self._pad.inputs[place][row] = value
        self._agents.add(agent)

    def _row_of(self, agent: int) -> int:
        """Where the observation of an agent waits. All are looked up when one is asked for that came since."""
        row = self._rows.get(agent)
        if row is None:
            self._rows = {one: row for row, one in enumerate(self._pad.ids)}
            row = self._rows[agent]
        return row

    def _refused(self, agent: Any, observation: Any, error: Exception) -> TractError:
        """The error for an observation, with its agent; whatever is no dictionary failed in other ways."""
        try:
            check_names(observation, self._shown)
        except TractError as problem:
            error = problem
        if not isinstance(error, TractError):
            raise error
        return error.at(f"agent {agent!r:.20}")

    def extend(self, observations: Iterable[tuple[int, State]] | Mapping[int, State], *, replace: bool = False) -> None:
        """Push several, by agent. Raises as `push` does, and adds none of them then."""
        given = cast("Any", observations.items() if isinstance(observations, Mapping) else observations)
        try:
            pairs: list[tuple[int, State]] = [(agent, one) for agent, one in given]
        except (TypeError, ValueError) as error:
            raise InputError(f"{_WANTED}, or such pairs; got {type(given).__name__}") from error
        ids = self._checked([agent for agent, _ in pairs], replace=replace)
        self._append(ids, rows_of(ids, [one for _, one in pairs], self._shown, refuse_nan=self.refuse_nan))

    def push_many(self, ids: Any, observations: Mapping[str, Any], *, replace: bool = False) -> None:
        """Add whole arrays: an array by the name of each input, with the agents along axis 0.

        Raises InputError as `push` does, and adds nothing then.
        """
        found = self._checked(in_order(ids), replace=replace)
        self._append(found, columns(observations, self._shown, len(found), refuse_nan=self.refuse_nan))

    def _checked(self, ids: Any, *, replace: bool) -> list[int]:
        found = checked_ids(ids)
        if not replace and not self._agents.isdisjoint(found):
            raise _has_a_row(min(self._agents.intersection(found)))
        return found

    def _append(self, ids: list[int], arrays: list[Array]) -> None:
        """Add rows; those that wait for the same agents go."""
        self.drop(ids)
        first = len(self._pad)
        self._pad.reserve(first + len(ids))
        for (_, place), array in zip(self._inputs, arrays, strict=True):
            self._pad.inputs[place][first : first + len(ids)] = array
        self._pad.ids += ids
        self._agents.update(ids)

    def execute(self, inferer: Inferer) -> Responses:
        """Run all rows, and forget them. When this raises, the batch and its agents are as they were.

        Raises IncompatibleInferer for an inferer with other inputs or outputs than the one that this was made for.
        """
        check_compatible(self._raw, interface_of(inferer))
        shown = as_slots(inferer.input_shapes())
        if shown is not self._shown:  # what a stack fills in is no observation
            check_compatible((self._shown, ()), (shown, ()))
        whole = self._pad.chunk(0, len(self._pad), self._brain)
        run_rows(inferer, whole)
        self.clear()
        return responses_of(inferer, whole)

    def drop(self, agents: Iterable[int]) -> int:
        """Take the rows of these agents out, of those that have one: how many they were."""
        gone = self._agents.intersection(agents)
        if gone:
            kept = [row for row, agent in enumerate(self._pad.ids) if agent not in gone]
            for array in self._pad.inputs:
                array[: len(kept)] = array[kept]
            self._pad.ids = [self._pad.ids[row] for row in kept]
            self._agents -= gone
            self._rows = {}
        return len(gone)

    def pending(self) -> dict[int, dict[str, Array]]:
        """The observations that wait, by agent."""
        arrays = [(slot.name, self._pad.inputs[place]) for slot, place in self._inputs]
        return {
            agent: {name: array[row, ...].copy() for name, array in arrays} for row, agent in enumerate(self._pad.ids)
        }

    def clear(self) -> None:
        """Forget the rows that wait. The memory stays."""
        self._pad.clear()
        self._agents.clear()
        self._rows = {}

    def is_empty(self) -> bool:
        """Whether no row waits."""
        return not self._pad.ids

    def __len__(self) -> int:
        return len(self._pad)

    def __contains__(self, agent: object) -> bool:
        return agent in self._agents


class Batched(Generic[InfererT]):
    """An inferer and its batcher."""

    def __init__(self, inferer: InfererT, batcher: Batcher | None = None) -> None:
        self.inferer = inferer
        self.batcher = Batcher(inferer) if batcher is None else batcher  # an empty one is false

    @classmethod
    def wrap(cls, inferer: InfererT) -> Self:
        """With a batcher of its own."""
        return cls(inferer)

    def push(self, agent: int, observation: State, *, replace: bool = False) -> None:
        """As `Batcher.push`."""
        self.batcher.push(agent, observation, replace=replace)

    def extend(self, observations: Iterable[tuple[int, State]] | Mapping[int, State], *, replace: bool = False) -> None:
        """As `Batcher.extend`."""
        self.batcher.extend(observations, replace=replace)

    def push_many(self, ids: Any, observations: Mapping[str, Any], *, replace: bool = False) -> None:
        """As `Batcher.push_many`."""
        self.batcher.push_many(ids, observations, replace=replace)

    def execute(self) -> Responses:
        """Run all rows, and forget them, as `Batcher.execute`."""
        return self.batcher.execute(self.inferer)

    def is_empty(self) -> bool:
        """Whether no row waits."""
        return self.batcher.is_empty()

    def __len__(self) -> int:
        return len(self.batcher)

    def into_parts(self) -> tuple[InfererT, Batcher]:
        """The inferer, and the batcher."""
        return self.inferer, self.batcher


def infer_many(inferer: Inferer, ids: Any, observations: Mapping[str, Any], *, refuse_nan: bool = False) -> Responses:
    """Run whole arrays, as `InfererExt.infer_many` says."""
    given, found = as_slots(inferer.input_shapes()), checked_ids(in_order(ids))
    return _run(inferer, found, given, columns(observations, given, len(found), refuse_nan=refuse_nan))


def infer_batch(inferer: Inferer, batch: Mapping[int, State], *, refuse_nan: bool = False) -> Responses:
    """Run one observation per agent, as `InfererExt.infer_batch` says."""
    if not isinstance(batch, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
        raise InputError(f"{_WANTED}, got {type(batch).__name__}")
    given, found = as_slots(inferer.input_shapes()), checked_ids(list(batch))
    return _run(inferer, found, given, rows_of(found, list(batch.values()), given, refuse_nan=refuse_nan))


def infer_single(inferer: Inferer, agent: int, observation: State, *, refuse_nan: bool = False) -> Response:
    """Run one observation, as `InfererExt.infer_single` says."""
    given, found = as_slots(inferer.input_shapes()), checked_id(agent)
    check_names(observation, given)
    values = [(element(observation[slot.name], slot, refuse_nan=refuse_nan), slot.shape) for slot in given]
    arrays = [np.ascontiguousarray(value).reshape(1, *shape) for value, shape in values]
    responses = _run(inferer, [found], given, arrays)
    return {name: array[0, ...] for name, array in responses.arrays.items()}


def _run(inferer: Inferer, ids: list[int], given: Slots, arrays: list[Array]) -> Responses:
    """Run arrays of the inputs that a caller gives."""
    inputs, outputs = interface_of(inferer)
    if len(given) != len(inputs):
        by_name = {slot.name: array for slot, array in zip(given, arrays, strict=True)}
        arrays = [by_name[slot.name] if slot.name in by_name else slot.zeros(len(ids)) for slot in inputs]
    whole = ScratchPadView((inputs, outputs), ids, arrays, [slot.empty(len(ids)) for slot in outputs])
    run_rows(inferer, whole)
    return responses_of(inferer, whole)


def run_rows(inferer: Inferer, whole: ScratchPadView) -> None:
    """Run rows in as many calls as the inferer asks for. When this raises, agents remember what they did before."""
    rows = len(whole)
    if not rows:
        return
    size = _size_of_call(inferer, rows)
    if size == rows:
        inferer.infer_raw(whole)
        return
    undo = inferer.remember(whole.ids) if isinstance(inferer, Remembering) else _nothing
    first = 0
    try:
        while first < rows:
            size = _size_of_call(inferer, rows - first)
            inferer.infer_raw(whole.rows(first, size))
            first += size
    except BaseException:
        undo()
        raise


def responses_of(inferer: Inferer, whole: ScratchPadView) -> Responses:
    """The responses of rows that have run: the outputs that a caller gets."""
    raw = [slot.name for slot in whole.slots[1]]
    arrays = dict(zip(raw, whole.outputs))  # noqa: B905 - they are as many, and every call comes here
    shown = inferer.output_shapes()
    return Responses(whole.ids, arrays if len(shown) == len(raw) else {name: arrays[name] for name, _ in shown})


def _size_of_call(inferer: Inferer, rows: int) -> int:
    size = inferer.select_batch_size(rows)
    if not isinstance(size, (int, np.integer)) or size < 1:  # pyright: ignore[reportUnnecessaryIsInstance]: others' inferers may be untyped
        raise InputError(f"select_batch_size({rows}) of {type(inferer).__name__} is {size!r:.40}, wanted 1 or more")
    return min(size, rows)


def _place_of(name: str, raw: Slots) -> int:
    found = position(raw, name)
    if found is None:
        there = ", ".join(repr(slot.name) for slot in raw)
        raise InputError(f"the inferer shows {name!r}, which is not among those of its model: {there}")
    return found


def _has_a_row(agent: int) -> InputError:
    hint = "run what waits first, or give replace=True to have the newer one"
    return InputError("an observation of it waits already", where=f"agent {agent}", hint=hint)


def _nothing() -> None:
    """What there is to bring back of an inferer that remembers nothing."""
