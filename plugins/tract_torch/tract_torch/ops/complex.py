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
from tract_core.ops.elementwise import Cosh, IsInf, IsNan, Neg, Sinh
from tract_core.ops.fft import ComplexToInnerDim, InnerDimToComplex
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.polar_wiring import ranked, wire_atan2, wire_hypot, with_sign
from tract_core.ops.rounding import greatest
from tract_core.ops.wired import Wired, outlet_of
from tract_core.plugins.tables import Rows
from tract_torch.ops import matmul
from tract_torch.ops import reduce as reductions
from tract_torch.ops.cumsum import running
from tract_torch.ops.elementwise import wire_expm1
from tract_torch.registry import ATEN, AtenFn, aten
from tract_torch.wiring.call import Call

ROWS = Rows()

Parts = tuple[Wired, Wired]
"""The real and the imaginary part."""

PART: Final = {DatumType.COMPLEX_F32: DatumType.F32, DatumType.COMPLEX_F64: DatumType.F64}
"""The element type of the parts of a complex number."""


def parts(wire: NodeWiring, x: OutletId) -> Parts:
    """The parts of complex numbers."""
    pairs = Wired(wire, x).op(ComplexToInnerDim())
    return pairs[..., 0], pairs[..., 1]


def joined(real: Wired, imaginary: Wired) -> Wired:
    """Complex numbers of their parts, which stretch to a common shape."""
    real, imaginary = ranked(real, imaginary)
    real = real.broadcast(imaginary.shape)
    imaginary = imaginary.broadcast(real.shape)
    return real[..., None].concat([imaginary[..., None]], -1).op(InnerDimToComplex())


def _operand(call: Call, wire: NodeWiring, name: str) -> Parts:
    """The parts of an operand, also of a real one or a number, in the type of the result."""
    kind = call.kind if call.kind.is_complex() else call.common_kind("self", "other")
    return parts(wire, call.operand(name, wire, kind))


@aten(ROWS, "aten.view_as_real", "aten.view_as_real_copy")
def view_as_real(call: Call, wire: NodeWiring) -> OutletId:
    """The parts on a new last axis"""
    return wire.op(ComplexToInnerDim(), call.input("self"))


@aten(ROWS, "aten.view_as_complex", "aten.view_as_complex_copy")
def view_as_complex(call: Call, wire: NodeWiring) -> OutletId:
    """Complex numbers of the parts on the last axis"""
    return wire.op(InnerDimToComplex(), call.input("self"))


@aten(ROWS, "aten.complex")
def from_parts(call: Call, wire: NodeWiring) -> Wired:
    """Complex numbers of their parts"""
    return joined(call.tensor("real"), call.tensor("imag"))


@aten(ROWS, "aten.polar")
def polar(call: Call, wire: NodeWiring) -> Wired:
    """Complex numbers of their magnitudes and angles"""
    magnitude, angle = (call.tensor(name) for name in ("abs", "angle"))
    return joined(magnitude * angle.cos(), magnitude * angle.sin())


@aten(ROWS, "complex._conj", "complex.conj_physical", "complex._conj_physical", "complex._conj_copy")
def conj(call: Call, wire: NodeWiring) -> Wired:
    """The imaginary part with the other sign"""
    real, imaginary = parts(wire, call.input("self"))
    return joined(real, -imaginary)


@aten(ROWS, "aten._neg_view", "aten._neg_view_copy")
def neg_view(call: Call, wire: NodeWiring) -> OutletId:
    """The other sign"""
    return wire.op(Neg(), call.input("self"))


@aten(ROWS, "aten._conj", "aten.conj_physical", "aten.resolve_conj", "aten.resolve_neg")
def as_it_is(call: Call, wire: NodeWiring) -> OutletId:
    """The tensor: conjugates of real numbers are these, and what stands for a conjugate has been computed"""
    return call.input("self")


@aten(ROWS, "complex.abs")
def magnitude(call: Call, wire: NodeWiring) -> Wired:
    """The distance from 0"""
    return wire_hypot(*parts(wire, call.input("self")))


@aten(ROWS, "complex.angle")
def angle(call: Call, wire: NodeWiring) -> Wired:
    """The angle, between -pi and pi"""
    real, imaginary = parts(wire, call.input("self"))
    return wire_atan2(imaginary, real)


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
    return wire.op(InnerDimToComplex(), wire.op(Neg(), wire.op(ComplexToInnerDim(), call.input("self"))))


def times(a: Parts, b: Parts) -> Parts:
    """The product of complex numbers."""
    return a[0] * b[0] - a[1] * b[1], a[0] * b[1] + a[1] * b[0]


def divided(a: Parts, b: Parts) -> Parts:
    """The quotient of complex numbers; the divisor is made as large as 1 first, so that no square leaves the type."""
    size = abs(b[0]).maximum(abs(b[1]))
    small = b[0] / size, b[1] / size
    square = small[0] * small[0] + small[1] * small[1]
    real, imaginary = times(a, (small[0], -small[1]))
    whole = square * size
    return real / whole, imaginary / whole


@aten(ROWS, "complex.mul.Tensor", "complex.mul.Scalar")
def multiply(call: Call, wire: NodeWiring) -> Wired:
    """The product"""
    return joined(*times(_operand(call, wire, "self"), _operand(call, wire, "other")))


@aten(ROWS, "complex.div.Tensor", "complex.div.Scalar")
def divide(call: Call, wire: NodeWiring) -> Wired:
    """The quotient"""
    return joined(*divided(_operand(call, wire, "self"), _operand(call, wire, "other")))


@aten(ROWS, "complex.reciprocal")
def reciprocal(call: Call, wire: NodeWiring) -> Wired:
    """1 / z"""
    z = parts(wire, call.input("self"))
    return joined(*divided((z[0].like(1), z[0].like(0)), z))


@aten(ROWS, "complex.eq.Tensor", "complex.eq.Scalar", "complex.ne.Tensor", "complex.ne.Scalar")
def equal(call: Call, wire: NodeWiring) -> Wired:
    """Whether both parts are equal, or one is not"""
    a, b = (_operand(call, wire, name) for name in ("self", "other"))
    return a[0].eq(b[0]) & a[1].eq(b[1]) if ".eq." in call.name else a[0].ne(b[0]) | a[1].ne(b[1])


@aten(ROWS, "complex.isnan", "complex.isinf")
def some_part(call: Call, wire: NodeWiring) -> Wired:
    """Whether a part is not a number, or infinite"""
    op = IsNan() if "isnan" in call.name else IsInf()
    real, imaginary = parts(wire, call.input("self"))
    return real.op(op) | imaginary.op(op)


def _exp(z: Parts) -> Parts:
    size = z[0].exp()
    return size * z[1].cos(), size * z[1].sin()


def _log(z: Parts) -> Parts:
    return wire_hypot(*z).log(), wire_atan2(z[1], z[0])


def _sqrt(z: Parts) -> Parts:
    """The root whose real part is not below 0: t = sqrt((|z| + |re z|) / 2) is one part, im z / 2t the other one.

    Where |z| is too large for its type, it is twice the root of a quarter.
    """
    most = greatest(z[0].dtype) / 4
    is_huge = (abs(z[0]) > most) | (abs(z[1]) > most)
    down, up = (is_huge.where(z[0].like(factor), 1) for factor in (0.25, 2))
    real, imaginary = _small_sqrt((z[0] * down, z[1] * down))
    return real * up, imaginary * up


def _small_sqrt(z: Parts) -> Parts:
    t = ((wire_hypot(*z) + abs(z[0])) * 0.5).sqrt()
    other = t.eq(0).where(z[1], z[1] * 0.5 / t)
    right = z[0] >= 0
    return right.where(t, abs(other)), right.where(other, with_sign(t, z[1]))


def _sinh(z: Parts) -> Parts:
    return z[0].op(Sinh()) * z[1].cos(), z[0].op(Cosh()) * z[1].sin()


def _cosh(z: Parts) -> Parts:
    return z[0].op(Cosh()) * z[1].cos(), z[0].op(Sinh()) * z[1].sin()


def _turned(function: Callable[[Parts], Parts]) -> Callable[[Parts], Parts]:
    """f(iz) / i, which makes sin of sinh, and tan of tanh."""

    def found(z: Parts) -> Parts:
        real, imaginary = function((-z[1], z[0]))
        return imaginary, -real

    return found


def _cos(z: Parts) -> Parts:
    return _cosh((-z[1], z[0]))


def _tanh(z: Parts) -> Parts:
    """1 - e^2 with the sign of a, and 4 e sin(b) cos(b), by (1 - e)^2 + 4 e cos(b)^2, where z = a + ib, e = exp(-2|a|).

    No part of it leaves the type.
    """
    twice = abs(z[0]) * -2
    below_one, below_square = wire_expm1(twice), wire_expm1(twice + twice)
    across = twice.exp() * 4 * z[1].cos()
    divisor = below_one.square() + across * z[1].cos()
    real = with_sign(-below_square, z[0])
    return real / divisor, across * z[1].sin() / divisor


def _sigmoid(z: Parts) -> Parts:
    falling = _exp((-z[0], -z[1]))
    return divided((z[0].like(1), z[0].like(0)), (falling[0] + 1, falling[1]))


_FUNCTIONS: Final[dict[str, Callable[[Parts], Parts]]] = {
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


def _of(function: Callable[[Parts], Parts]) -> AtenFn:
    def wire_function(call: Call, wire: NodeWiring) -> Wired:
        return joined(*function(parts(wire, call.input("self"))))

    return wire_function


for _name, _function in _FUNCTIONS.items():
    ROWS.add(ATEN, f"complex.{_name}", _of(_function))


@aten(ROWS, "complex.pow.Tensor_Scalar")
def power(call: Call, wire: NodeWiring) -> Wired:
    """Products for small whole exponents, else exp(p log z)"""
    z, exponent = parts(wire, call.operand("self", wire, call.kind)), call.value("exponent")
    if exponent in range(1, 9):
        return joined(*reduce(times, [z] * int(exponent)))
    factor = complex(exponent)
    return joined(*_exp(times(_log(z), (z[0].like(factor.real), z[0].like(factor.imag)))))


def _linear(function: AtenFn) -> AtenFn:
    """What is done with the parts for themselves: sums."""

    def wire_each(call: Call, wire: NodeWiring) -> Wired:
        def of(part: Wired) -> Wired:
            return _one(wire, function(call.with_tensors(PART[call.kind], {"self": part.outlet}), wire))

        real, imaginary = parts(wire, wire.cast(call.input("self"), call.kind))
        return joined(of(real), of(imaginary))

    return wire_each


def _one(wire: NodeWiring, found: object) -> Wired:
    if not isinstance(found, (OutletId, Wired)):
        raise TypeError(f"one result was wanted, not {found!r}")
    return Wired(wire, outlet_of(found))


for _name, _row in (("sum", reductions.total), ("mean", reductions.mean), ("cumsum", running)):
    ROWS.add(ATEN, f"complex.{_name}", _linear(_row))


def _bilinear(function: AtenFn, first: str, second: str) -> AtenFn:
    """Products of two tensors, each part of the one with each part of the other."""

    def wire_product(call: Call, wire: NodeWiring) -> Wired:
        kind = PART[call.kind]
        a, b = (parts(wire, wire.cast(call.input(name), call.kind)) for name in (first, second))

        def of(i: int, j: int) -> Wired:
            return _one(wire, function(call.with_tensors(kind, {first: a[i].outlet, second: b[j].outlet}), wire))

        return joined(of(0, 0) - of(1, 1), of(0, 1) + of(1, 0))

    return wire_product


for _name, _second in (("mm", "mat2"), ("bmm", "mat2"), ("matmul", "other"), ("mv", "vec"), ("dot", "tensor")):
    ROWS.add(ATEN, f"complex.{_name}", _bilinear(matmul.matmul, "self", _second))


@aten(ROWS, "complex.linear")
def linear(call: Call, wire: NodeWiring) -> Wired:
    """X times the transposed weights, plus a bias"""
    bias = call.optional_input("bias")
    without = call.with_tensors(call.kind, {"bias": None})
    product = _one(wire, _bilinear(matmul.linear, "input", "weight")(without, wire))
    if bias is None:
        return product
    return (product.op(ComplexToInnerDim()) + Wired(wire, bias).op(ComplexToInnerDim())).op(InnerDimToComplex())


@aten(ROWS, "complex._to_copy")
def to(call: Call, wire: NodeWiring) -> OutletId:
    """In another type; of complex numbers, real ones are the real parts"""
    x, kind = call.input("self"), call.kind
    if wire.dtype(x).is_complex() and not kind.is_complex() and not kind.is_bool():
        x = parts(wire, x)[0].outlet
    return wire.cast(x, kind)
