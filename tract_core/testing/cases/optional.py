"""Cases of optionals."""

from __future__ import annotations

import numpy as np

from tract_core.data import DatumType, ItemFact, SequenceType
from tract_core.data.boxes import boxed
from tract_core.dims import symbol
from tract_core.ops.optional import OptionalConstruct, OptionalGetElement, OptionalHasElement, OptionalNone
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

_SOME = Arg("optional(_,f32)", values=[1.0, 2.0, 3.0])
_NONE = Arg("optional(_,f32)", values=None)
_LIST = Arg("optional(sequence(_,f32))", values=[[1.0], [2.0, 3.0]])
_N = symbol("N")

_CASES = [
    Case("OptionalConstruct-tensor", OptionalConstruct(), ["B,3,f32"], boxed, {"B": 2}),
    Case("OptionalConstruct-sequence", OptionalConstruct(), [Arg("sequence(_,f32)", values=[[1.0]])], lambda s: s),
    Case("OptionalNone-tensor", OptionalNone(ItemFact(DatumType.F32)), [], lambda: boxed(None)),
    Case(
        "OptionalNone-sequence",
        OptionalNone(ItemFact(SequenceType(ItemFact(DatumType.I8)), ())),
        [],
        lambda: boxed(None),
    ),
    Case("OptionalHasElement-some", OptionalHasElement(), [_SOME], lambda *_: np.array(True)),
    Case("OptionalHasElement-none", OptionalHasElement(), [_NONE], lambda *_: np.array(False)),
    Case("OptionalHasElement-sequence", OptionalHasElement(), [_LIST], lambda *_: np.array(True)),
    Case("OptionalGetElement-tensor", OptionalGetElement((_N,)), [_SOME], lambda *_: np.array([1, 2, 3]), {"N": 3}),
    Case(
        "OptionalGetElement-sequence",
        OptionalGetElement(()),
        [_LIST],
        lambda *_: boxed([np.array([1.0]), np.array([2.0, 3.0])]),
    ),
]

ROWS.add(CASES, "optional", _CASES)
