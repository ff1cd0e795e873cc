"""Cases of sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.data import DatumType
from tract_core.data.boxes import boxed
from tract_core.dims import symbol
from tract_core.ops.sequence import (
    ConcatFromSequence,
    SequenceAt,
    SequenceConstruct,
    SequenceErase,
    SequenceInsert,
    SequenceLength,
    SplitToSequence,
)
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

_ONE, _TWO, _THREE = [1.0, 2.0], [[3.0], [4.0]], [5.0, 6.0, 7.0]
_MIXED = Arg("sequence(..,f32)", values=[_ONE, _TWO, _THREE])
_ROWS = Arg("sequence(2,_,f32)", values=[[[1, 2], [3, 4]], [[5], [6]], [[7, 8, 9], [1, 2, 3]]])
_EMPTY = Arg("sequence(..,i64)", values=[])
_F32 = DatumType.F32
_N, _M = symbol("N"), symbol("M")


def _sequence(*items: Any) -> Any:
    return boxed([np.array(item, np.float64) for item in items])


def _at(position: int) -> Arg:
    return Arg("i64", values=position)


_CASES = [
    Case(
        "SequenceConstruct-two",
        SequenceConstruct(_F32),
        ["B,3,f32", "S,f32"],
        lambda x, y: boxed([x, y]),
        {"B": 2, "S": 4},
    ),
    Case("SequenceConstruct-empty", SequenceConstruct(DatumType.I64), [], lambda: boxed([])),
    Case("SequenceInsert-end", SequenceInsert(), [_MIXED, "S,f32"], lambda s, x: boxed([*s.item(), x]), {"S": 2}),
    Case("SequenceInsert-empty", SequenceInsert(), [_EMPTY, "2,i64"], lambda *given: boxed([given[1]])),
    Case("SequenceInsert-first", SequenceInsert(), [_MIXED, "1,f32", _at(0)], lambda s, x, *_: boxed([x, *s.item()])),
    Case(
        "SequenceInsert-last by number",
        SequenceInsert(),
        [_MIXED, "1,f32", _at(3)],
        lambda s, x, *_: boxed([*s.item(), x]),
    ),
    Case(
        "SequenceInsert-before the last",
        SequenceInsert(),
        [_MIXED, "1,f32", Arg("1,i32", values=[-1])],
        lambda s, x, *_: boxed([*s.item()[:2], x, s.item()[2]]),
    ),
    Case("SequenceErase-last", SequenceErase(), [_MIXED], lambda *_: _sequence(_ONE, _TWO)),
    Case("SequenceErase-first", SequenceErase(), [_MIXED, _at(-3)], lambda *_: _sequence(_TWO, _THREE)),
    Case("SequenceErase-middle", SequenceErase(), [_MIXED, _at(1)], lambda *_: _sequence(_ONE, _THREE)),
    Case("SequenceAt-front", SequenceAt((2, _N)), [_ROWS, _at(1)], lambda *_: np.array([[5], [6]]), {"N": 1}),
    Case("SequenceAt-back", SequenceAt((2, _N)), [_ROWS, _at(-3)], lambda *_: np.array([[1, 2], [3, 4]]), {"N": 2}),
    Case("SequenceLength-three", SequenceLength(), [_MIXED], lambda *_: np.array(3)),
    Case("SequenceLength-none", SequenceLength(), [_EMPTY], lambda *_: np.array(0)),
    Case(
        "SplitToSequence-sizes",
        SplitToSequence(1),
        ["B,5,f32", Arg("3,i64", values=[1, 3, 1])],
        lambda x, _: boxed([x[:, :1], x[:, 1:4], x[:, 4:]]),
        {"B": 2},
    ),
    Case(
        "SplitToSequence-one size",
        SplitToSequence(0),
        ["S,2,f32", Arg("i32", values=2)],
        lambda x, _: boxed([x[:2], x[2:4], x[4:]]),
        {"S": 5},
    ),
    Case(
        "SplitToSequence-without the axis",
        SplitToSequence(1, keep_axis=False),
        ["B,S,f32", Arg("i64", values=1)],
        lambda x, _: boxed([x[:, 0], x[:, 1], x[:, 2]]),
        {"B": 2, "S": 3},
    ),
    Case(
        "ConcatFromSequence-joined",
        ConcatFromSequence(1, False, (2, _N)),
        [_ROWS],
        lambda *_: np.array([[1, 2, 5, 7, 8, 9], [3, 4, 6, 1, 2, 3]]),
        {"N": 6},
    ),
    Case(
        "ConcatFromSequence-stacked",
        ConcatFromSequence(1, True, (3, _N)),
        [Arg("sequence(3,f32)", values=[[1, 2, 3], [4, 5, 6]])],
        lambda *_: np.array([[1, 4], [2, 5], [3, 6]]),
        {"N": 2},
    ),
]

ROWS.add(CASES, "sequence", _CASES)
