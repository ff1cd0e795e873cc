"""What warps do with matrices: copies to shared memory that arrive later, fragments, and products on tensor cores.

Layouts of fragments are those of PTX's manual, for `mma.m16n8k16`, `.m16n8k32` and `.m16n8k8`, which are the same in
bytes: https://docs.nvidia.com/cuda/parallel-thread-execution
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import BF16, F16, F32, I32, ElementType, ir_type
from tract_llvm.language.values import Value, Variable
from tract_llvm.llvm import ir

from tract_core.frozen import frozen
from tract_cuda.language.arch import ACCESS_BYTES
from tract_cuda.language.kernel import Kernel

PIECE: Final = ACCESS_BYTES
"""Bytes that one thread copies at once."""

HALVES: Final = PIECE // 2
"""How many halves a piece has."""

STEP: Final = 2 * PIECE
"""Bytes of the depth that one product of tensor cores sums."""

_SHARED: Final = 3
_GLOBAL: Final = 1
"""Address spaces, as LLVM numbers them."""


@frozen
class Factors:
    """What tensor cores multiply: halves of one type, f32 cut to 10 bits (TF32), or bytes of any signs.

    ``left``, ``right``: the types of the two factors.
    """

    left: ElementType
    right: ElementType

    @staticmethod
    def of(left: ElementType, right: ElementType, sums: ElementType, *, tf32: bool) -> Factors | None:
        """``None`` where tensor cores do not multiply these. ``tf32``: whether f32 may be cut."""
        halves = left == right and left in {F16, BF16} and sums is F32
        cut = left == right == sums == F32 and tf32
        small = all(one.kind in "iu" and one.bits == _BYTE for one in (left, right)) and sums is I32
        return Factors(left, right) if halves or cut or small else None

    @property
    def each(self) -> int:
        """How many elements a piece has."""
        return PIECE // self.left.bytes

    @property
    def sums(self) -> ElementType:
        """In which type products are summed."""
        return F32 if self.left.kind == "f" else I32

    @property
    def turned(self) -> bool:
        """Whether fragments of a factor can be had that lies across the depth: bytes of one are never together."""
        return self.left.bits > _BYTE

    @property
    def instruction(self) -> str:
        """What LLVM calls the product."""
        if self.left.kind == "f":
            return _INSTRUCTIONS[self.left]
        kinds = ["us"[one.kind == "i"] + "8" for one in (self.left, self.right)]
        return "m16n8k32.row.col." + ".".join(dict.fromkeys(kinds))


_BYTE: Final = 8
_INSTRUCTIONS: Final = {
    F16: "m16n8k16.row.col.f32.f32",
    BF16: "m16n8k16.row.col.bf16",
    F32: "m16n8k8.row.col.tf32",
}


def copy_later(k: Kernel, target: Any, source: Any, size: Value) -> None:
    """Copy ``size`` bytes of a piece to shared memory, and zeros behind them; they are there once `wait` says so.

    ``target``, ``source``: addresses, as `Buffer.address` gives them.
    """
    shared, memory = (
        k.builder.addrspacecast(one, ir.PointerType(addrspace=space))
        for one, space in ((target, _SHARED), (source, _GLOBAL))
    )
    callee = k.declared(
        "llvm.nvvm.cp.async.cg.shared.global.16.s", ir.VoidType(), [shared.type, memory.type, ir.IntType(32)]
    )
    k.builder.call(callee, [shared, memory, k.convert(size, I32).ir])


def commit(k: Kernel) -> None:
    """All copies since the last time are one group from here on."""
    k.called("llvm.nvvm.cp.async.commit.group", ir.VoidType())


def wait(k: Kernel, groups: int) -> None:
    """Wait until all groups of copies of this thread are there, but for so many of the last ones."""
    k.called("llvm.nvvm.cp.async.wait.group", ir.VoidType(), [k.constant(groups, I32)])


def fragments(k: Kernel, shared: Buffer, byte: Value, *, turned: bool = False) -> list[Any]:
    """Four matrices of 8 by 8 elements of 16 bits: each thread of a warp says where one row of one of them begins."""
    address = k.builder.addrspacecast(shared.address(byte), ir.PointerType(addrspace=_SHARED))
    kind = ir.LiteralStructType([ir.IntType(32)] * 4)
    name = f"llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4{'.trans' if turned else ''}.b16.p3"
    found = k.builder.call(k.declared(name, kind, [address.type]), [address])
    return [k.builder.extract_value(found, number) for number in range(4)]


def taken(k: Kernel, factors: Factors, words: Sequence[Any]) -> list[Any]:
    """Fragments as they are multiplied: f32 rounded to 10 bits, halves away from 0, rather than cut off."""
    if factors.left is not F32:
        return list(words)
    cut = k.declared("llvm.nvvm.f2tf32.rna", ir.IntType(32), [ir_type(F32)])
    return [k.builder.call(cut, [k.builder.bitcast(one, ir_type(F32))]) for one in words]


def zeros(k: Kernel, sums: ElementType = F32) -> list[Variable]:
    """The four sums that each thread has of a matrix of 16 by 8, which are 0 at first."""
    return [k.variable(k.constant(0, sums)) for _ in range(4)]


def accumulate(k: Kernel, factors: Factors, sums: Sequence[Variable], a: Sequence[Any], b: Sequence[Any]) -> None:
    """Add to the sums of a matrix the products of fragments: of 16 rows and 8 columns, and of `STEP` bytes of depth."""
    kind = ir.LiteralStructType([ir_type(factors.sums)] * 4)
    pair, given = ir.VectorType(ir.HalfType(), 2), [*a, *b]
    if factors.left is F16:
        given = [k.builder.bitcast(one, pair) for one in given]
    arguments = [*given, *(one.value.ir for one in sums)]
    callee = k.declared(f"llvm.nvvm.mma.{factors.instruction}", kind, [one.type for one in arguments])
    found = k.builder.call(callee, arguments)
    for number, variable in enumerate(sums):
        variable.value = Value(k, k.builder.extract_value(found, number), factors.sums)
