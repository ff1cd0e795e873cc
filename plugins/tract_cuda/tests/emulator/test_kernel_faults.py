"""Faults planted in kernels of the runtime, wherever an instruction of a kind is: all are found, and no others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from typing import Final

import pytest
from planted import Case
from subjects import SUBJECTS

from tract_core.frozen import frozen

ORDERS = (0, 1, 7)
SYNC = r"bar(?:rier)?\.sync\s+0;"
_NEXT = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}
_OTHER = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


@frozen
class Fault:
    """What is planted. ``kind``: of mistake; ``pattern``: what is replaced in the PTX, wherever it is found."""

    kind: str
    pattern: str
    replacement: str | Callable[[re.Match[str]], str]


def _twice(found: re.Match[str]) -> str:
    return f"{found[1]}{2 * int(found[2])};"


def _one_more(found: re.Match[str]) -> str:
    return f"{found[1]}{int(found[2]) + 1};"


def _elsewhere(found: re.Match[str]) -> str:
    return f"{found[1]}{int(found[2]) // 2 or 2}, 31, -1;"


FAULTS: Final[Mapping[str, Fault]] = {
    "stores beside": Fault("index", r"(st\.global\.[\w.]+\s+\[%rd\d+)\]", r"\1+4]"),
    "loads beside": Fault("index", r"(ld\.global\.[\w.]+\s+[^\[]*\[%rd\d+)\]", r"\1+4]"),
    "loads before": Fault("index", r"(ld\.global\.[\w.]+\s+[^\[]*\[%rd\d+)\]", r"\1-4]"),
    "all are the first block": Fault("index", r"%ctaid\.x", "0"),
    "threads are one further": Fault("index", r"(mov\.u32\s+(%r\d+), %tid\.x;)", r"\1 add.s32 \2, \2, 1;"),
    "no barriers": Fault("barrier", SYNC, ""),
    "one more is inside": Fault("mask", r"setp\.(lt|le|gt|ge)\.", lambda found: f"setp.{_NEXT[found[1]]}."),
    "inside is outside": Fault(
        "mask", r"setp\.(lt|le|gt|ge|eq|ne)\.([su]\d+)", lambda found: f"setp.{_OTHER[found[1]]}.{found[2]}"
    ),
    "no guards": Fault("mask", r"@!?%p\d+ bra\s+\$L\w+;", ""),
    "one bound of two": Fault("mask", r"and\.pred", "or.pred"),
    "the other one is selected": Fault("mask", r"(selp\.\w+\s+%\w+, )([^,]+), ([^,]+),", r"\1\3, \2,"),
    "steps twice as long": Fault("stride", r"(shl\.b(?:32|64)\s+%\w+, %\w+, )(\d+);", _one_more),
    "elements twice as wide": Fault("stride", r"(mul\.wide\.[su]32\s+%\w+, %\w+, )(\d+);", _twice),
    "the size before": Fault(
        "stride",
        r"(ld\.param\.[bu]32\s+%r\d+, \[\w+_param_)(\d+)\]",
        lambda found: f"{found[1]}{max(int(found[2]) - 1, 0)}]",
    ),
    "strides of one": Fault("stride", r"mul\.lo\.s32(\s+%\w+, %\w+), %\w+;", r"mov.u32\1;"),
    "strides of one, added": Fault("stride", r"mad\.lo\.s32(\s+%\w+, %\w+), %\w+, (%\w+);", r"add.s32\1, \2;"),
    "one group less is waited for": Fault("async wait", r"(cp\.async\.wait_group\s+)(\d+);", _one_more),
    "nothing is waited for": Fault("async wait", r"cp\.async\.wait_(?:group\s+\d+|all);", ""),
    "groups are never closed": Fault("async wait", r"cp\.async\.commit_group;", ""),
    "whole pieces at the edges": Fault("mask", r"(cp\.async\.c[ga].*, 16), %r\d+;", r"\1;"),
    "without signs": Fault("type", r"(setp\.\w\w|min|max|shr|div|rem|cvt\.s64)\.s32", r"\1.u32"),
    "other halves": Fault("type", r"\.f16(?=x2|[.\s])", ".bf16"),
    "products of other halves": Fault("type", r"f32\.f16\.f16\.f32", "f32.bf16.bf16.f32"),
    "bytes of other signs": Fault("type", r"s32\.u8\.s8\.s32", "s32.s8.s8.s32"),
    "half of each word is stored": Fault("type", r"st\.global\.[bfu]32", "st.global.b16"),
    "half of each word is kept": Fault("type", r"ld\.shared\.[bf]32", "ld.shared.b16"),
    "one of four is stored": Fault("type", r"st\.global\.v4\.([bf]32)(.*), \{([^,]*),[^}]*\}", r"st.global.\1\2, \3"),
    "warps do the same": Fault("race", r"(mov\.u32\s+(%r\d+), %tid\.x;)", r"\1 and.b32 \2, \2, 31;"),
    "two blocks do the same": Fault("race", r"(mov\.u32\s+(%r\d+), %ctaid\.x;)", r"\1 shr.u32 \2, \2, 1;"),
    "half of the lanes are named": Fault("race", r"(shfl\.sync.*, 31, )-1;", r"\g<1>65535;"),
    "lanes from elsewhere": Fault("race", r"(shfl\.sync\.bfly\.b32.*, )(\d+), 31, -1;", _elsewhere),
    "an exchange in two steps": Fault(
        "race",
        r"atom[\w.]*\.exch\.b64\s+(%\w+), (\[[^\]]*\]), (%\w+);",
        r"ld.global.b64 \1, \2; st.global.b64 \2, \3;",
    ),
}
"""Each is a mistake that is easily made."""

PLANTED: Final[Mapping[str, tuple[str, ...]]] = {
    "turned": (
        "loads before",
        "no barriers",
        "inside is outside",
        "elements twice as wide",
        "half of each word is kept",
    ),
    "softmax": ("no barriers", "no guards", "one of four is stored", "half of the lanes are named", "loads beside"),
    "norm": (
        "stores beside",
        "one more is inside",
        "other halves",
        "half of the lanes are named",
        "strides of one, added",
    ),
    "sum across": ("loads beside", "no barriers", "strides of one", "the size before", "warps do the same"),
    "argmax": ("no barriers", "the other one is selected", "half of each word is kept", "two blocks do the same"),
    "sum in pieces": ("no barriers", "threads are one further", "no guards", "half of the lanes are named"),
    "pieces merged": ("no barriers", "loads before", "one more is inside", "half of each word is kept"),
    "tile": ("no barriers", "steps twice as long", "one more is inside", "two blocks do the same"),
    "tile, turned": ("loads beside", "no barriers", "the size before", "warps do the same"),
    "windows": ("no barriers", "one bound of two", "without signs", "strides of one", "stores beside"),
    "merge": ("all are the first block", "loads before", "strides of one", "half of each word is stored"),
    "vector": ("loads beside", "threads are one further", "one more is inside", "two blocks do the same"),
    "vector, turned": (
        "lanes from elsewhere",
        "half of the lanes are named",
        "the size before",
        "half of each word is stored",
    ),
    "dot": ("all are the first block", "strides of one", "no guards", "two blocks do the same"),
    "mma": (
        "no barriers",
        "one group less is waited for",
        "nothing is waited for",
        "groups are never closed",
        "whole pieces at the edges",
        "products of other halves",
        "one more is inside",
        "strides of one",
        "warps do the same",
    ),
    "mma of bytes": (
        "no barriers",
        "one group less is waited for",
        "whole pieces at the edges",
        "bytes of other signs",
        "steps twice as long",
        "one more is inside",
        "warps do the same",
    ),
    "attention": (
        "no barriers",
        "one bound of two",
        "steps twice as long",
        "lanes from elsewhere",
        "half of the lanes are named",
    ),
    "attention_mma": (
        "no barriers",
        "nothing is waited for",
        "groups are never closed",
        "one more is inside",
        "other halves",
    ),
    "depthwise": ("one bound of two", "without signs", "strides of one", "two blocks do the same"),
    "deconv": ("one bound of two", "the size before", "without signs", "stores beside"),
    "running": ("loads before", "no guards", "strides of one, added", "warps do the same"),
    "scan": ("no barriers", "one more is inside", "half of the lanes are named", "half of each word is kept"),
    "topk": ("no barriers", "one bound of two", "steps twice as long", "warps do the same"),
    "gather": ("loads beside", "inside is outside", "the size before", "one of four is stored"),
    "scatter_link": ("inside is outside", "strides of one", "two blocks do the same", "an exchange in two steps"),
    "scatter_sort": ("stores beside", "one more is inside"),
    "scatter": ("loads before", "the size before", "half of each word is stored"),
    "max pool": ("one bound of two", "without signs", "elements twice as wide", "two blocks do the same"),
    "mean pool": ("the other one is selected", "strides of one", "half of each word is stored"),
    "pad": ("the other one is selected", "without signs", "the size before"),
    "fft": ("loads before", "inside is outside", "strides of one, added"),
    "resize": ("stores beside", "no guards", "the size before"),
    "lrn": ("without signs", "inside is outside", "loads beside"),
    "grid_sample": ("one bound of two", "elements twice as wide", "half of each word is stored"),
    "indexed_matmul": ("loads beside", "steps twice as long", "half of the lanes are named", "two blocks do the same"),
    "check_pages": ("loads before", "inside is outside", "elements twice as wide"),
    "page_places": ("stores beside", "one more is inside", "the other one is selected", "warps do the same"),
    "copy_pages": ("all are the first block", "no guards", "two blocks do the same"),
    "store_pages": ("stores beside", "strides of one, added", "without signs", "other halves", "warps do the same"),
    "store_bytes": (
        "loads before",
        "inside is outside",
        "without signs",
        "half of the lanes are named",
        "warps do the same",
    ),
    "paged_attention": (
        "no barriers",
        "one more is inside",
        "strides of one",
        "half of each word is kept",
        "lanes from elsewhere",
        "two blocks do the same",
    ),
    "trilu": ("the other one is selected", "without signs", "steps twice as long"),
}
"""What is planted in which kernel: where an instruction is, and is not in vain."""

BARRIERS: Final[Mapping[str, int]] = {
    "turned": 1, "softmax": 2, "sum across": 1, "argmax": 1, "sum in pieces": 1, "pieces merged": 1, "tile": 2,
    "tile, turned": 2, "windows": 2, "mma": 1, "mma of bytes": 1, "attention": 3, "attention_mma": 1,
    "scan": 2, "topk": 2, "paged_attention": 2,
}  # fmt: skip
"""How many barriers each kernel has; the others have none."""

CASES = [(subject, fault) for subject, faults in PLANTED.items() for fault in faults]


@cache
def case(subject: str) -> Case:
    return Case(SUBJECTS[subject])


@pytest.mark.parametrize("subject", SUBJECTS)
def test_kernels_are_right_in_twenty_orders(subject: str) -> None:
    one = case(subject)
    assert [one.verdict(one.text, order) for order in range(20)] == [""] * 20


@pytest.mark.parametrize(("subject", "fault"), CASES)
def test_faults_are_found_in_every_order(subject: str, fault: str) -> None:
    one, planted = case(subject), FAULTS[fault]
    text, count = re.subn(planted.pattern, planted.replacement, one.text)
    assert count, one.text
    assert text != one.text
    for order in ORDERS:
        assert one.verdict(text, order), order


@pytest.mark.parametrize(
    ("subject", "number"), [(one, number) for one, count in BARRIERS.items() for number in range(count)]
)
def test_every_barrier_is_wanted(subject: str, number: int) -> None:
    one = case(subject)
    places = list(re.finditer(SYNC, one.text))
    assert len(places) == BARRIERS[subject]
    begin, end = places[number].span()
    text = one.text[:begin] + one.text[end:]
    for order in ORDERS:
        assert re.search("no barrier between|written by nobody|on its way", one.verdict(text, order))


def test_how_many_faults_are_planted() -> None:
    kinds = Counter(FAULTS[fault].kind for _, fault in CASES)
    kinds["barrier"] += sum(BARRIERS.values())
    assert kinds.keys() == {"index", "barrier", "mask", "stride", "async wait", "type", "race"}
    assert sum(kinds.values()) >= 150
    assert min(kinds.values()) >= 5, kinds
    assert len(CASES) == len(set(CASES))
    assert PLANTED.keys() == SUBJECTS.keys()
