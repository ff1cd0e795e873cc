"""Graphs that call one another: what is wrong with them is said."""

from __future__ import annotations

import struct

import pytest
from lite_files import content_of, opened, operators, patched
from tract_tensorflow.tflite.flatbuffer import FlatTable
from tract_tensorflow.tflite.options import MORE_OPTION_TABLES, OPTION_TABLES

import tract_core as tract
from tract_core.errors import CorruptModel, LimitExceeded, Unsupported
from tract_core.limits import LoadLimits


def options(content: bytes, graph: int, operator: int) -> FlatTable:
    table = operators(opened(content), graph)[operator]
    found = table.union("builtin_options", OPTION_TABLES) or table.union("builtin_options2", MORE_OPTION_TABLES)
    assert found is not None
    return found


def typed(content: bytes, **limits: int) -> None:
    tract.load_bytes(content, limits=LoadLimits(**limits))


def test_a_graph_that_calls_itself() -> None:
    content = content_of("control", "call of a composite")
    recursive = patched(content, options(content, 0, 0), "decomposition_subgraph_index", 0)
    with pytest.raises(CorruptModel, match="graph 0 calls itself"):
        typed(recursive)


@pytest.mark.parametrize("number", [-1, 2, 2**31 - 1])
def test_a_graph_that_is_not_there(number: int) -> None:
    content = content_of("control", "call of a composite")
    with pytest.raises(CorruptModel, match=f"graph {number} is asked for, the file has 2"):
        typed(patched(content, options(content, 0, 0), "decomposition_subgraph_index", number))


@pytest.mark.parametrize("sizes", [(2**31 - 1, 1000), (3, 2**31 - 1)])
def test_a_tensor_that_the_file_says_is_enormous_is_refused_before_it_is_made(sizes: tuple[int, int]) -> None:
    content = content_of("stablehlo", "IOTA 0 float32")
    named = [struct.pack("<Iii", 2, *one) for one in ((3, 4), sizes)]
    assert content.count(named[0]) == 1
    with pytest.raises(LimitExceeded, match=r"tensor 0 't0': FLOAT32 of shape .* takes \d+ bytes, 1000 are allowed"):
        typed(content.replace(*named), max_tensor_bytes=1000)
    typed(content, max_tensor_bytes=1000)
    if sizes[0] > 3:
        with pytest.raises(LimitExceeded, match=r"LoadLimits\(max_tensor_bytes=...\)"):
            typed(content.replace(*named))


def test_graphs_call_one_another_only_so_deep() -> None:
    content = content_of("control", "branch inside a branch True")
    typed(content, max_depth=3)
    with pytest.raises(LimitExceeded, match="graphs call one another more than 1 deep"):
        typed(content, max_depth=1)


def test_graphs_of_other_numbers_of_tensors() -> None:
    content = content_of("control", "loop 1 times")
    with pytest.raises(CorruptModel, match="graph 2, the condition of a loop, has 3 outputs, 1 is wanted"):
        typed(patched(content, options(content, 0, 0), "cond_subgraph_index", 2))
    with pytest.raises(CorruptModel, match="graph 1 has 1 outputs, 3 values go round"):
        typed(patched(content, options(content, 0, 0), "body_subgraph_index", 1))
    branch = content_of("control", "branch True")
    with pytest.raises(CorruptModel, match="graph 0 calls itself"):
        typed(patched(branch, options(branch, 0, 0), "then_subgraph_index", 0))


def test_a_call_of_an_unknown_target_is_named() -> None:
    content = content_of("stablehlo_calls", "mhlo.tan").replace(b"mhlo.tan", b"mhlo.tab")
    with pytest.raises(Unsupported, match=r"a call of 'mhlo.tab', wanted one of Sharding, mhlo\.acos"):
        typed(content)
