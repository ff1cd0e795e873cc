"""Complex numbers: how they are put together and taken apart, and arithmetic of them by their parts.

A complex tensor of a program is one of the model. What is computed is computed with real numbers, of which it is a
view: ``ComplexToInnerDim`` and ``InnerDimToComplex`` cost nothing. Operators that only move elements have no row here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Final

from tract_core.data import DatumType
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.ops import binary as core
from tract_core.ops.concat import TypedConcat
from tract_core.ops.elementwise import Abs, Cos, Cosh, Exp, IsInf, IsNan, Ln, Neg, Sin, Sinh, Sqrt, Square
from tract_core.ops.fft import ComplexToInnerDim, InnerDimToComplex
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.rounding import greatest
from tract_core.ops.slice import Slice
from tract_core.plugins.tables import Rows
from tract_torch.ops import matmul
from tract_torch.ops import reduce as reductions
from tract_torch.ops.binary import wire_atan2, wire_hypot, with_sign
from tract_torch.ops.cumsum import running
from tract_torch.ops.elementwise import wire_expm1
from tract_torch.registry import ATEN, AtenFn, aten
from tract_torch.wiring.call import Call

ROWS = Rows()

Parts = tuple[OutletId, OutletId]
"""The real and the imaginary part."""

PART: Final = {DatumType.COMPLEX_F32: DatumType.F32, DatumType.COMPLEX_F64: DatumType.F64}
"""The element type of the parts of a complex number."""


def parts(wire: NodeWiring, x: OutletId) -> Parts:
    """The parts of complex numbers."""
    pairs = wire.op(ComplexToInnerDim(), x)
    last = wire.rank(x)
    real, imaginary = (wire.squeeze(wire.op(Slice(last, part, part + 1), pairs), [last]) for part in (0, 1))
    return real, imaginary


def joined(wire: NodeWiring, real: OutletId, imaginary: OutletId) -> OutletId:
    """Complex numbers of their parts, which stretch to a common shape."""
    real, imaginary = wire.ranks(real, imaginary)
    real = wire.broadcast(real, wire.shape(imaginary))
    imaginary = wire.broadcast(imaginary, wire.shape(real))
    last = wire.rank(real)
    return wire.op(
        InnerDimToComplex(), wire.op(TypedConcat(last), *(wire.unsqueeze(x, [last]) for x in (real, imaginary)))
    )


def _operand(call: Call, wire: NodeWiring, name: str) -> Parts:
    """The parts of an operand, also of a real one or a number, in the type of the result."""
    kind = call.kind if call.kind.is_complex() else call.common_kind("self", "other")
    return parts(wire, call.operand(name, wire, kind))


@aten(ROWS, "aten.view_as_real", "aten.view_as_real_copy")
def view_as_real(call: Call, wire: NodeWiring) -> OutletId:
    """The parts on a new last axis"""
    return wire.op(ComplexToInnerDim(), call.tensor("self"))


@aten(ROWS, "aten.view_as_complex", "aten.view_as_complex_copy")
def view_as_complex(call: Call, wire: NodeWiring) -> OutletId:
    """Complex numbers of the parts on the last axis"""
    return wire.op(InnerDimToComplex(), call.tensor("self"))


@aten(ROWS, "aten.complex")
def from_parts(call: Call, wire: NodeWiring) -> OutletId:
    """Complex numbers of their parts"""
    return joined(wire, call.tensor("real"), call.tensor("imag"))


@aten(ROWS, "aten.polar")
def polar(call: Call, wire: NodeWiring) -> OutletId:
    """Complex numbers of their magnitudes and angles"""
    magnitude, angle = call.tensor("abs"), call.tensor("angle")
    return joined(wire, *(wire.binary(core.Mul(), magnitude, wire.op(op, angle)) for op in (Cos(), Sin())))


@aten(ROWS, "complex._conj", "complex.conj_physical", "complex._conj_physical", "complex._conj_copy")
def conj(call: Call, wire: NodeWiring) -> OutletId:
    """The imaginary part with the other sign"""
    real, imaginary = parts(wire, call.tensor("self"))
    return joined(wire, real, wire.op(Neg(), imaginary))


@aten(ROWS, "aten._neg_view", "aten._neg_view_copy")
def neg_view(call: Call, wire: NodeWiring) -> OutletId:
    """The other sign"""
    return wire.op(Neg(), call.tensor("self"))


@aten(ROWS, "aten._conj", "aten.conj_physical", "aten.resolve_conj", "aten.resolve_neg")
def as_it_is(call: Call, wire: NodeWiring) -> OutletId:
    """The tensor: conjugates of real numbers are these, and what stands for a conjugate has been computed"""
    return call.tensor("self")


@aten(ROWS, "complex.abs")
def magnitude(call: Call, wire: NodeWiring) -> OutletId:
    """The distance from 0"""
    return wire_hypot(wire, *parts(wire, call.tensor("self")))


@aten(ROWS, "complex.angle")
def angle(call: Call, wire: NodeWiring) -> OutletId:
    """The angle, between -pi and pi"""
    real, imaginary = parts(wire, call.tensor("self"))
    return wire_atan2(wire, imaginary, real)


def _part_by_part(op: TypedOp) -> AtenFn:
    def wire_parts(call: Call, wire: NodeWiring) -> OutletId:
        factor = call.value("alpha") if call.has("alpha") else 1
        a, b = (wire.op(ComplexToInnerDim(), call.operand(name, wire, call.kind)) for name in ("self", "other"))
        if factor != 1:
            if isinstance(factor, complex):
                raise Unsupported(f"a sum with {factor} times an operand", hint="multiply the operand")
            b = wire.op(core.Mul(), b, wire.scalar(factor, b))
        return wire.op(InnerDimToComplex(), wire.binary(op, a, b))

    return wire_parts


for _name, _op in (("add", core.Add()), ("sub", core.Sub())):
    for _end in ("Tensor", "Scalar"):
        ROWS.add(ATEN, f"complex.{_name}.{_end}", _part_by_part(_op))


@aten(ROWS, "complex.rsub.Scalar", "complex.rsub.Tensor")
def rsub(call: Call, wire: NodeWiring) -> OutletId:
    """The second operand without the first one"""
    a, b = (wire.op(ComplexToInnerDim(), call.operand(name, wire, call.kind)) for name in ("self", "other"))
    return wire.op(InnerDimToComplex(), wire.binary(core.Sub(), b, a))


@aten(ROWS, "complex.neg")
def neg(call: Call, wire: NodeWiring) -> OutletId:
    """The other sign"""
    return wire.op(InnerDimToComplex(), wire.op(Neg(), wire.op(ComplexToInnerDim(), call.tensor("self"))))


def times(wire: NodeWiring, a: Parts, b: Parts) -> Parts:
    """The product of complex numbers."""

    def of(op: TypedOp, first: Parts, second: Parts) -> OutletId:
        return wire.binary(op, wire.binary(core.Mul(), *first), wire.binary(core.Mul(), *second))

    return of(core.Sub(), (a[0], b[0]), (a[1], b[1])), of(core.Add(), (a[0], b[1]), (a[1], b[0]))


def divided(wire: NodeWiring, a: Parts, b: Parts) -> Parts:
    """The quotient of complex numbers; the divisor is made as large as 1 first, so that no square leaves the type."""
    size = wire.binary(core.Max(), *(wire.op(Abs(), part) for part in b))
    small = tuple(wire.op(core.Div(), part, size) for part in b)
    square = wire.op(core.Add(), *(wire.op(core.Mul(), part, part) for part in small))
    real, imaginary = times(wire, a, (small[0], wire.op(Neg(), small[1])))
    whole = wire.op(core.Mul(), square, size)
    return wire.binary(core.Div(), real, whole), wire.binary(core.Div(), imaginary, whole)


@aten(ROWS, "complex.mul.Tensor", "complex.mul.Scalar")
def multiply(call: Call, wire: NodeWiring) -> OutletId:
    """The product"""
    return joined(wire, *times(wire, _operand(call, wire, "self"), _operand(call, wire, "other")))


@aten(ROWS, "complex.div.Tensor", "complex.div.Scalar")
def divide(call: Call, wire: NodeWiring) -> OutletId:
    """The quotient"""
    return joined(wire, *divided(wire, _operand(call, wire, "self"), _operand(call, wire, "other")))


@aten(ROWS, "complex.reciprocal")
def reciprocal(call: Call, wire: NodeWiring) -> OutletId:
    """1 / z"""
    z = parts(wire, call.tensor("self"))
    return joined(wire, *divided(wire, (wire.scalar(1, z[0]), wire.scalar(0, z[0])), z))


@aten(ROWS, "complex.eq.Tensor", "complex.eq.Scalar", "complex.ne.Tensor", "complex.ne.Scalar")
def equal(call: Call, wire: NodeWiring) -> OutletId:
    """Whether both parts are equal, or one is not"""
    a, b = (_operand(call, wire, name) for name in ("self", "other"))
    op, both = (core.Eq(), core.And()) if ".eq." in call.name else (core.Ne(), core.Or())
    return wire.binary(both, *(wire.binary(op, one, other) for one, other in zip(a, b, strict=True)))


@aten(ROWS, "complex.isnan", "complex.isinf")
def some_part(call: Call, wire: NodeWiring) -> OutletId:
    """Whether a part is not a number, or infinite"""
    op = IsNan() if "isnan" in call.name else IsInf()
    return wire.op(core.Or(), *(wire.op(op, part) for part in parts(wire, call.tensor("self"))))


def _exp(wire: NodeWiring, z: Parts) -> Parts:
    size = wire.op(Exp(), z[0])
    return wire.op(core.Mul(), size, wire.op(Cos(), z[1])), wire.op(core.Mul(), size, wire.op(Sin(), z[1]))


def _log(wire: NodeWiring, z: Parts) -> Parts:
    return wire.op(Ln(), wire_hypot(wire, *z)), wire_atan2(wire, z[1], z[0])


def _sqrt(wire: NodeWiring, z: Parts) -> Parts:
    """The root whose real part is not below 0: t = sqrt((|z| + |re z|) / 2) is one part, im z / 2t the other one.

    Where |z| is too large for its type, it is twice the root of a quarter.
    """
    most = greatest(wire.dtype(z[0])) / 4
    is_huge = wire.op(core.Or(), *(wire.op(core.Gt(), wire.op(Abs(), part), wire.scalar(most, part)) for part in z))
    factors = ((wire.scalar(factor, z[0]), wire.scalar(1, z[0])) for factor in (0.25, 2))
    down, up = (wire.select(is_huge, *pair) for pair in factors)
    found = _small_sqrt(wire, (wire.op(core.Mul(), z[0], down), wire.op(core.Mul(), z[1], down)))
    return wire.op(core.Mul(), found[0], up), wire.op(core.Mul(), found[1], up)


def _small_sqrt(wire: NodeWiring, z: Parts) -> Parts:
    half, zero = wire.scalar(0.5, z[0]), wire.scalar(0, z[0])
    sum_of = wire.op(core.Add(), wire_hypot(wire, *z), wire.op(Abs(), z[0]))
    t = wire.op(Sqrt(), wire.op(core.Mul(), sum_of, half))
    other = wire.op(core.Div(), wire.op(core.Mul(), z[1], half), t)
    other = wire.select(wire.op(core.Eq(), t, zero), z[1], other)
    right = wire.op(core.Ge(), z[0], zero)
    return wire.select(right, t, wire.op(Abs(), other)), wire.select(right, other, with_sign(wire, t, z[1]))


def _sinh(wire: NodeWiring, z: Parts) -> Parts:
    return _product(wire, (Sinh(), z[0]), (Cos(), z[1])), _product(wire, (Cosh(), z[0]), (Sin(), z[1]))


def _cosh(wire: NodeWiring, z: Parts) -> Parts:
    return _product(wire, (Cosh(), z[0]), (Cos(), z[1])), _product(wire, (Sinh(), z[0]), (Sin(), z[1]))


def _product(wire: NodeWiring, a: tuple[TypedOp, OutletId], b: tuple[TypedOp, OutletId]) -> OutletId:
    return wire.op(core.Mul(), wire.op(*a), wire.op(*b))


def _turned(function: Callable[[NodeWiring, Parts], Parts]) -> Callable[[NodeWiring, Parts], Parts]:
    """f(iz) / i, which makes sin of sinh, and tan of tanh."""

    def found(wire: NodeWiring, z: Parts) -> Parts:
        real, imaginary = function(wire, (wire.op(Neg(), z[1]), z[0]))
        return imaginary, wire.op(Neg(), real)

    return found


def _cos(wire: NodeWiring, z: Parts) -> Parts:
    return _cosh(wire, (wire.op(Neg(), z[1]), z[0]))


def _tanh(wire: NodeWiring, z: Parts) -> Parts:
    """1 - e^2 with the sign of a, and 4 e sin(b) cos(b), by (1 - e)^2 + 4 e cos(b)^2, where z = a + ib, e = exp(-2|a|).

    No part of it leaves the type.
    """
    twice = wire.op(core.Mul(), wire.op(Abs(), z[0]), wire.scalar(-2, z[0]))
    below_one, below_square = wire_expm1(wire, twice), wire_expm1(wire, wire.op(core.Add(), twice, twice))
    four = wire.op(core.Mul(), wire.op(Exp(), twice), wire.scalar(4, z[0]))
    across = wire.op(core.Mul(), four, wire.op(Cos(), z[1]))
    divisor = wire.op(core.Add(), wire.op(Square(), below_one), wire.op(core.Mul(), across, wire.op(Cos(), z[1])))
    real = with_sign(wire, wire.op(Neg(), below_square), z[0])
    imaginary = wire.op(core.Mul(), across, wire.op(Sin(), z[1]))
    return wire.op(core.Div(), real, divisor), wire.op(core.Div(), imaginary, divisor)


def _sigmoid(wire: NodeWiring, z: Parts) -> Parts:
    one, zero = wire.scalar(1, z[0]), wire.scalar(0, z[0])
    falling = _exp(wire, (wire.op(Neg(), z[0]), wire.op(Neg(), z[1])))
    return divided(wire, (one, zero), (wire.op(core.Add(), falling[0], one), falling[1]))


_FUNCTIONS: Final[dict[str, Callable[[NodeWiring, Parts], Parts]]] = {
    "cos": _cos,
    "cosh": _cosh,
    "exp": _exp,
    "log": _log,
    "sigmoid": _sigmoid,
    "sin": _turned(_sinh),
    "sinh": _sinh,
    "sqrt": _sqrt,
    "tan": _turned(_tanh),
    "tanh": _tanh,
}


def _of(function: Callable[[NodeWiring, Parts], Parts]) -> AtenFn:
    def wire_function(call: Call, wire: NodeWiring) -> OutletId:
        return joined(wire, *function(wire, parts(wire, call.tensor("self"))))

    return wire_function


for _name, _function in _FUNCTIONS.items():
    ROWS.add(ATEN, f"complex.{_name}", _of(_function))


@aten(ROWS, "complex.pow.Tensor_Scalar")
def power(call: Call, wire: NodeWiring) -> OutletId:
    """Products for small whole exponents, else exp(p log z)"""
    z, exponent = parts(wire, call.operand("self", wire, call.kind)), call.value("exponent")
    if exponent in range(1, 9):
        return joined(wire, *reduce(lambda a, b: times(wire, a, b), [z] * int(exponent)))
    log, factor = _log(wire, z), complex(exponent)
    scaled = times(wire, log, (wire.scalar(factor.real, z[0]), wire.scalar(factor.imag, z[0])))
    return joined(wire, *_exp(wire, scaled))


def _linear(function: AtenFn) -> AtenFn:
    """What is done with the parts for themselves: sums."""

    def wire_each(call: Call, wire: NodeWiring) -> OutletId:
        kind = PART[call.kind]
        x = parts(wire, wire.cast(call.tensor("self"), call.kind))
        return joined(wire, *(_one(function(call.with_tensors(kind, {"self": part}), wire)) for part in x))

    return wire_each


def _one(found: object) -> OutletId:
    if not isinstance(found, OutletId):
        raise TypeError(f"one result was wanted, not {found!r}")
    return found


for _name, _row in (("sum", reductions.total), ("mean", reductions.mean), ("cumsum", running)):
    ROWS.add(ATEN, f"complex.{_name}", _linear(_row))


def _bilinear(function: AtenFn, first: str, second: str) -> AtenFn:
    """Products of two tensors, each part of the one with each part of the other."""

    def wire_product(call: Call, wire: NodeWiring) -> OutletId:
        kind = PART[call.kind]
        a, b = (parts(wire, wire.cast(call.tensor(name), call.kind)) for name in (first, second))

        def of(i: int, j: int) -> OutletId:
            return _one(function(call.with_tensors(kind, {first: a[i], second: b[j]}), wire))

        real, imaginary = wire.op(core.Sub(), of(0, 0), of(1, 1)), wire.op(core.Add(), of(0, 1), of(1, 0))
        return joined(wire, real, imaginary)

    return wire_product


for _name, _second in (("mm", "mat2"), ("bmm", "mat2"), ("matmul", "other"), ("mv", "vec"), ("dot", "tensor")):
    ROWS.add(ATEN, f"complex.{_name}", _bilinear(matmul.matmul, "self", _second))


@aten(ROWS, "complex.linear")
def linear(call: Call, wire: NodeWiring) -> OutletId:
    """X times the transposed weights, plus a bias"""
    bias = call.optional("bias")
    product = _one(_bilinear(matmul.linear, "input", "weight")(call.with_tensors(call.kind, {"bias": None}), wire))
    if bias is None:
        return product
    pairs = [wire.op(ComplexToInnerDim(), one) for one in (product, bias)]
    return wire.op(InnerDimToComplex(), wire.binary(core.Add(), *pairs))


@aten(ROWS, "complex._to_copy")
def to(call: Call, wire: NodeWiring) -> OutletId:
    """In another type; of complex numbers, real ones are the real parts"""
    x, kind = call.tensor("self"), call.kind
    if wire.dtype(x).is_complex() and not kind.is_complex() and not kind.is_bool():
        x = parts(wire, x)[0]
    return wire.cast(x, kind)
