"""Models that take their state and give it back, as recurrent networks: the server hands it on from turn to turn.

The configuration names the inputs and outputs, as Triton's implicit state: ``sequence_batching { state [...] }``.
Clients neither give nor get them, nor the inputs that say which turn it is (`controls`). Turns of different sequences
are joined to one run as other requests are.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Several
from math import prod
from pathlib import Path
from typing import Any, Final

import numpy as np

from tract_core.errors import CorruptModel
from tract_core.frozen import frozen
from tract_serve.config import ModelConfig
from tract_serve.errors import BadRequest
from tract_serve.models.recipe import ServingRecipe
from tract_serve.models.served import Wish
from tract_serve.models.trying import Tried
from tract_serve.sequences.asked import AskedTurn
from tract_serve.sequences.controls import controls_of
from tract_serve.sequences.sequence import Sequence
from tract_serve.sequences.sequenced import Sequenced
from tract_serve.settings import Settings
from tract_serve.tensors.contents import from_bytes
from tract_serve.tensors.ports import Port, Signature
from tract_serve.tensors.types import datatype_of

Array = np.ndarray[Any, Any]

_FOLDER: Final = "initial_state"
"""Of files with states at the begin, in the folder of the model."""


@frozen
class Carried:
    """A state: what output ``output`` gives is input ``input`` of the next turn, by their numbers.

    ``port``: of the input. ``begin``: what it is in the first turn; or ``sizes``, of zeros: numbers, and symbols that
    other inputs tell.
    """

    input: int
    output: int
    port: Port
    begin: Array | None
    sizes: tuple[int | str, ...]

    def first(self, known: Mapping[str, int]) -> Array:
        """The state in the first turn. ``known``: sizes that the other inputs tell."""
        if self.begin is not None:
            return self.begin
        made = np.zeros([one if isinstance(one, int) else known[one] for one in self.sizes], self.port.kind.numpy)
        if made.dtype.kind == "O":
            made.fill("")
        return made


class Carrying(Sequenced):
    """A model with explicit states, or with inputs that say which turn it is."""

    def __init__(
        self, name: str, version: str, recipe: ServingRecipe, config: ModelConfig, told: Tried, *, settings: Settings
    ) -> None:
        super().__init__(name, version, recipe, config, told, settings=settings)
        self._states = _states(config, self.whole, Path(recipe.path), f"model {name!r}")
        self._controls = controls_of(config, self.whole, f"model {name!r}")
        given = [one.input for one in [*self._states, *self._controls]]
        if len(set(given)) < len(given):
            raise CorruptModel("sequence_batching: an input is a state and a control", where=f"model {name!r}")
        states_out = {one.output for one in self._states}
        self._seen = [slot for slot in range(len(self.whole.inputs)) if slot not in given]
        self._shown = [slot for slot in range(len(self.whole.outputs)) if slot not in states_out]
        self.signature = Signature(
            tuple(self.whole.inputs[slot] for slot in self._seen),
            tuple(self.whole.outputs[slot] for slot in self._shown),
        )

    @property
    def kept_by(self) -> str:
        """What sequences go on with."""
        return ", ".join(one.port.name for one in self._states) or "nothing"

    def _checked(self, inputs: Several[Array]) -> Several[Array]:
        """Itself. Raises BadRequest where there are more rows than the configuration allows."""
        most, rows = self.config.told.max_batch_size, self.found.rows
        if most > 0 and rows is not None and self._seen:
            found = inputs[0].shape[rows.inputs[self._seen[0]]]
            if found > most:
                problem = f"the request has {found} rows, at most {most} are taken"
                raise BadRequest(problem, where=f"model {self.name!r}")
        return inputs

    def begin(self, inputs: Several[Array], asked: AskedTurn) -> list[Array]:
        """The states in the first turn. Raises BadRequest for one that is asked for as a stream."""
        if asked.streams:
            raise BadRequest("the model takes no stream", where=f"model {self.name!r}")
        known = self._sizes(inputs)
        return [one.first(known) for one in self._states]

    def _sizes(self, inputs: Several[Array]) -> dict[str, int]:
        """The sizes that inputs tell, by symbol."""
        return {
            name: size
            for port, array in zip(self.signature.inputs, inputs, strict=True)
            for name, size in zip(port.symbols, array.shape, strict=True)
            if name is not None
        }

    def frozen_going(self, going: Any) -> Any:
        """The states: nobody writes to them."""
        return list(going)

    def thawed_going(self, frozen: Any) -> list[Array]:
        """The states."""
        return list(frozen)

    async def run_turn(self, sequence: Sequence, inputs: Several[Array], asked: AskedTurn, wish: Wish) -> list[Array]:
        """One turn. A client that leaves before its end has changed nothing."""
        outputs = await self._run(inputs, sequence.going, asked, wish, is_first=not sequence.turns)
        states = [outputs[one.output] for one in self._states]
        sequence.going = [state.copy() if state.base is not None else state for state in states]
        sequence.bytes = sum(state.nbytes for state in sequence.going)
        shown = [outputs[slot] for slot in self._shown]
        self.count(sequence, inputs, shown, asked)
        return shown

    async def run_alone(self, inputs: Several[Array], asked: AskedTurn, wish: Wish) -> list[Array]:
        """One turn on states as they are at first."""
        outputs = await self._run(inputs, self.begin(inputs, asked), asked, wish, is_first=True)
        return [outputs[slot] for slot in self._shown]

    async def _run(
        self, inputs: Several[Array], states: Several[Array], asked: AskedTurn, wish: Wish, *, is_first: bool
    ) -> list[Array]:
        given: dict[int, Array] = dict(zip(self._seen, inputs, strict=True))
        given |= {one.input: state for one, state in zip(self._states, states, strict=True)}
        if self._controls:
            known = self._sizes(inputs)
            given |= {one.input: one.array(asked, known, is_first=is_first) for one in self._controls}
        return await self._lane.infer([given[slot] for slot in sorted(given)], wish.priority, wish.timeout_s)


def _states(config: ModelConfig, whole: Signature, path: Path, where: str) -> tuple[Carried, ...]:
    """The states that a configuration names. Raises CorruptModel where the model has no such inputs and outputs."""
    inputs = {port.name: slot for slot, port in enumerate(whole.inputs)}
    outputs = {port.name: slot for slot, port in enumerate(whole.outputs)}
    told = list(config.told.sequence_batching.state)
    hidden = {one.input_name for one in told} | {one.name for one in config.told.sequence_batching.control_input}
    known = {name for port in whole.inputs if port.name not in hidden for name in port.symbols if name is not None}
    found: list[Carried] = []
    for one in told:
        for what, name, there in (("input", one.input_name, inputs), ("output", one.output_name, outputs)):
            if name not in there:
                problem = f"sequence_batching: there is no {what} {name!r}; {what}s: {', '.join(there)}"
                raise CorruptModel(problem, where=where)
        port, given = whole.inputs[inputs[one.input_name]], whole.outputs[outputs[one.output_name]]
        if port.kind is not given.kind or not _may_be_same(port.sizes, given.sizes):
            problem = f"the state {port.name!r} is {port.fact}, and {given.name!r} is {given.fact}"
            raise CorruptModel(problem, where=where)
        begin, sizes = _begin(one, port, known, path, f"{where}: state {port.name!r}")
        found.append(Carried(inputs[port.name], outputs[given.name], port, begin, sizes))
    if len({one.input for one in found}) < len(found) or len({one.output for one in found}) < len(found):
        raise CorruptModel("sequence_batching: an input or an output is named twice", where=where)
    return tuple(found)


def _may_be_same(one: Several[int | None], other: Several[int | None]) -> bool:
    return len(one) == len(other) and all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


def _begin(
    told: Any, port: Port, known: set[str], path: Path, where: str
) -> tuple[Array | None, tuple[int | str, ...]]:
    """What a state is in the first turn: an array, or sizes of zeros. Raises CorruptModel."""
    first = told.initial_state[0] if told.initial_state else None
    dims = list((first.dims if first is not None and first.dims else told.dims) or ())
    missing = len(port.sizes) - len(dims)
    if dims and missing not in (0, 1):  # 1 for that of the batch
        raise CorruptModel(f"dims are {dims}, the model has {port.shape}", where=where)
    given = [None] * missing + [size if size > 0 else None for size in dims]
    sizes: list[int | str] = []
    for size, said, name in zip(port.sizes, given, port.symbols, strict=True):
        if size is not None and said is not None and size != said:
            raise CorruptModel(f"dims are {dims}, the model has {port.shape}", where=where)
        exact = size if size is not None else said
        if exact is None and name not in known:
            hint = "say its dims in initial_state"
            raise CorruptModel(f"no other input tells the sizes of {port.fact}", where=where, hint=hint)
        sizes.append(exact if exact is not None else str(name))
    if first is None or first.WhichOneof("state_data") != "data_file":
        return None, tuple(sizes)
    return _from_file(first, port, sizes, path, where), ()


def _from_file(first: Any, port: Port, sizes: Several[int | str], path: Path, where: str) -> Array:
    """The elements of a state in a file, one after the other, little end first. Raises CorruptModel."""
    name, shape = first.data_file, tuple(one if isinstance(one, int) else 1 for one in sizes)
    kind = datatype_of(first.data_type)
    if first.data_type and kind != port.datatype:
        raise CorruptModel(f"the initial state is {kind}, the model has {port.datatype}", where=where)
    if Path(name).name != name:
        raise CorruptModel(f"data_file is {name!r}, wanted the name of a file in {_FOLDER}", where=where)
    places = [folder / _FOLDER / name for folder in (path, *path.parents[:2])]
    place = next((one for one in places if one.is_file()), None)
    if place is None or place.stat().st_size > max(prod(shape), 1) * 8 * 64:
        raise CorruptModel(f"there is no file {_FOLDER}/{name}, or it is too large", where=where)
    try:
        return from_bytes(port.kind, shape, place.read_bytes(), where)
    except BadRequest as error:
        raise CorruptModel(error.problem, where=where) from None
