"""What an operator must compute, as data: one case is an operator, its inputs, and the expected outputs.

The expected outputs come from an independent source: a few lines of NumPy in float64, or numbers written down. A case
is run on every runtime, with fixed sizes and with symbolic ones.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np

from tract_core.data import Container, DatumType, DType, SequenceType
from tract_core.data.boxes import boxed
from tract_core.dims import evaluate
from tract_core.model.fact import TypedFact
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.substitute import substitute_in
from tract_core.model.typed import TypedModel
from tract_core.plugins.tables import TableKey
from tract_core.testing.tolerance import Tolerance

Array = np.ndarray[Any, Any]


def _cases_row(key: str, value: Any) -> str | None:
    found = "one Case" if isinstance(value, Case) else f"a {type(value).__name__}"
    if isinstance(value, Sequence) and all(isinstance(case, Case) for case in cast("Sequence[object]", value)):
        return None
    return f"is {found}, wanted a list of Case"


CASES: TableKey[str, Sequence[Case]] = TableKey("cases", "what an operator must compute, on any runtime", _cases_row)
"""Rows are lists of cases, keyed by the name of the family."""


@dataclass(frozen=True)
class Arg:
    """One input.

    ``fact``: as ``"B,3,f32"``. ``values``: fixed elements instead of random ones; for a container, what it holds.
    ``low``, ``high``: the range of the random elements. ``constant``: part of the model instead of given by the caller.
    """

    fact: str
    values: Any = None
    low: float = -2.0
    high: float = 2.0
    constant: bool = False

    def array(self, name: str, sizes: Mapping[str, int]) -> Array:
        """The elements: those written down, or random ones that depend on ``name`` only."""
        fact = parse_typed_fact(self.fact)
        if isinstance(fact.datum_type, Container):
            return boxed(_contents(self.values, fact.datum_type))
        kind = fact.datum_type.storage
        shape = tuple(evaluate(dim, sizes) for dim in fact.shape)
        if self.values is not None:
            dtype = np.object_ if kind is DatumType.STRING else kind.numpy
            return np.array(self.values, dtype=dtype).reshape(shape)
        random = np.random.default_rng(zlib.crc32(name.encode()))
        if kind.is_bool():
            return random.integers(0, 2, shape).astype(np.bool_)
        if kind.is_integer():
            low = max(self.low, 0) if kind.is_unsigned() else self.low
            return random.integers(int(low), int(self.high) + 1, shape).astype(kind.numpy)
        return random.uniform(self.low, self.high, shape).astype(kind.numpy)


@dataclass(frozen=True)
class Case:
    """An operator, its inputs (facts in text form, or `Arg`), and a function from the inputs to the expected outputs.

    ``expected`` gets floats as float64. ``sizes``: the value of every symbol that occurs in the facts and
    attributes. ``signed_zeros``: whether a zero must have the sign of the expected one. ``name``: of the test.
    """

    name: str
    op: TypedOp
    inputs: Sequence[str | Arg]
    expected: Callable[..., Any]
    sizes: Mapping[str, int] = field(default_factory=dict[str, int])
    tolerance: Tolerance | None = None
    signed_zeros: bool = False

    def __str__(self) -> str:
        return self.name

    @property
    def args(self) -> list[Arg]:
        """The inputs, each as an `Arg`."""
        return [one if isinstance(one, Arg) else Arg(one) for one in self.inputs]

    def arrays(self) -> list[Array]:
        """The input arrays."""
        return [arg.array(f"{self.name}/{slot}", self.sizes) for slot, arg in enumerate(self.args)]

    def given(self) -> list[Array]:
        """The arrays that the caller gives: those of the inputs that are not part of the model."""
        return [array for arg, array in zip(self.args, self.arrays(), strict=True) if not arg.constant]

    def outputs(self) -> list[Array]:
        """The expected outputs, from the inputs in float64 where they are floats."""
        result = self.expected(*(_precise(array) for array in self.arrays()))
        results = cast("tuple[Any, ...]", result) if isinstance(result, tuple) else (result,)
        return [np.asarray(one) for one in results]

    def model(self, *, symbolic: bool, registry: Any = None) -> TypedModel:
        """A model of the operator alone, its sizes fixed or symbolic."""
        model = TypedModel(registry=registry)
        outlets = [self._wire_arg(model, slot, arg, symbolic) for slot, arg in enumerate(self.args)]
        op = self.op if symbolic else substitute_in(self.op, self.sizes)
        model.set_outputs(model.wire_node("op", op, outlets))
        return model

    def _wire_arg(self, model: TypedModel, slot: int, arg: Arg, symbolic: bool) -> OutletId:
        if arg.constant:
            return model.add_const(f"input{slot}", arg.array(f"{self.name}/{slot}", self.sizes))
        fact: TypedFact = parse_typed_fact(arg.fact, model.symbols)
        return model.add_source(f"input{slot}", fact if symbolic else fact.substitute(self.sizes))


def _contents(values: Any, kind: DType) -> Any:
    """What a sequence or an optional of that type holds."""
    if not isinstance(kind, Container):
        return np.array(values, dtype=kind.numpy)
    if isinstance(kind, SequenceType):
        return [_contents(value, kind.item.datum_type) for value in values]
    return None if values is None else _contents(values, kind.item.datum_type)


_EXACT: Final = frozenset("biuO")


def _precise(array: Array) -> Array:
    if array.dtype.kind in _EXACT:
        return array
    if array.dtype.kind == "c":
        return array.astype(np.complex128)
    kind = DatumType.from_numpy(array.dtype)
    return array.astype(np.float64) if kind.is_float() else array
