"""What is computed of single elements, at any depth: the middle of element-wise kernels, the end of all others.

An `Expression` is data. How an operator computes one element is a row of the table ``elements``, keyed by the
operator's type; whatever has a row is fused into chains, and into the kernels that give its operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from tract_core.data import Constant
from tract_core.frozen import frozen
from tract_core.model.fields import field_names
from tract_core.model.op import TypedOp
from tract_core.plugins.registry import Registry
from tract_core.plugins.tables import Rows, TableKey
from tract_llvm.language.convert import shortened
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value
from tract_llvm.objects.origins import origin_of

CARRIED: Final = "n"
"""Stands for types whose elements are only moved and converted."""
COMPLEX: Final = "c"
"""Stands for complex numbers, which an operator on elements only moves."""
QUANTIZED: Final = "q"
"""Stands for integers that mean other numbers: the operator knows what it does with what is stored."""

EmitFn = Callable[..., Value]
"""``(op, *operands) -> result``: numbers or vectors, in the types in which they are computed."""


@frozen
class Element:
    """How an operator computes one element of its output.

    ``kinds``: the kinds of types that its operands may have, with `CARRIED` and `QUANTIZED` where it takes those too.
    ``commutes``: whether the order of the operands changes nothing.
    """

    emit: EmitFn
    kinds: str
    commutes: bool = False

    def applied(self, op: TypedOp, operands: Sequence[int], result: ElementType) -> Apply:
        """The operator on values, by their numbers: in order where that changes nothing, so that kernels are shared."""
        return Apply(op, tuple(sorted(operands) if self.commutes else operands), result, self.emit)


def _element_row(key: str, value: object) -> str | None:
    return None if isinstance(value, Element) else f"is a {type(value).__name__}, wanted an Element"


ELEMENTS: TableKey[type, Element] = TableKey(
    "elements", "how native code computes one element of the output", _element_row
)


def elements(rows: Rows, kinds: str, *types: type[TypedOp], commutes: bool = False) -> Callable[[EmitFn], EmitFn]:
    """Decorator: the function computes one element for operators of these types, of operands of these kinds."""

    def offer(emit: EmitFn) -> EmitFn:
        for one in types:
            rows.add(ELEMENTS, one, Element(emit, kinds, commutes))
        return emit

    return offer


@frozen
class Apply:
    """One operator, applied to values by their numbers: the inputs first, then the results of what came before.

    ``operands``: these numbers.
    """

    op: TypedOp
    operands: tuple[int, ...]
    result: ElementType
    emit: EmitFn


@frozen
class Expression:
    """Operators on elements. ``inputs``: the types of the operands. The last value is the result.

    ``steps``: these operators, in order.
    """

    inputs: tuple[ElementType, ...]
    steps: tuple[Apply, ...] = ()

    @property
    def result(self) -> ElementType:
        """The type of the result."""
        return self.steps[-1].result if self.steps else self.inputs[-1]

    @property
    def types(self) -> tuple[ElementType, ...]:
        """The types of all values."""
        return (*self.inputs, *(step.result for step in self.steps))

    def compute(self, operands: Sequence[Value]) -> Value:
        """The result. Floats narrower than f32 are rounded after every operator, as a model with such types says."""
        values = list(operands)
        for step in self.steps:
            found = step.emit(step.op, *(values[number] for number in step.operands))
            values.append(rounded(found, step.result))
        return values[-1]

    def text(self) -> str:
        """All that it says, in a text that is equal for equal expressions only."""
        return f"{[one.name for one in self.inputs]} {'; '.join(map(step_text, self.steps))}"


class Composite(TypedOp):
    """An operator that is made of others on elements. ``expression``: these."""

    expression: Expression


def step_text(step: Apply) -> str:
    """All that one step says, in a text that is equal for equal steps only."""
    return f"{_text(step.op)}{step.operands}{step.result.name}@{origin_of(step.emit)}"


def widest_bits(types: Sequence[ElementType]) -> int:
    """How wide the widest type is in which elements of these types are computed; booleans do not count."""
    return max((one.computed.bits for one in types if one.kind != "b"), default=8)


def rounded(value: Value, type_: ElementType) -> Value:
    """A value in the type in which elements of ``type_`` are computed, with no more digits than these hold."""
    return value.function.convert(value, type_) if type_.computed is type_ else shortened(value, type_)


def known_to_be(value: Value, type_: ElementType) -> Value:
    """The same, which was rounded to a type before it was laid down in the type in which such elements are computed."""
    return value if type_.computed is type_ else replace(value, digits=type_)


def marker_of(element: ElementType) -> str:
    """What stands for a type among the kinds of `Element`."""
    return CARRIED if element.is_carried and element.kind != COMPLEX else element.kind


def element_of(
    registry: Registry, op: TypedOp, operands: Sequence[ElementType], result: ElementType | None = None
) -> Element | None:
    """How native code computes one element of an operator on operands of these types, where it can.

    ``result``: the type of what comes out, which need not be given where that is no complex number.
    """
    found = registry[ELEMENTS].find(type(op))
    types = [*operands] if result is None or result.kind != COMPLEX else [*operands, result]
    kinds = {marker_of(one) for one in types}
    return found if found is not None and kinds <= set(found.kinds) else None


def _text(op: TypedOp) -> str:
    """All that an operator says. A long constant shows no elements when it is printed, so its digest stands for it."""
    values = (getattr(op, name) for name in field_names(op))
    return f"{origin_of(type(op))}({', '.join(map(_text_of, values))})"


def _text_of(value: object) -> str:
    if isinstance(value, Expression):
        return value.text()
    return value.digest.hex() if isinstance(value, Constant) else repr(value)
