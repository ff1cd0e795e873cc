"""Operators that combine two tensors of one rank element by element; an axis of size 1 stretches to meet the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, comparison, dim_max, dim_min, is_one
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.elementwise import power
from tract_core.ops.expect import arity, broadcast_shapes, same_rank, same_type, wide
from tract_core.ops.extremes import LARGEST, SMALLEST
from tract_core.plugins.keys import AXES, COST, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Binary(TypedOp):
    """Base of the family: two inputs of one type and rank, one output of that type and of the common shape.

    ``wants`` names the property (a method of the element type) that the inputs must have. ``commutes``: whether the
    order of the inputs makes no difference.
    """

    wants: ClassVar[str] = "is_number"
    commutes: ClassVar[bool] = False
    by_element: ClassVar[bool] = True

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The common shape, in the inputs' type. Raises FactError for types, ranks or sizes that do not fit."""
        a, b = arity(self, inputs, 2)
        same_type(self, inputs)
        same_rank(self, inputs)
        if not getattr(a.datum_type, self.wants)() or (a.datum_type.is_complex() and type(self) in _REAL):
            raise FactError(f"{self.name} does not take {a.datum_type.short}: {a} and {b}")
        if a.datum_type.is_quantized() and type(self) not in ON_STORED:
            raise FactError(
                f"{self.name} of {a} and {b}: arithmetic on stored integers is not arithmetic on what they stand for",
                hint="dequantise them first; or cast them to the storage type, where the integers are meant",
            )
        return (TypedFact(self.output_type(a), broadcast_shapes(self, [a.shape, b.shape])),)

    def output_type(self, a: TypedFact) -> Any:
        """The element type of the output: that of the inputs."""
        return a.datum_type


class Comparison(Binary):
    """Those that answer with booleans."""

    def output_type(self, a: TypedFact) -> Any:
        """Booleans."""
        return DatumType.BOOL


class Add(Binary):
    """a + b"""

    commutes: ClassVar[bool] = True


class Sub(Binary):
    """a - b"""


class SubF(Binary):
    """b - a"""


class Mul(Binary):
    """a * b"""

    commutes: ClassVar[bool] = True


class Div(Binary):
    """a / b; integers are divided towards zero, and by zero give zero"""


class Rem(Binary):
    """The remainder of `Div`, with the sign of a."""


class FloorRem(Binary):
    """The remainder of the division towards minus infinity, with the sign of b."""


class Min(Binary):
    """The smaller one, of two zeros -0.0; not a number if either is not."""

    commutes: ClassVar[bool] = True


class Max(Binary):
    """The larger one, of two zeros 0.0; not a number if either is not."""

    commutes: ClassVar[bool] = True


class Pow(Binary):
    """a to the power b"""


class ShiftLeft(Binary):
    """a times 2 to the power b"""

    wants: ClassVar[str] = "is_integer"


class ShiftRight(Binary):
    """a divided by 2 to the power b, towards minus infinity"""

    wants: ClassVar[str] = "is_integer"


class And(Binary):
    """Logical and"""

    wants: ClassVar[str] = "is_bool"
    commutes: ClassVar[bool] = True


class Or(Binary):
    """Logical or"""

    wants: ClassVar[str] = "is_bool"
    commutes: ClassVar[bool] = True


class Xor(Binary):
    """Logical exclusive or"""

    wants: ClassVar[str] = "is_bool"
    commutes: ClassVar[bool] = True


class BitAnd(Binary):
    """And of every bit"""

    wants: ClassVar[str] = "is_integer"
    commutes: ClassVar[bool] = True


class BitOr(Binary):
    """Or of every bit"""

    wants: ClassVar[str] = "is_integer"
    commutes: ClassVar[bool] = True


class BitXor(Binary):
    """Exclusive or of every bit"""

    wants: ClassVar[str] = "is_integer"
    commutes: ClassVar[bool] = True


class Eq(Comparison):
    """a == b, for anything that compares: numbers, booleans, strings"""

    wants: ClassVar[str] = "__hash__"
    commutes: ClassVar[bool] = True


class Ne(Comparison):
    """a != b, for anything that compares: numbers, booleans, strings"""

    wants: ClassVar[str] = "__hash__"
    commutes: ClassVar[bool] = True


class Lt(Comparison):
    """a < b"""


class Gt(Comparison):
    """a > b"""


class Le(Comparison):
    """a <= b"""


class Ge(Comparison):
    """a >= b"""


_ORDER: Final = frozenset({Min, Max, Lt, Gt, Le, Ge})

_REAL: Final[frozenset[type]] = _ORDER | {Rem, FloorRem}
"""Those that make no sense of complex numbers."""

ON_STORED: Final[frozenset[type]] = _ORDER | {Eq, Ne}
"""Those that give the same for quantised numbers as for the integers that are stored."""


def _divide(a: Array, b: Array) -> Array:
    if a.dtype.kind in "iu":
        quotient, remainder = np.divmod(a, b)
        inexact = (remainder != 0) & ((a < 0) != (b < 0))
        return quotient + inexact.astype(a.dtype)
    return a / b


def _power(a: Array, b: Array) -> Array:
    """Of integers, a negative power is one divided by the positive one, cut off at the point as divisions are."""
    if a.dtype.kind not in "iu":
        return power(a, b)
    inverse = np.where(np.abs(a) == 1, np.power(a, b & 1), 0)
    return np.where(b < 0, inverse, np.power(a, np.maximum(b, 0)))


_MEANING: dict[type[Binary], Callable[[Array, Array], Array]] = {
    Add: np.add,
    Sub: np.subtract,
    SubF: lambda a, b: np.subtract(b, a),
    Mul: np.multiply,
    Div: _divide,
    Rem: np.fmod,
    FloorRem: np.mod,
    Min: SMALLEST.of,
    Max: LARGEST.of,
    Pow: _power,
    ShiftLeft: np.left_shift,
    ShiftRight: np.right_shift,
    And: np.logical_and,
    Or: np.logical_or,
    Xor: np.logical_xor,
    BitAnd: np.bitwise_and,
    BitOr: np.bitwise_or,
    BitXor: np.bitwise_xor,
    Eq: np.equal,
    Ne: np.not_equal,
    Lt: np.less,
    Gt: np.greater,
    Le: np.less_equal,
    Ge: np.greater_equal,
}


@ROWS.row(REFERENCE, *_MEANING)
def reference(op: Binary, a: Array, b: Array) -> Array:
    """The function of `_MEANING`, element by element; narrow floats are computed in f32 and rounded once."""
    compute = wide(a.dtype) if a.dtype.kind != "O" else a.dtype
    result = np.asarray(_MEANING[type(op)](a.astype(compute, copy=False), b.astype(compute, copy=False)))
    return result.astype(np.bool_ if isinstance(op, Comparison) else a.dtype, copy=False)


def _divide_sizes(a: Dim, b: Dim) -> Dim:
    """Numbers are divided towards zero; an expression is taken to be a size, which is not negative."""
    if isinstance(a, int) and isinstance(b, int):
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient
    return a // b  # pyright: ignore[reportOperatorIssue, reportUnknownVariableType]: raises DimError unless b is a positive number


_ON_SIZES: dict[type[Binary], Callable[[Any, Any], Any]] = {
    Add: lambda a, b: a + b,
    Sub: lambda a, b: a - b,
    SubF: lambda a, b: b - a,
    Mul: lambda a, b: a * b,
    Div: _divide_sizes,
    FloorRem: lambda a, b: a % b,
    Min: dim_min,
    Max: dim_max,
    Eq: lambda a, b: comparison(a, "==", b),
    Ne: lambda a, b: 1 - comparison(a, "==", b),
    Lt: lambda a, b: comparison(a, "<", b),
    Gt: lambda a, b: comparison(a, ">", b),
    Le: lambda a, b: comparison(a, "<=", b),
    Ge: lambda a, b: comparison(a, ">=", b),
    And: lambda a, b: a * b,
    Or: dim_max,
}


@ROWS.row(SYMBOLIC, *_ON_SIZES)
def symbolic(op: Binary, a: Array, b: Array) -> Any:
    """Arithmetic on sizes. A division is only taken when the dividend is a size, which is not negative."""
    return np.frompyfunc(_ON_SIZES[type(op)], 2, 1)(a, b)


@ROWS.row(COST, Binary)
def cost(op: Binary, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One operation per element."""
    kind = "DIV" if isinstance(op, (Div, Rem, FloorRem, Pow)) else "FMA"
    return {f"{kind}({inputs[0].datum_type.storage.name})": outputs[0].shape.volume}


@ROWS.row(AXES, Binary)
def axes(op: Binary, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place; one that stretches from size 1 is an axis of its own in that input."""
    mapping = AxesMapping.natural([fact.rank for fact in inputs], [outputs[0].rank])
    for index, fact in enumerate(inputs):
        term = mapping.inputs[index]
        for axis, size in enumerate(fact.shape):
            if is_one(size) and not is_one(outputs[0].shape[axis]):
                term = term[:axis] + mapping.free_name() + term[axis + 1 :]
                mapping = mapping.with_input(index, term)
    return mapping
