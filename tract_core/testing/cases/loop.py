"""Cases of loops that end when a condition says so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tract_core.data import DatumType
from tract_core.data.boxes import boxed
from tract_core.dims import Dim, symbol
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis
from tract_core.ops.binary import Add, Lt, Mul, Sub
from tract_core.ops.cast import Cast
from tract_core.ops.concat import TypedConcat
from tract_core.ops.elementwise import Neg
from tract_core.ops.loop import Loop
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.sequence import SequenceInsert
from tract_core.ops.wiring import wire_binary, wire_one
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

_B, _N = symbol("B"), symbol("N")
_YES, _NO = Arg("bool", values=True), Arg("1,bool", values=[False])


def _times(count: int) -> Arg:
    return Arg("i64", values=count)


def _start(*facts: str) -> tuple[TypedModel, list[OutletId]]:
    """A body whose inputs are the number of the iteration, and tensors of these facts."""
    body = TypedModel()
    sources = [body.add_source("index", parse_typed_fact("i64"))]
    return body, sources + [body.add_source(f"x{slot}", parse_typed_fact(fact)) for slot, fact in enumerate(facts)]


def _accumulate() -> TypedModel:
    """``x += y``, without an end; every ``x`` is collected."""
    body, (_, x, y) = _start("B,3,f32", "B,3,f32")
    total = wire_one(body, "total", Add(), x, y)
    body.set_outputs([body.add_const("again", np.array(True)), total, total])
    return body


def _double_while_small() -> TypedModel:
    """``x *= 2``, as long as the sum is below 20."""
    body, (_, x) = _start("3,f32")
    twice = wire_binary(body, "twice", Mul(), x, body.add_const("two", np.array(2, np.float32)))
    total = wire_one(body, "total", Reduce((0,), Reducer.SUM), twice)
    small = wire_one(body, "small", Lt(), total, body.add_const("twenty", np.array([20], np.float32)))
    body.set_outputs([small, twice])
    return body


def _count_up() -> TypedModel:
    """One more element in every iteration: its number."""
    body, (index, x) = _start("K,i64")
    element = wire_one(body, "element", AddAxis(0), index)
    grown = wire_one(body, "grown", TypedConcat(0), x, element)
    body.set_outputs([body.add_const("again", np.array(True)), grown])
    return body


def _collect_in_sequence() -> TypedModel:
    """The number of the iteration, put at the end of a sequence."""
    body, (index, sequence) = _start("sequence(f32)")
    number = wire_one(body, "number", Cast(DatumType.F32), index)
    grown = wire_one(body, "grown", SequenceInsert(), sequence, number)
    body.set_outputs([body.add_const("again", np.array(True)), grown])
    return body


def _last_of() -> TypedModel:
    """Carries ``x += y``, gives ``x - y`` of the last iteration, and collects ``-x``."""
    body, (_, x, y) = _start("B,3,f32", "B,3,f32")
    less, minus = wire_one(body, "less", Sub(), x, y), wire_one(body, "minus", Neg(), x)
    body.set_outputs([body.add_const("again", np.array(True)), wire_one(body, "total", Add(), x, y), less, minus])
    return body


def _all_sums(count: int) -> Any:
    def sums(limit: Any, begin: Any, x: Any, y: Any) -> Any:
        steps = [x + (step + 1) * y for step in range(count)]
        return (x + count * y, np.array(steps) if steps else np.zeros((0, *x.shape)))

    return sums


def _last_values(_limit: Any, _begin: Any, x: Any, y: Any) -> Any:
    return x + 3 * y, x + y, np.array([-x, -x - y, -x - 2 * y])


def _case(name: str, op: Loop, inputs: Sequence[str | Arg], expected: Any, sizes: dict[str, int] | None = None) -> Case:
    return Case(f"Loop-{name}", op, inputs, expected, sizes or {})


_BOTH: tuple[tuple[Dim, ...], ...] = ((_B, 3), (_N, _B, 3))
_SUM = Loop(_accumulate(), 1, _N, _BOTH)
_XY = ("B,3,f32", "B,3,f32")
_DOUBLE = Loop(_double_while_small(), 1, _N, ((3,),))
_ONES = Arg("3,f32", values=[1.0, 1.0, 1.0])

_CASES = [
    _case("counted", _SUM, [_times(4), _YES, *_XY], _all_sums(4), {"B": 2, "N": 4}),
    _case("not at all", _SUM, [_times(4), _NO, *_XY], _all_sums(0), {"B": 2, "N": 0}),
    _case("no times", _SUM, [_times(0), _YES, *_XY], _all_sums(0), {"B": 2, "N": 0}),
    _case("less than no times", _SUM, [_times(-3), _YES, *_XY], _all_sums(0), {"B": 2, "N": 0}),
    _case("until", _DOUBLE, [_times(2**63 - 1), _YES, _ONES], lambda *_: np.full(3, 8.0), {"N": 3}),
    _case("until or counted", _DOUBLE, [Arg("1,i32", values=[2]), _YES, _ONES], lambda *_: np.full(3, 4.0), {"N": 2}),
    _case(
        "growing",
        Loop(_count_up(), 1, 3, ((_N,),)),
        [_times(3), _YES, Arg("2,i64", values=[7, 8])],
        lambda *_: np.array([7, 8, 0, 1, 2]),
        {"N": 5},
    ),
    _case(
        "last",
        Loop(_last_of(), 1, _N, ((_B, 3), (_B, 3), (_N, _B, 3)), last=1),
        [_times(3), _YES, *_XY],
        _last_values,
        {"B": 2, "N": 3},
    ),
    _case(
        "sequence",
        Loop(_collect_in_sequence(), 1, _N, ((),)),
        [_times(2), _YES, Arg("sequence(f32)", values=[9.0])],
        lambda *_: boxed([np.array(9.0), np.array(0.0), np.array(1.0)]),
        {"N": 2},
    ),
]

ROWS.add(CASES, "loop", _CASES)
