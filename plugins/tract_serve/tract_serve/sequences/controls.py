"""Inputs that say which turn of which sequence it is: the control inputs of Triton's ``sequence_batching``.

Clients do not give them. What one says is the same for all rows of a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Several
from typing import Any, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import CorruptModel
from tract_core.frozen import frozen
from tract_serve.config import ModelConfig
from tract_serve.errors import BadRequest
from tract_serve.messages import ENUMS
from tract_serve.sequences.asked import AskedTurn
from tract_serve.tensors.ports import Port, Signature
from tract_serve.tensors.types import TYPES, datatype_of

Array = np.ndarray[Any, Any]

START, READY, END, CORRID = ENUMS["ControlKind"].values()

_VALUES: Final = {
    "int32_false_true": DatumType.I32,
    "fp32_false_true": DatumType.F32,
    "bool_false_true": DatumType.BOOL,
}
"""The types of inputs that take one of two values."""

_ID_TYPES: Final = (DatumType.U64, DatumType.I64, DatumType.U32, DatumType.I32, DatumType.STRING)


@frozen
class Control:
    """The input of the number ``input``. ``kind``: one of those above.

    ``values``: for false and for true; ``None`` for the id of the sequence.
    """

    input: int
    port: Port
    kind: int
    values: tuple[Any, Any] | None

    def array(self, asked: AskedTurn, known: Mapping[str, int], *, is_first: bool) -> Array:
        """What it says of a turn. ``known``: sizes that the other inputs tell; any other is 1.

        Raises BadRequest for an id that the input cannot hold.
        """
        pairs = zip(self.port.sizes, self.port.symbols, strict=True)
        sizes = [known.get(str(name), 1) if size is None else size for size, name in pairs]
        if self.values is None:
            return np.full(sizes, self._id(asked), self.port.kind.numpy)
        is_true = {START: is_first, READY: True, END: asked.ends or asked.id is None}
        return np.full(sizes, self.values[is_true[self.kind]], self.port.kind.numpy)

    def _id(self, asked: AskedTurn) -> int | str:
        if self.port.kind is DatumType.STRING:
            return "" if asked.id is None else str(asked.id)
        most = int(np.iinfo(self.port.kind.numpy).max)
        if isinstance(asked.id, str) or (asked.id or 0) > most:
            raise BadRequest(f"the model takes no {asked.name}, wanted a number up to {most}")
        return asked.id or 0


def controls_of(config: ModelConfig, whole: Signature, where: str) -> tuple[Control, ...]:
    """Those that a configuration names. Raises CorruptModel where the model has no such inputs."""
    inputs = {port.name: slot for slot, port in enumerate(whole.inputs)}
    found: list[Control] = []
    for one in config.told.sequence_batching.control_input:
        if one.name not in inputs:
            problem = f"sequence_batching: there is no input {one.name!r}; inputs: {', '.join(inputs)}"
            raise CorruptModel(problem, where=where)
        if len(one.control) != 1:
            raise CorruptModel(f"control_input {one.name!r} has {len(one.control)} controls, wanted one", where=where)
        found.append(_control(one.control[0], inputs[one.name], whole, f"{where}: control_input {one.name!r}"))
    if len({one.input for one in found}) < len(found):
        raise CorruptModel("sequence_batching: an input is named twice", where=where)
    return tuple(found)


def _control(told: Any, slot: int, whole: Signature, where: str) -> Control:
    port = whole.inputs[slot]
    said = {name: [*getattr(told, name)] for name in _VALUES if getattr(told, name)}
    if told.kind == CORRID:
        wanted = [_type_of(told.data_type)] if told.data_type else _ID_TYPES
        _check_type(port, [one for one in wanted if one in _ID_TYPES], where)
        return Control(slot, port, CORRID, None)
    if told.kind not in (START, READY, END):
        raise CorruptModel(f"there is no control of kind {told.kind}", where=where)
    if len(said) != 1 or len(values := next(iter(said.values()))) != 2:
        raise CorruptModel(f"wanted two values in one of {', '.join(_VALUES)}", where=where)
    _check_type(port, [_VALUES[next(iter(said))]], where)
    return Control(slot, port, told.kind, (values[0], values[1]))


def _type_of(number: int) -> DatumType | None:
    return TYPES.get(datatype_of(number))


def _check_type(port: Port, wanted: Several[DatumType | None], where: str) -> None:
    if port.kind not in wanted:
        names = " or ".join(one.short for one in wanted if one is not None) or "whole numbers, or a text"
        raise CorruptModel(f"the input is {port.fact}, the configuration wants {names}", where=where)
