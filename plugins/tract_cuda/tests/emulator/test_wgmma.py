"""Products by four warps, of matrices that lie in shared memory as descriptors say."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_texts import Array, kernel, launch

RNG = np.random.default_rng(0)
ROWS, BASE = 64, 1024
WIDTHS = {0: 16, 1: 128, 2: 64, 3: 32}


def swizzled(offset: int, mode: int) -> int:
    """The place in shared memory of a byte: bits 4 to 6 are changed by bits 7 to 9."""
    bits = {0: 0, 1: 7, 2: 3, 3: 1}[mode]
    return offset ^ ((offset >> 7 & bits) << 4)


def laid(matrix: Array, mode: int) -> tuple[Array, int]:
    """Rows of elements that are summed, in blocks of eight rows; and the descriptor but for where they begin."""
    width = WIDTHS[mode]
    each = width // matrix.itemsize
    rows, depth = matrix.shape
    across = -(-depth // each)
    stride, leading = (8 * width, rows * width) if mode == 0 else (8 * width, 0)
    found = np.zeros(rows * across * width, "u1")
    for row in range(rows):
        for column in range(depth):
            place = row // 8 * stride + row % 8 * width + column % each * matrix.itemsize + column // each * leading
            place = swizzled(place, mode)
            found[place : place + matrix.itemsize] = matrix[row, column : column + 1].view("u1")
    return found, (leading >> 4) << 16 | (stride >> 4) << 32 | mode << 62


def product(a: Array, b: Array, c: Array, names: str, mode: int = 1, *, adds: int = 0) -> Array:
    """[64, depth] times [columns, depth], by a kernel that copies both to shared memory."""
    columns, depth = b.shape
    (left, left_word), (right, right_word) = laid(a, mode), laid(b, mode)
    behind = -(-len(left) // 1024) * 1024
    content = np.zeros(behind + len(right), "u1")
    content[: len(left)], content[behind:] = left, right
    words = content.view("u4")
    count = columns // 2
    registers = "{" + ", ".join(f"%r{100 + number}" for number in range(count)) + "}"
    turns = "" if a.dtype.itemsize != 2 else ", 0, 0"
    code = f"""mov.u32 %r1, s; mov.u32 %r2, 0;
COPY: shl.b32 %r3, %r2, 9; shl.b32 %r4, %r0, 2; add.u32 %r5, %r3, %r4; setp.ge.u32 %p1, %r5, {len(content)};
@%p1 bra OUT;
cvt.u64.u32 %d10, %r5; add.u64 %d11, %d0, %d10; ld.global.u32 %r6, [%d11];
add.u32 %r7, %r1, %r5; st.shared.u32 [%r7], %r6; add.u32 %r2, %r2, 1; bra COPY;
OUT: bar.sync 0;
mul.wide.u32 %d12, %r0, {4 * count}; add.u64 %d13, %d1, %d12;
{"".join(f"ld.global.u32 %r{100 + n}, [%d13+{4 * n}];" for n in range(count))}
mov.b64 %d14, {left_word | BASE >> 4}; mov.b64 %d15, {right_word | (BASE + behind) >> 4};
setp.ne.u32 %p2, {adds}, 0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n{columns}k{depth}.f32.{names} {registers}, %d14, %d15, %p2, 1, 1{turns};
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
{"".join(f"st.global.u32 [%d13+{4 * n}], %r{100 + n};" for n in range(count))}"""
    found = launch(kernel(code, 2, shared=len(content)), [words, spread(c)], 128)[1]
    return gathered(found, columns)


def places(columns: int) -> tuple[Array, Array]:
    """The row and the column of each register of each thread."""
    thread, number = np.meshgrid(np.arange(128), np.arange(columns // 2), indexing="ij")
    row = thread // 32 * 16 + thread % 32 // 4 + 8 * (number // 2 % 2)
    return row, number // 4 * 8 + thread % 4 * 2 + number % 2


def spread(matrix: Array) -> Array:
    return np.ascontiguousarray(matrix[places(matrix.shape[1])])


def gathered(held: Array, columns: int) -> Array:
    found = np.zeros((ROWS, columns), "f4")
    found[places(columns)] = held
    return found


@pytest.mark.parametrize("mode", WIDTHS)
@pytest.mark.parametrize("adds", [0, 1])
def test_products_of_halves(mode: int, adds: int) -> None:
    a, b = RNG.standard_normal((ROWS, 16)).astype("f2"), RNG.standard_normal((16, 16)).astype("f2")
    c = RNG.standard_normal((ROWS, 16)).astype("f4")
    found = product(a, b, c, "f16.f16", mode, adds=adds)
    np.testing.assert_allclose(found, a.astype("f8") @ b.T.astype("f8") + adds * c, rtol=3e-7, atol=1e-6)


def test_products_of_bfloats_and_tf32() -> None:
    a, b = RNG.standard_normal((ROWS, 16)).astype("f4"), RNG.standard_normal((8, 16)).astype("f4")
    x, y = ((one.view("u4") >> 16).astype("u2") for one in (a, b))
    wide = [(one.astype("u4") << 16).view("f4").astype("f8") for one in (x, y)]
    c = np.zeros((ROWS, 8), "f4")
    np.testing.assert_allclose(product(x, y, c, "bf16.bf16"), wide[0] @ wide[1].T, rtol=3e-7, atol=1e-6)
    cut = [(one.view("u4") & 0xFFFFE000).view("f4") for one in (a[:, :8], b[:, :8])]
    wanted = cut[0].astype("f8") @ cut[1].T.astype("f8")
    found = product(np.ascontiguousarray(a[:, :8]), np.ascontiguousarray(b[:, :8]), c, "tf32.tf32")
    np.testing.assert_allclose(found, wanted, rtol=3e-7, atol=1e-6)
