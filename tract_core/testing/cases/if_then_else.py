"""Cases of branches."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.dims import Dim, symbol
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Mul
from tract_core.ops.elementwise import Neg
from tract_core.ops.if_then_else import Branch, IfThenElse
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.wiring import wire_one
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

_SIZES = {"B": 2, "S": 5}


def _body(op: Any, *facts: str) -> TypedModel:
    body = TypedModel()
    inputs = [body.add_source(f"x{slot}", parse_typed_fact(fact, body.symbols)) for slot, fact in enumerate(facts)]
    body.set_outputs([wire_one(body, "result", op, *inputs)])
    return body


def _constant(values: list[float]) -> TypedModel:
    body = TypedModel()
    body.set_outputs([body.add_const("result", np.array([values, values], np.float32))])
    return body


def _case(name: str, condition: Arg, branches: tuple[Branch, Branch], shape: tuple[Dim, ...], expected: Any) -> Case:
    sizes = {**_SIZES, "J": 5 if condition.values else 3}
    op = IfThenElse(*branches, (shape,))
    return Case(f"IfThenElse-{name}", op, [condition, "B,S,f32", "B,S,f32"], expected, sizes)


_B, _S, _J = symbol("B"), symbol("S"), symbol("J")
_YES, _NO = Arg("bool", values=True), Arg("1,1,bool", values=False)
_SUM = Branch(_body(Add(), "B,S,f32", "B,S,f32"), (1, 2))
_NEGATIVE = Branch(_body(Neg(), "B,S,f32"), (2,))
_SQUARE = Branch(_body(Mul(), "B,S,f32", "B,S,f32"), (1, 1))
_FIXED = Branch(_constant([1, 2, 3]), ())

_CASES = [
    _case("then", _YES, (_SUM, _NEGATIVE), (_B, _S), lambda _, x, y: x + y),
    _case("else", _NO, (_SUM, _NEGATIVE), (_B, _S), lambda *given: -given[2]),
    _case("one input twice", _YES, (_SQUARE, _SUM), (_B, _S), lambda *given: given[1] ** 2),
    _case("sizes differ, then", _YES, (_NEGATIVE, _FIXED), (_B, _J), lambda *given: -given[2]),
    _case("sizes differ, else", _NO, (_NEGATIVE, _FIXED), (_B, _J), lambda *_: np.array([[1, 2, 3]] * 2)),
    Case(
        "IfThenElse-sum or not",
        IfThenElse(Branch(_body(Reduce((1,), Reducer.SUM), "B,S,f32"), (1,)), _NEGATIVE, ((_B, _J),)),
        [_YES, "B,S,f32", "B,S,f32"],
        lambda *given: given[1].sum(axis=1, keepdims=True),
        {**_SIZES, "J": 1},
    ),
]

ROWS.add(CASES, "if_then_else", _CASES)
