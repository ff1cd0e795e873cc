"""Symbolic sizes as native code give what `evaluate` gives, or say that they cannot be."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import CFUNCTYPE, c_int64, c_void_p
from functools import reduce
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tract_cpu.ahead.sizes import LARGEST_SYMBOL, SizeWriter, numbers_passed
from tract_cpu.ahead.targets import target_named
from tract_cpu.program.eventual import ENDLESS, Eventual
from tract_llvm.language.function import Function
from tract_llvm.language.types import INDEX, POINTER
from tract_llvm.llvm import ir
from tract_llvm.objects.target import llvm, machine_for, parsed

from tract_core.dims import Dim, broadcast, comparison, dim_max, dim_min, evaluate, symbol, symbols_of
from tract_core.dims.definitions import NO_DEFINITIONS, Definitions
from tract_core.errors import DimError

S, T = symbol("S"), symbol("T")
VALUES = (0, 1, 2, 7, 30, 1 << 20, LARGEST_SYMBOL)


class Native:
    """Sizes as a function, which writes what they are in a run."""

    def __init__(self, dims: Sequence[Dim | Eventual], definitions: Definitions = NO_DEFINITIONS) -> None:
        target, module = target_named("native"), ir.Module()
        f = Function(module, "sizes", target.isa, [INDEX, INDEX, POINTER], INDEX)
        writer, found = SizeWriter(f, numbers_passed(f, ("S", "T"), 0), definitions), f.buffer(2, INDEX)
        writer.define([dim for dim in dims if isinstance(dim, Dim)])
        for place, dim in enumerate(dims):
            found[place] = writer.of(dim)
        f.finish(f.convert(writer.fit, INDEX))
        machine = machine_for(target.isa, target.triple)
        self._linker = llvm.create_lljit_compiler(machine, use_jit_link=True)
        code = machine.emit_object(parsed(str(module), machine))
        self._held = llvm.JITLibraryBuilder().add_object_img(code).export_symbol("sizes").link(self._linker, "sizes")
        self._call = CFUNCTYPE(c_int64, c_int64, c_int64, c_void_p)(self._held["sizes"])
        self._count = len(dims)

    def __call__(self, s: int, t: int) -> list[int] | None:
        """The sizes for these values; ``None`` where they cannot be."""
        found = np.empty(self._count, np.int64)
        return found.tolist() if self._call(s, t, found.ctypes.data) else None


def wanted(dim: Dim, s: int, t: int) -> int | None:
    try:
        return evaluate(dim, {"S": s, "T": t})
    except DimError:
        return None


def dims() -> st.SearchStrategy[Dim]:
    """Sizes of a few operations."""
    leaves = st.one_of(st.integers(-9, 9), st.sampled_from([S, T]))

    def more(inner: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
        pairs = st.tuples(inner, inner)
        return st.one_of(
            pairs.map(lambda two: two[0] + two[1]),
            pairs.map(lambda two: two[0] - two[1]),
            pairs.map(lambda two: two[0] * two[1]),
            pairs.map(lambda two: dim_min(*two)),
            pairs.map(lambda two: dim_max(*two)),
            pairs.map(lambda two: comparison(two[0], ">=", two[1])),
            pairs.map(lambda two: comparison(two[0], "==", two[1])),
            st.tuples(inner, st.integers(1, 9)).map(lambda two: two[0] // two[1]),
        )

    return st.recursive(leaves, more, max_leaves=8)


@settings(max_examples=40, deadline=None)
@given(dims())
def test_sizes_are_what_evaluate_gives_or_too_large(dim: Dim) -> None:
    native = Native([dim])
    for s, t in product(VALUES, VALUES):
        found, exact = native(s, t), wanted(dim, s, t)
        if found is not None:
            assert found == [exact]
        assert found is not None or max(s, t) > 30


@pytest.mark.parametrize("sizes", [(S, T), (S, T, 5), (S + 1, 4)])
def test_broadcasts_that_contradict_themselves_cannot_be(sizes: Sequence[Dim]) -> None:
    dim = reduce(broadcast, sizes)
    native = Native([dim, 3])
    for s, t in product((0, 1, 3, 4, 5, 9), repeat=2):
        exact = wanted(dim, s, t)
        assert native(s, t) == (None if exact is None else [exact, 3])


def test_symbols_are_sizes() -> None:
    native = Native([S])
    assert native(0, 0) == [0]
    assert native(LARGEST_SYMBOL, 0) == [LARGEST_SYMBOL]
    for s, t in ((-1, 0), (0, -1), (LARGEST_SYMBOL + 1, 0), (-(1 << 63), 0), (0, (1 << 63) - 1)):
        assert native(s, t) is None


def test_what_64_bits_do_not_hold_cannot_be() -> None:
    """A product that is beyond them on its way to 0 can be: integers wrap around, and back."""
    cube, steep, gone = S * S * S, S * (1 << 30), S * S * T - S * S * T + 2
    assert gone == 2
    native = Native([cube])
    assert native(1 << 20, 0) == [1 << 60]
    assert native(1 << 21, 0) is None
    assert native(LARGEST_SYMBOL, 0) is None
    assert Native([steep])(LARGEST_SYMBOL, 0) is None
    assert Native([S * S * T])(LARGEST_SYMBOL, 0) == [0]


def test_names_of_sizes_are_written_where_they_are_wanted() -> None:
    names = Definitions()
    names.add("half", S // 2)
    names.add("both", symbol("half") * T)
    names.add("other", symbol("unknown") + 1)
    native = Native([symbol("both") + 1, S], names)
    assert native(7, 5) == [16, 7]


def test_what_only_a_run_tells_has_no_end() -> None:
    assert Native([Eventual(symbol("later") + 1), Eventual(S + 1)])(3, 0) == [ENDLESS, 4]
    assert symbols_of(S) == {"S"}
