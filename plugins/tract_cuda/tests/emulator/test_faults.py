"""Faults planted in kernels of the runtime, and in kernels written for it: all are found, and no others."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest
from tract_cuda.kernels.map import MapPlan
from tract_cuda.language.arch import arch_named
from tract_cuda.language.kernel import Kernel, Parameter
from tract_cuda.ptx import Ptx, written
from tract_cuda.testing.emulator import EmulationError, Emulator, Range, aligned, run
from tract_llvm.elements.expressions import Expression
from tract_llvm.language.types import F32, ElementType
from tract_llvm.language.values import Value

from tract_core.frozen import frozen

ORDERS = (0, 1, 7)
SM_80 = arch_named("sm_80")
assert SM_80 is not None


class Affine(Expression):
    """a * b + 1"""

    def compute(self, operands: Sequence[Value]) -> Value:
        return operands[0] * operands[1] + 1.0

    @property
    def result(self) -> ElementType:
        return F32


# ---- maps of the runtime

ROWS, COLUMNS, LANES = 30, 64, 4
RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((2, ROWS, COLUMNS)).astype("f4")
GRID = 2


@cache
def mapped() -> Ptx:
    assert SM_80 is not None
    return written(MapPlan(Affine((F32, F32)), 2, ("next", "next", "next"), LANES), SM_80)


def verdict(ptx: Ptx, order: int) -> str:
    """What is found: the error, or that the result is wrong."""
    arrays = [aligned(one) for one in (A, B, np.zeros_like(A))]
    touched = np.zeros(arrays[2].nbytes, np.uint8)
    memory = [Range(one.ctypes.data, one.nbytes, writable=False) for one in arrays[:2]]
    memory.append(Range(arrays[2].ctypes.data, arrays[2].nbytes, written=touched))
    count = ROWS * COLUMNS // LANES
    passed = [count, ROWS * COLUMNS, ROWS, COLUMNS // LANES]
    for one in arrays:
        passed += [one.ctypes.data, COLUMNS, LANES, 1]
    try:
        Emulator(ptx.text).launch(ptx.name, (GRID,), (ptx.threads,), 0, passed, memory=memory, order=order)
    except EmulationError as error:
        return str(error)
    if not touched.all():
        return "not all of the result is written"
    return "" if (arrays[2] == A * B + 1).all() else "wrong"


@pytest.mark.parametrize("order", range(20))
def test_a_map_is_right(order: int) -> None:
    assert not verdict(mapped(), order)


GUARD = r"@%p\d+ bra\s+\$L__BB0_\d+;"
FAULTS = {
    "no guard": (GUARD, "", "which no allocation has|may only be read"),
    "guard lets in one more": (r"setp\.ge\.s32", "setp.gt.s32", "which no allocation has|may only be read"),
    "guard the other way around": (r"setp\.ge\.s32", "setp.lt.s32", "not all|which no allocation has|may only"),
    "blocks overlap": (r"(shl\.b32\s+%r\d+, %r\d+), 8;", r"\1, 7;", "not all"),
    "not aligned": (
        r"(ld\.global(?:\.nc)?\.v4\.[bf]32[^\[]*\[%rd\d+)\]",
        r"\1+4]",
        "no multiple of 16|which no allocation",
    ),
    "narrower store": (r"st\.global\.v4\.([bf]32)(.*), \{([^,]*),[^}]*\}", r"st.global.\1\2, \3", "not all"),
    "another operation": (r"(fma\.rn|add\.rn|mul\.rn)\.f32", "sub.rn.f32", "wrong|not known"),
    "result where an operand is": ("map_param_12", "map_param_4", "which may only be read"),
    "operand where the result is": ("map_param_4", "map_param_12", "that nobody wrote"),
    "wider elements": (
        r"mul\.wide\.s32(.*), 4;",
        r"mul.wide.s32\1, 8;",
        "which no allocation|wrong|not all|only be read|nobody wrote",
    ),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_in_maps_are_found(fault: str, order: int) -> None:
    pattern, replacement, message = FAULTS[fault]
    good = mapped()
    heads, _, body = good.text.partition("\n{")
    text, count = re.subn(pattern, replacement, body)
    assert count, good.text
    if fault == "another operation":
        text = re.sub(r"sub\.rn\.f32(\s+%\w+, %\w+, %?\w+), %?\w+;", r"sub.rn.f32\1;", text) if "fma" in body else text
    found = verdict(Ptx(good.name, f"{heads}\n{{{text}", good.threads, good.shared_bytes), order)
    assert re.search(message, found), found


# ---- kernels whose threads work together

THREADS = 64
EDGE = 8


class Barriers:
    """The barriers of a kernel, of which one is left out."""

    def __init__(self, k: Kernel, missing: int | None) -> None:
        self._k, self._missing, self._count = k, missing, 0

    def __call__(self) -> None:
        if self._count != self._missing:
            self._k.barrier()
        self._count += 1


def normalised(k: Kernel, barrier: Barriers) -> None:
    """Each row of THREADS numbers: the squares of what they are apart from the first one's maximum, by their sum."""
    x, y, part = k.memory("x"), k.memory("y"), k.shared(F32, THREADS)
    thread = k.thread()
    place = k.block() * THREADS + thread
    value = x[place]
    part[thread] = value
    barrier()
    most = k.variable(part[0])
    with k.loop("i", THREADS) as i:
        most.value = k.select(most.value < part[i], part[i], most.value)
    barrier()
    apart = value - most.value
    part[thread] = apart * apart
    barrier()
    total = k.variable(k.constant(0.0, F32))
    with k.loop("j", THREADS) as j:
        total.value = total.value + part[j]
    y[place] = apart * apart / total.value


def multiplied(k: Kernel, barrier: Barriers) -> None:
    """A product of square matrices of four tiles, one block for each tile of the result."""
    x, y = k.memory("x"), k.memory("y")
    left, right = k.shared(F32, EDGE * EDGE), k.shared(F32, EDGE * EDGE)
    row, column = k.thread() // EDGE, k.thread() % EDGE
    down, across = k.block() // 2 * EDGE, k.block() % 2 * EDGE
    total = k.variable(k.constant(0.0, F32))
    with k.loop("tile", 2) as tile:
        left[row * EDGE + column] = x[(down + row) * 2 * EDGE + tile * EDGE + column]
        right[row * EDGE + column] = x[(tile * EDGE + row) * 2 * EDGE + across + column]
        barrier()
        with k.loop("i", EDGE) as i:
            total.value = total.value + left[row * EDGE + i] * right[i * EDGE + column]
        barrier()
    y[(down + row) * 2 * EDGE + across + column] = total.value


@frozen
class TogetherPlan:
    """``write``: how it is written. ``missing``: the barrier that is left out."""

    write: Callable[[Kernel, Barriers], None]
    missing: int | None

    @property
    def name(self) -> str:
        return "together"

    @property
    def threads(self) -> int:
        return THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        return Parameter("x", F32), Parameter("y", F32)

    def emit(self, k: Kernel) -> None:
        self.write(k, Barriers(k, self.missing))


X = RNG.standard_normal((4, THREADS)).astype("f4")
SQUARE = X.reshape(2 * EDGE, 2 * EDGE)
KERNELS = {"normalised": (normalised, X, 3), "multiplied": (multiplied, SQUARE, 2)}
LEFT_OUT = [(name, number) for name, (_, _, count) in KERNELS.items() for number in range(count)]


def together(name: str, missing: int | None) -> Ptx:
    assert SM_80 is not None
    return written(TogetherPlan(KERNELS[name][0], missing), SM_80)


def test_kernels_of_several_threads_are_right() -> None:
    """In twenty orders, without a false alarm."""
    apart = (X - X.max(1, keepdims=True)) ** 2
    wanted = {"normalised": apart / apart.sum(1, keepdims=True), "multiplied": SQUARE @ SQUARE}
    for name, (_, x, _) in KERNELS.items():
        found = run(together(name, None), 4, [x, np.full_like(x, np.nan)], orders=range(20))[1]
        np.testing.assert_allclose(found, wanted[name], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("name", "missing"), LEFT_OUT)
def test_barriers_left_out_are_found(name: str, missing: int, order: int) -> None:
    x = KERNELS[name][1]
    with pytest.raises(EmulationError, match=r"with no barrier between|written by nobody"):
        run(together(name, missing), 4, [x, np.full_like(x, np.nan)], orders=[order])


def test_orders_that_differ() -> None:
    """Which block comes last decides."""
    text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry last(.param .u64 y) { .reg .b32 %r<2>; .reg .b64 %d<2>;
ld.param.u64 %d0, [y]; mov.u32 %r0, %ctaid.x; st.global.u32 [%d0], %r0; ret; }
"""
    with pytest.raises(EmulationError, match="array 0 is another one in order 1 than in order 0"):
        run(Ptx("last", text, 32, 0), 4, [np.zeros(1, "u4")])


def test_what_is_passed_stays_as_it_is() -> None:
    x, y = X.copy(), np.zeros_like(X)
    run(together("normalised", None), 4, [x, y])
    assert (x == X).all()
    assert not y.any()
