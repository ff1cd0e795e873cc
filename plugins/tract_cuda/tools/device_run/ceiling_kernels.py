"""Kernels that do one thing as fast as a device can: copies, sums of products, with and without tensor cores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tract_cuda.language.kernel import Kernel, Parameter
from tract_llvm.language.types import F32, I32, ir_type
from tract_llvm.llvm import ir

from tract_core.frozen import frozen

LANES = 4
"""Numbers of f32 that a thread copies at once."""

CHAINS = 8
"""Sums that a thread, or a warp, has going, as each has to wait for itself."""

WRITTEN_OUT = 16
"""Rounds that are one behind the other in a loop, beside which its own instructions are few."""


@frozen
class Copied:
    """y[i] = x[i], 16 bytes a thread."""

    name = "copied"
    threads = 256

    @property
    def parameters(self) -> Sequence[Parameter]:
        """``count``: of threads with work."""
        return Parameter("count"), Parameter("x", F32), Parameter("y", F32)

    def emit(self, k: Kernel) -> None:
        i = k.block() * self.threads + k.thread()
        with k.when(i < k.size("count")):
            k.write(k.memory("y"), i * LANES, k.read(k.memory("x"), i * LANES, LANES))


@frozen
class Added:
    """y[i] = y[i] + 1, for one block: as little as a kernel can do."""

    name = "added"
    threads = 32

    @property
    def parameters(self) -> Sequence[Parameter]:
        return (Parameter("y", F32),)

    def emit(self, k: Kernel) -> None:
        y, i = k.memory("y"), k.thread()
        y[i] = y[i] + 1.0


@frozen
class MultiplyAdds:
    """``loops`` times `WRITTEN_OUT` rounds of sum = sum * factor + term in f32, in each thread `CHAINS` of them."""

    name = "multiply_adds"
    threads = 256

    @property
    def parameters(self) -> Sequence[Parameter]:
        """``factor`` in memory, so that no compiler knows it; ``y``: a number for each thread."""
        return Parameter("loops"), Parameter("factor", F32), Parameter("y", F32)

    def emit(self, k: Kernel) -> None:
        factor = k.memory("factor")[0]
        chains = [k.variable(factor + float(number)) for number in range(CHAINS)]
        with k.loop("round", k.size("loops")):
            for one in chains * WRITTEN_OUT:
                one.value = k.fma(one.value, factor, factor)
        total = chains[0].value
        for one in chains[1:]:
            total = total + one.value
        k.memory("y")[k.block() * self.threads + k.thread()] = total


@frozen
class Mma:
    """An instruction ``mma.sync`` of 16 rows and 8 columns.

    ``depth``: of its factors; ``intrinsic``: of LLVM; ``pairs``: whether its factors are pairs of f16, else words of 32
    bits; ``left``, ``right``: how many each thread has of them; ``integer``: whether sums are i32.
    """

    depth: int
    intrinsic: str
    left: int = 4
    right: int = 2
    pairs: bool = False
    integer: bool = False


MMAS = {
    "f16": Mma(16, "m16n8k16.row.col.f32.f32", pairs=True),
    "bf16": Mma(16, "m16n8k16.row.col.bf16"),
    "tf32": Mma(8, "m16n8k8.row.col.tf32"),
    "int8": Mma(32, "m16n8k32.row.col.s8", integer=True),
}
"""By the type of the factors: https://docs.nvidia.com/cuda/parallel-thread-execution, mma."""


@frozen
class TensorCores:
    """``loops`` times `WRITTEN_OUT` rounds of sums = left * right + sums, in each warp `CHAINS` of them.

    They begin with 0, 1, and so on: a compiler would do once what is the same.
    """

    mma: Mma
    name = "tensor_cores"
    threads = 256

    @property
    def parameters(self) -> Sequence[Parameter]:
        """``factors``: a word; ``y``: a number for each thread."""
        return Parameter("loops"), Parameter("factors", I32), Parameter("y", F32)

    def emit(self, k: Kernel) -> None:
        word = k.memory("factors")[0].ir
        factor = k.builder.bitcast(word, ir.VectorType(ir.HalfType(), 2)) if self.mma.pairs else word
        kind = I32 if self.mma.integer else F32
        sums = [[k.variable(k.constant(number, kind)) for _ in range(4)] for number in range(CHAINS)]  # none is alike
        with k.loop("round", k.size("loops")):
            for chain in sums * WRITTEN_OUT:
                self._multiply(k, factor, chain, ir_type(kind))
        total = k.convert(sums[0][0].value, F32)
        for one in [one for chain in sums for one in chain][1:]:
            total = total + k.convert(one.value, F32)
        k.memory("y")[k.block() * self.threads + k.thread()] = total

    def _multiply(self, k: Kernel, factor: Any, chain: Sequence[Any], kind: Any) -> None:
        given = [factor] * (self.mma.left + self.mma.right) + [one.value.ir for one in chain]
        result = ir.LiteralStructType([kind] * 4)
        name = f"llvm.nvvm.mma.{self.mma.intrinsic}"
        found = k.builder.call(k.declared(name, result, [one.type for one in given]), given)
        for number, one in enumerate(chain):
            one.value = type(one.value)(k, k.builder.extract_value(found, number), one.value.type)
