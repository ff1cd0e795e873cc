"""Cases of models as operators."""

from __future__ import annotations

import numpy as np

from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Mul
from tract_core.ops.elementwise import Exp
from tract_core.ops.submodel import SubmodelOp
from tract_core.ops.wiring import wire_one
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Case

ROWS = Rows()


def _model() -> TypedModel:
    """x, y -> exp(x * y), x * y"""
    model = TypedModel()
    x, y = (model.add_source(name, parse_typed_fact("B,S,f32", model.symbols)) for name in "xy")
    product = wire_one(model, "product", Mul(), x, y)
    model.set_outputs([wire_one(model, "exp", Exp(), product), product])
    return model


def _nested() -> TypedModel:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,S,f32", model.symbols))
    model.set_outputs(model.wire_node("inner", SubmodelOp(_model()), [x, x])[:1])
    return model


_SIZES = {"B": 2, "S": 5}

_CASES = [
    Case("SubmodelOp", SubmodelOp(_model()), ["B,S,f32"] * 2, lambda x, y: (np.exp(x * y), x * y), _SIZES),
    Case("SubmodelOp-nested", SubmodelOp(_nested()), ["B,S,f32"], lambda x: np.exp(x * x), _SIZES),
    Case("SubmodelOp-its own symbols", SubmodelOp(_nested()), ["4,N,f32"], lambda x: np.exp(x * x), {"N": 3}),
]

ROWS.add(CASES, "submodel", _CASES)
