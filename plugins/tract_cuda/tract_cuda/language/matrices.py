"""What warps do with matrices: copies to shared memory that arrive later, fragments, and products on tensor cores.

Layouts of fragments are those of PTX's manual, for `mma.m16n8k16`: https://docs.nvidia.com/cuda/parallel-thread-execution
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tract_llvm.language.buffers import Buffer
from tract_llvm.language.types import BF16, F32, I32, ElementType, ir_type
from tract_llvm.language.values import Value, Variable
from tract_llvm.llvm import ir

from tract_cuda.language.arch import ACCESS_BYTES
from tract_cuda.language.kernel import Kernel

PIECE: Final = ACCESS_BYTES
"""Bytes that one thread copies at once."""

HALVES: Final = PIECE // 2
"""How many elements a piece has: what tensor cores multiply are halves."""

_SHARED: Final = 3
_GLOBAL: Final = 1
"""Address spaces, as LLVM numbers them."""


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


def zeros(k: Kernel) -> list[Variable]:
    """The four sums that each thread has of a matrix of 16 by 8, which are 0 at first."""
    return [k.variable(k.constant(0.0, F32)) for _ in range(4)]


def accumulate(k: Kernel, element: ElementType, sums: Sequence[Variable], a: Sequence[Any], b: Sequence[Any]) -> None:
    """Add to the sums of a matrix the products of fragments of 16 by 16 and of 16 by 8 elements."""
    kind = ir.LiteralStructType([ir_type(F32)] * 4)
    if element is BF16:
        name, factors = "llvm.nvvm.mma.m16n8k16.row.col.bf16", [*a, *b]
    else:
        pair = ir.VectorType(ir.HalfType(), 2)
        name, factors = "llvm.nvvm.mma.m16n8k16.row.col.f32.f32", [k.builder.bitcast(one, pair) for one in (*a, *b)]
    arguments = [*factors, *(one.value.ir for one in sums)]
    found = k.builder.call(k.declared(name, kind, [one.type for one in arguments]), arguments)
    for number, variable in enumerate(sums):
        variable.value = Value(k, k.builder.extract_value(found, number), F32)
