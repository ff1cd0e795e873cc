"""Products of matrices, and their way to and from shared memory, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_texts import Array, kernel, launch

LANES = np.arange(32)
GROUP, PLACE = LANES // 4, LANES % 4
RNG = np.random.default_rng(0)


def listed(first: int, count: int) -> str:
    return "{" + ", ".join(f"%r{first + number}" for number in range(count)) + "}"


def words(registers: Array) -> Array:
    """[lanes, registers] of 32 bits, in memory."""
    return np.ascontiguousarray(registers).view("u4").reshape(32, -1)


def through(code: str, inputs: Array, count: int, shared: int = 0, **options: int) -> Array:
    """The registers %r100, ... of each lane after code that finds its own in %r10, ..."""
    given = inputs.shape[1]
    lines = [f"mad.wide.u32 %d20, %r0, {4 * given}, %d0;"]
    lines += [f"ld.global.u32 %r{10 + number}, [%d20+{4 * number}];" for number in range(given)]
    lines.append(code)
    lines.append(f"mad.wide.u32 %d21, %r0, {4 * count}, %d1;")
    lines += [f"st.global.u32 [%d21+{4 * number}], %r{100 + number};" for number in range(count)]
    result = np.zeros((32, count), "u4")
    return launch(kernel("\n".join(lines), 2, shared=shared), [inputs, result], 32, **options)[1]


def left_of(matrix: Array) -> Array:
    """Rows of 16 as the lanes hold them: pairs, fours or single ones of a row."""
    each = 4 // matrix.itemsize
    parts = [
        matrix[GROUP[:, None] + 8 * (number % 2), (PLACE * each)[:, None] + np.arange(each) + 4 * each * (number // 2)]
        for number in range(matrix.shape[1] // (4 * each) * 2)
    ]
    return words(np.stack(parts, 1))


def right_of(matrix: Array) -> Array:
    """[depth, 8] likewise, by columns."""
    each = 4 // matrix.itemsize
    parts = [
        matrix[(PLACE * each)[:, None] + np.arange(each) + 4 * each * number, GROUP[:, None]]
        for number in range(matrix.shape[0] // (4 * each))
    ]
    return words(np.stack(parts, 1))


def sums_of(matrix: Array) -> Array:
    """[16, 8] likewise."""
    parts = [matrix[GROUP[:, None] + 8 * half, (2 * PLACE)[:, None] + np.arange(2)] for half in range(2)]
    return words(np.stack(parts, 1))


def matrix_of(registers: Array, dtype: str) -> Array:
    """The other way."""
    found = np.zeros((16, 8), dtype)
    held = registers.view(dtype).reshape(32, 2, 2)
    for half in range(2):
        found[GROUP[:, None] + 8 * half, (2 * PLACE)[:, None] + np.arange(2)] = held[:, half]
    return found


def bf16(values: Array) -> Array:
    return (values.astype("f4").view("u4") >> 16).astype("u2")


def f32_of(bits: Array, kind: str) -> Array:
    """The numbers of the bits of a type."""
    if kind == "bf16":
        return (bits.astype("u4") << 16).view("f4")
    if kind == "tf32":
        return (bits.view("u4") & 0xFFFFE000).view("f4")
    return bits.astype("f4")


FLOATS = [("f16", 8), ("f16", 16), ("bf16", 8), ("bf16", 16), ("tf32", 4), ("tf32", 8)]


@pytest.mark.parametrize(("kind", "depth"), FLOATS)
@pytest.mark.parametrize("seed", [0, 1])
def test_products_of_floats(kind: str, depth: int, seed: int) -> None:
    raw = [RNG.standard_normal(shape).astype("f4") for shape in ((16, depth), (depth, 8))]
    a, b = (one.astype("f2") if kind == "f16" else bf16(one) if kind == "bf16" else one for one in raw)
    c = RNG.standard_normal((16, 8)).astype("f4")
    inputs = np.concatenate([left_of(a), right_of(b), sums_of(c)], 1)
    left, right = left_of(a).shape[1], right_of(b).shape[1]
    code = (
        f"mma.sync.aligned.m16n8k{depth}.row.col.f32.{kind}.{kind}.f32 {listed(100, 4)}, {listed(10, left)}, "
        f"{listed(10 + left, right)}, {listed(10 + left + right, 4)};"
    )
    found = matrix_of(through(code, inputs, 4, seed=seed), "f4")
    wanted = f32_of(a, kind).astype("f8") @ f32_of(b, kind).astype("f8") + c
    np.testing.assert_allclose(found, wanted, rtol=3e-7, atol=1e-6)


@pytest.mark.parametrize("depth", [8, 16])
def test_sums_in_halves(depth: int) -> None:
    a, b = RNG.standard_normal((16, depth)).astype("f2"), RNG.standard_normal((depth, 8)).astype("f2")
    c = RNG.standard_normal((16, 8)).astype("f2")
    inputs = np.concatenate([left_of(a), right_of(b), sums_of(c)], 1)
    left, right = left_of(a).shape[1], right_of(b).shape[1]
    code = (
        f"mma.sync.aligned.m16n8k{depth}.row.col.f16.f16.f16.f16 {listed(100, 2)}, {listed(10, left)}, "
        f"{listed(10 + left, right)}, {listed(10 + left + right, 2)};"
    )
    found = matrix_of(through(code, inputs, 2), "f2")
    np.testing.assert_array_equal(found, (a.astype("f8") @ b.astype("f8") + c).astype("f2"))


@pytest.mark.parametrize("left", ["s8", "u8"])
@pytest.mark.parametrize("right", ["s8", "u8"])
@pytest.mark.parametrize("depth", [16, 32])
def test_products_of_bytes(left: str, right: str, depth: int) -> None:
    kinds = {"s8": "i1", "u8": "u1"}
    a = RNG.integers(0, 256, (16, depth), "u1").view(kinds[left])
    b = RNG.integers(0, 256, (depth, 8), "u1").view(kinds[right])
    c = RNG.integers(-(2**31), 2**31, (16, 8)).astype("i4")
    inputs = np.concatenate([left_of(a), right_of(b), sums_of(c)], 1)
    counts = left_of(a).shape[1], right_of(b).shape[1]
    code = (
        f"mma.sync.aligned.m16n8k{depth}.row.col.s32.{left}.{right}.s32 {listed(100, 4)}, {listed(10, counts[0])}, "
        f"{listed(10 + counts[0], counts[1])}, {listed(10 + sum(counts), 4)};"
    )
    found = matrix_of(through(code, inputs, 4), "i4")
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(found, a.astype("i4") @ b.astype("i4") + c)


STORED = """mov.u32 %r1, s;
shl.b32 %r2, %r0, 4;
add.u32 %r3, %r1, %r2;
st.shared.v4.b32 [%r3], {%r10, %r11, %r12, %r13};
bar.sync 0;
"""
"""Each lane writes a row of 16 bytes."""


@pytest.mark.parametrize("count", [1, 2, 4])
@pytest.mark.parametrize("turned", ["", ".trans"])
def test_matrices_are_loaded(count: int, turned: str) -> None:
    rows = RNG.integers(0, 2**16, (32, 8)).astype("u2")
    code = f"{STORED}ldmatrix.sync.aligned.m8n8.x{count}{turned}.shared.b16 {listed(100, count)}, [%r3];"
    found = through(code, words(rows), count, 512).view("u2").reshape(32, count, 2)
    for number in range(count):
        matrix = rows[8 * number : 8 * number + 8]
        matrix = matrix.T if turned else matrix
        np.testing.assert_array_equal(found[:, number], matrix[GROUP[:, None], (2 * PLACE)[:, None] + np.arange(2)])


@pytest.mark.parametrize("turned", ["", ".trans"])
def test_matrices_are_stored(turned: str) -> None:
    held = RNG.integers(0, 2**16, (32, 4, 2)).astype("u2")
    code = f"""mov.u32 %r1, s;
shl.b32 %r2, %r0, 4;
add.u32 %r3, %r1, %r2;
stmatrix.sync.aligned.m8n8.x4{turned}.shared.b16 [%r3], {listed(10, 4)};
bar.sync 0;
ld.shared.v4.b32 {listed(100, 4)}, [%r3];"""
    found = through(code, words(held), 4, 512).view("u2").reshape(32, 8)
    for number in range(4):
        matrix = np.zeros((8, 8), "u2")
        matrix[GROUP[:, None], (2 * PLACE)[:, None] + np.arange(2)] = held[:, number]
        np.testing.assert_array_equal(found[8 * number : 8 * number + 8], matrix.T if turned else matrix)
