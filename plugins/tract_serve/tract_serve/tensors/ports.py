"""What a model takes and gives, as the protocol says it, and whether arrays fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.api.interface import interface_of
from tract_core.data import DatumType
from tract_core.dims import symbol_name
from tract_core.errors import Unsupported
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_serve.errors import BadRequest
from tract_serve.tensors.types import type_name

if TYPE_CHECKING:
    from tract_core import Runnable

Array = np.ndarray[Any, Any]


@frozen
class Port:
    """An input or an output, by its ``name``. ``kind``: of its stored elements; ``datatype``: as the protocol calls it.

    ``sizes``: ``None`` for one that may be any; ``symbols``: of sizes that are one symbol. ``fact``: all that is known.
    """

    name: str
    kind: DatumType
    datatype: str
    sizes: tuple[int | None, ...]
    symbols: tuple[str | None, ...]
    fact: str

    @property
    def shape(self) -> list[int]:
        """As the protocol says it: -1 for a size that may be any."""
        return [-1 if size is None else size for size in self.sizes]

    def check(self, array: Array, kind: DatumType) -> None:
        """Raises BadRequest where an array is none for this input."""
        if kind is not self.kind:
            problem = f"datatype is {type_name(kind)}, wanted {self.datatype}"
            raise BadRequest(problem, where=f"input {self.name!r}")
        if len(array.shape) != len(self.sizes) or any(
            size is not None and size != found for size, found in zip(self.sizes, array.shape, strict=True)
        ):
            problem = f"shape is {list(array.shape)}, wanted {self.shape} ({self.fact})"
            raise BadRequest(problem, where=f"input {self.name!r}")


@frozen
class Signature:
    """``inputs``, ``outputs``: of a model, in order."""

    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    @staticmethod
    def of(runnable: Runnable) -> Signature:
        """That of a model that is ready. Raises Unsupported where the protocol cannot say it."""
        told = interface_of(runnable)
        inputs = [_port(told.outlet_name(one), told.outlet_fact(one), "input") for one in told.inputs]
        outputs = [_port(told.outlet_name(one), told.outlet_fact(one), "output") for one in told.outputs]
        return Signature(tuple(inputs), tuple(outputs))

    def in_order(self, given: Mapping[str, tuple[DatumType, Array]]) -> list[Array]:
        """Arrays by name, in the order of the inputs. Raises BadRequest where they do not fit."""
        if len(given) != len(self.inputs) or any(one.name not in given for one in self.inputs):
            self._refuse_names(given)
        arrays: list[Array] = []
        for port in self.inputs:
            kind, array = given[port.name]
            port.check(array, kind)
            arrays.append(array)
        return arrays

    def chosen(self, names: Sequence[str] | None) -> list[int]:
        """The numbers of the outputs of those names, or all. Raises BadRequest for one that is not there."""
        if names is None:
            return [*range(len(self.outputs))]
        there = {port.name: number for number, port in enumerate(self.outputs)}
        for name in names:
            if name not in there:
                raise BadRequest(f"there is no output {name!r}; outputs: {', '.join(there)}")
        return [there[name] for name in dict.fromkeys(names)]

    def _refuse_names(self, given: Mapping[str, object]) -> None:
        wanted = [port.name for port in self.inputs]
        missing = [name for name in wanted if name not in given]
        unknown = [name for name in given if name not in wanted]
        parts = [f"missing: {', '.join(missing)}"] if missing else []
        parts += [f"unknown: {', '.join(unknown)[:200]}"] if unknown else []
        raise BadRequest(f"the inputs are {', '.join(wanted) or 'none'}; {'; '.join(parts)}")


def _port(name: str, fact: Any, what: str) -> Port:
    if not isinstance(fact, TypedFact):
        raise Unsupported(f"{what} {name!r} is {fact}, and the protocol has tensors alone", hint="leave it out")
    sizes = tuple(size if isinstance(size, int) else None for size in fact.shape)
    symbols = tuple(symbol_name(size) for size in fact.shape)
    return Port(name, fact.datum_type.storage, type_name(fact.datum_type), sizes, symbols, str(fact))
