"""The element types that kernels read, compute with, and write."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from tract_core.data import DatumType
from tract_core.frozen import frozen
from tract_llvm.llvm import ir


@frozen
class ElementType:
    """A type of elements in memory.

    ``kind``: ``f`` float, ``i`` signed, ``u`` unsigned integer, ``b`` boolean, ``c`` complex, ``p`` address. ``name``:
    the short one, as ``f32``. ``bits``: of an element.
    """

    name: str
    kind: str
    bits: int

    @property
    def bytes(self) -> int:
        """What one element takes in memory."""
        return (self.bits + 7) // 8

    @property
    def alignment(self) -> int:
        """Bytes at multiples of which such elements surely begin: NumPy's arrays promise no more than 8."""
        return min(self.bytes, 8)

    @property
    def computed(self) -> ElementType:
        """The type in which kernels compute with such elements: itself; f32 for narrow floats, a byte for integers."""
        if self.kind == "f" and self.bits < 32:
            return F32
        return bits_of(self, self.kind) if self.kind in "iu" and self.bits < 8 else self

    @property
    def is_carried(self) -> bool:
        """Whether such elements are only there to be moved and converted: no operator computes with them."""
        return self.kind == "c" or (self.kind != "b" and self.bits < (16 if self.kind == "f" else 8))


BOOL: Final = ElementType("bool", "b", 1)
U8, U16, U32, U64, U128 = (ElementType(f"u{bits}", "u", bits) for bits in (8, 16, 32, 64, 128))
I8, I16, I32, I64 = (ElementType(f"i{bits}", "i", bits) for bits in (8, 16, 32, 64))
F16: Final = ElementType("f16", "f", 16)
BF16: Final = ElementType("bf16", "f", 16)
F32: Final = ElementType("f32", "f", 32)
F64: Final = ElementType("f64", "f", 64)
F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU = (
    ElementType(name, "f", 8) for name in ("f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0fnu")
)
F4E2M1FN: Final = ElementType("f4e2m1fn", "f", 4)
U2, U4, I2, I4 = (ElementType(f"{kind}{bits}", kind, bits) for kind in "ui" for bits in (2, 4))
"""Integers that are the lowest bits of a byte."""
COMPLEX_F32: Final = ElementType("complex_f32", "c", 64)
COMPLEX_F64: Final = ElementType("complex_f64", "c", 128)
INDEX: Final = I64
"""Sizes, strides and positions."""
POINTER: Final = ElementType("pointer", "p", 64)
"""An address, as a function takes it."""


def bits_of(element: ElementType, kind: str = "u") -> ElementType:
    """The integer that takes as much memory: what is moved only is not interpreted."""
    return _BY_NAME[f"{kind}{element.bytes * 8}"]


def other_sign(element: ElementType) -> ElementType:
    """The integer of as many bits, signed for an unsigned one, and unsigned for a signed one."""
    return _BY_NAME[f"{'u' if element.kind == 'i' else 'i'}{element.bits}"]


_BY_NAME: Final = {
    one.name: one
    for one in (
        *(BOOL, U2, U4, U8, U16, U32, U64, U128, I2, I4, I8, I16, I32, I64, F16, BF16, F32, F64),
        *(F4E2M1FN, F8E4M3FN, F8E4M3FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, COMPLEX_F32, COMPLEX_F64),
    )
}


def element_named(name: str) -> ElementType:
    """The element type of a name."""
    return _BY_NAME[name]


def part_of(element: ElementType) -> ElementType:
    """The type of the two parts of a complex number."""
    return {COMPLEX_F32: F32, COMPLEX_F64: F64}[element]


def complex_of(part: ElementType) -> ElementType:
    """The type of complex numbers whose parts have a type."""
    return {F32: COMPLEX_F32, F64: COMPLEX_F64}[part]


def element_type(kind: object) -> ElementType | None:
    """The element type for one of the core (`DatumType`, or a quantised type), ``None`` where kernels know none."""
    return _BY_NAME.get(kind.short) if isinstance(kind, DatumType) else None


def numpy_type(element: ElementType) -> Any:
    """The type of NumPy for arrays of such elements."""
    return DatumType[element.name.upper()].numpy


def ir_type(element: ElementType, lanes: int = 0) -> Any:
    """The type of LLVM for a number that is computed with, or for a vector of ``lanes`` of them."""
    single = _named_types().get(element.name) or ir.IntType(element.bits)
    return ir.VectorType(single, lanes) if lanes else single


def ir_constant(number: float, element: ElementType, lanes: int = 0) -> Any:
    """A number that is known now, as LLVM writes it, or a vector of ``lanes`` times that number."""
    return _constant(repr(float(number) if element.kind == "f" else int(number)), element, lanes)


@cache
def _constant(text: str, element: ElementType, lanes: int) -> Any:
    number = float(text) if element.kind == "f" else int(text)
    single: Any = ir.Constant(ir_type(element), number)
    from tract_llvm.language.lacking import Splat

    return Splat(ir_type(element, lanes), single) if lanes else single


def ir_neighbours(element: ElementType, count: int) -> Any:
    """The type of LLVM for a vector of elements, as instructions take them that sum the products of neighbours."""
    from tract_llvm.language.lacking import BRAIN_FLOAT

    return ir.VectorType(BRAIN_FLOAT if element is BF16 else ir.IntType(element.bits), count)


@cache
def _named_types() -> dict[str, Any]:
    """Of all that are no integers."""
    return {"f16": ir.HalfType(), "f32": ir.FloatType(), "f64": ir.DoubleType(), POINTER.name: ir.PointerType()}
