"""Products in tiles: where they are chosen, that they are exact in plain operations, and what the processor is told."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from tract_cpu.compile import program_of
from tract_cpu.kernels.code import code_of
from tract_cpu.kernels.tiles import TilesPlan, packed_row, whole_lines
from tract_cpu.plan import CpuPlan
from tract_cpu.program.program import NativeStep
from tract_cpu.target import Target
from tract_llvm.isa import ISAS, portable
from tract_llvm.objects import compilers
from tract_llvm.objects.library import module_text
from tract_llvm.testing.apart import assembly_apart

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Max
from tract_core.ops.cast import Cast
from tract_core.ops.einsum import EinSum

Array = np.ndarray[Any, Any]

AMX = next(one for one in ISAS if one.name == "amx")
PLAIN = portable(AMX)
"""The same, written out for this machine."""

SHORT = {"u1": "u8", "i1": "i8"}
BYTES = [("u1", "i1"), ("i1", "u1"), ("i1", "i1"), ("u1", "u1")]
SIZES = [(4, 3, 2), (5, 4, 16), (15, 64, 17), (16, 63, 31), (17, 65, 33), (31, 130, 32), (32, 64, 64), (33, 2, 65)]
SIZES += [(100, 1100, 40), (64, 0, 3), (0, 5, 40), (1, 9, 33), (2, 70, 20)]


def product(
    rows: int | str, left: str, weights: Array, acc: DatumType = DatumType.I32, *, chain: bool = False
) -> TypedModel:
    """Rows times a constant matrix; ``chain``: nothing below zero, and a number for each column added."""
    model, depth = TypedModel(), weights.shape[0]
    x = model.add_source("x", parse_typed_fact(f"{rows},{depth},{left}", model.symbols))
    right = model.add_const("w", weights)
    (found,) = model.wire_node("product", EinSum(AxesMapping.parse("mk,kn->mn"), acc), [x, right])
    if chain:
        kind = model.outlet_fact(found).datum_type.numpy
        bias = model.add_const("b", np.arange(weights.shape[1]).reshape(1, -1).astype(kind))
        (found,) = model.wire_node("sum", Add(), [found, bias])
        (found,) = model.wire_node("relu", Max(), [found, model.add_const("zero", np.zeros((1, 1), kind))])
    model.set_outputs([found])
    return model


def values(dtype: str, shape: tuple[int, ...], seed: int) -> Array:
    """Many of them at the ends of the type."""
    ends = np.iinfo(dtype)
    found = np.random.default_rng(seed).integers(ends.min, ends.max, shape, np.int64, endpoint=True)
    found.ravel()[::2], found.ravel()[1::3] = ends.min, ends.max
    return found.astype(dtype)


def tiled(model: TypedModel) -> list[TilesPlan]:
    return [
        step.kernel
        for step in program_of(model, Target(AMX)).steps
        if isinstance(step, NativeStep) and isinstance(step.kernel, TilesPlan)
    ]


@pytest.mark.parametrize(("left", "right"), BYTES, ids=str)
def test_products_of_bytes_are_exact(left: str, right: str) -> None:
    for rows, depth, columns in SIZES:
        a, b = values(left, (rows, depth), 0), values(right, (depth, columns), 1)
        for known, chain in (("M", False), (str(rows), True)):
            model = product(known, SHORT[left], b, chain=chain)
            assert len(tiled(model)) == (known == "M" or rows >= 4)
            wanted = (a.astype("i8") @ b.astype("i8")).astype("i4")
            if chain:
                wanted = np.maximum(wanted + np.arange(columns, dtype="i4"), 0)
            np.testing.assert_array_equal(CpuPlan(model, PLAIN).spawn().run([a])[0], wanted)


def test_the_tiles_of_all_kinds_of_bytes_flip_no_signs() -> None:
    for left, right in BYTES:
        ((kernel,),) = [tiled(product("M", SHORT[left], values(right, (8, 8), 0)))]
        assert kernel.grouping is not None
        assert not kernel.grouping.flips
        signs = left[0] + right[0]
        assert kernel.grouping.dot.name == f"x86.tdpb{signs.replace('i', 's')}d"
        assert not kernel.grouping.dot.turned


def test_sums_of_bytes_wrap_around() -> None:
    a, b = np.full((5, 140000), 255, "u1"), np.full((140000, 3), 255, "u1")
    wanted = (a.astype("i8") @ b.astype("i8")).astype("i4")
    np.testing.assert_array_equal(CpuPlan(product("M", "u8", b), PLAIN).spawn().run([a])[0], wanted)


@pytest.mark.parametrize("chain", [False, True])
def test_products_of_bf16_are_summed_in_f32(chain: bool) -> None:
    for rows, depth, columns in SIZES:
        random = np.random.default_rng(rows)
        a, b = (random.standard_normal(one).astype(ml_dtypes.bfloat16) for one in ((rows, depth), (depth, columns)))
        model = product("M", "bf16", b, DatumType.F32, chain=chain)
        assert len(tiled(model)) == 1
        found = CpuPlan(model, PLAIN).spawn().run([a])[0].astype("f8")
        wide = [one.astype("f8") for one in (a, b)]
        wanted, bound = wide[0] @ wide[1], np.abs(wide[0]) @ np.abs(wide[1])
        if chain:
            added = np.arange(columns).astype(ml_dtypes.bfloat16).astype("f8")
            wanted, bound = np.maximum(wanted + added, 0), bound + added
        assert np.all(np.abs(found - wanted) <= bound * 2.0**-7)


def test_bf16_that_is_no_number_stays_in_its_row() -> None:
    a = np.zeros((20, 40), ml_dtypes.bfloat16)
    a[3, 5], a[4, 39], a[17, 0] = np.nan, np.inf, -np.inf
    found = (
        CpuPlan(product("M", "bf16", np.ones((40, 8), ml_dtypes.bfloat16), DatumType.F32), PLAIN).spawn().run([a])[0]
    )
    wanted = np.zeros((20, 8))
    wanted[3], wanted[4], wanted[17] = np.nan, np.inf, -np.inf
    np.testing.assert_array_equal(found.astype("f8"), wanted)


def test_integers_that_fit_bytes_are_packed_as_such() -> None:
    weights, x = values("i1", (21, 18), 0).astype("i4"), values("u1", (9, 21), 1)
    model = TypedModel()
    (wide,) = model.wire_node("wide", Cast(DatumType.I32), [model.add_source("x", parse_typed_fact("9,21,u8"))])
    right = model.add_const("w", weights)
    model.set_outputs(model.wire_node("y", EinSum(AxesMapping.parse("mk,kn->mn"), DatumType.I32), [wide, right]))
    assert len(tiled(model)) == 1
    np.testing.assert_array_equal(CpuPlan(model, PLAIN).spawn().run([x])[0], x.astype("i8") @ weights)


def test_rows_that_lie_across_and_pairs_of_matrices() -> None:
    a, b = values("i1", (2, 3, 70, 19), 0), values("i1", (3, 70, 20), 1)
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,3,70,M,i8", model.symbols))
    op = EinSum(AxesMapping.parse("bhkm,hkn->bhmn"), DatumType.I32)
    model.set_outputs(model.wire_node("y", op, [x, model.add_const("w", b)]))
    assert len(tiled(model)) == 1
    wanted = np.einsum("bhkm,hkn->bhmn", a.astype("i8"), b.astype("i8"))
    np.testing.assert_array_equal(CpuPlan(model, PLAIN, 2).spawn().run([a])[0], wanted)


def test_what_is_packed_is_in_whole_tiles_that_meet_in_other_sets() -> None:
    assert [whole_lines(one) for one in (0, 1, 16, 17)] == [0, 16, 16, 32]
    assert [packed_row(one) for one in (1, 17, 32, 33)] == [16, 48, 48, 48]


def loops(text: str) -> Iterator[list[str]]:
    """The innermost loops of an assembly: their instructions."""
    labels, lines = dict[str, int](), list[str]()
    for line in text.splitlines():
        if found := re.match(r"(\.?\w+):", line):
            labels[found[1]] = len(lines)
        elif code := line.split("#")[0].strip():
            lines.append(code)
            jump = re.match(r"j\w+\s+(\.?\w+)", code)
            if jump and jump[1] in labels:
                body = lines[labels[jump[1]] :]
                if not any(re.match(r"j\w+\s", one) for one in body[:-1]):
                    yield body


KINDS = [*(("I32", SHORT[left], values(right, (256, 64), 0)) for left, right in BYTES)]
KINDS += [("F32", "bf16", np.ones((256, 64), ml_dtypes.bfloat16))]


@pytest.mark.parametrize(("acc", "left", "weights"), KINDS, ids=str)
def test_the_processor_multiplies_as_many_tiles_as_it_loads(acc: str, left: str, weights: Array) -> None:
    """Written in a process of its own, as code for tiles is."""
    (kernel,) = tiled(product("M", left, weights, DatumType[acc]))
    text = module_text(code_of(kernel, AMX).emit)
    assert kernel.grouping is not None
    product_of = kernel.grouping.dot.name.removeprefix("x86.")
    inner = [body for body in loops(assembly_apart(text, AMX)) if any(product_of in one for one in body)]
    counts = [
        [sum(one.startswith(code) for one in body) for code in (product_of, "tileload", "tilestore")] for body in inner
    ]
    assert [4, 4, 0] in counts
    for body in inner:
        assert not any(re.search(r"\(%r[sb]p", one) for one in body)
        assert not any(one.startswith("tilestore") for one in body)


def test_both_ways_do_the_same_calls() -> None:
    """Each call of an instruction is a loop over memory where it is written out, in the same order."""
    (kernel,) = tiled(product("M", "u8", values("i1", (256, 64), 0)))
    calls = re.findall(r"call void @.llvm\.x86\.(t\w+)", module_text(code_of(kernel, AMX).emit).replace('"', "."))
    assert {"tilezero", "tileloadd64", "tdpbusd", "tilestored64", "tilerelease"} == set(calls)
    plain = module_text(code_of(kernel, PLAIN).emit)
    assert "x86.t" not in plain


def test_what_llvm_does_not_survive_is_told() -> None:
    """Where the process that compiles ends, ours does not."""
    from tract_core.errors import Unsupported

    def work() -> None:
        with compilers.compiler(1, AMX) as found:
            found.start("this is no module; and the process that reads it ends").result()

    compilers_command = compilers._COMMAND  # there is no way to have LLVM end on purpose
    try:
        compilers._COMMAND = "import os, sys; sys.stdout.buffer.write(b'tract'); sys.stdout.flush(); os.abort()"
        with pytest.raises(Unsupported, match="LLVM ended"):
            work()
    finally:
        compilers._COMMAND = compilers_command
