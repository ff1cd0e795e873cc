"""A small model that tests write and read."""

from __future__ import annotations

import numpy as np

from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.elementwise import Exp


def small_model(fact: str = "B,3,f32", output: str = "y") -> TypedModel:
    """exp(x + [0, 1, 2]), for an input of that fact with three columns."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(fact, model.symbols))
    bias = model.add_const("bias", np.arange(3, dtype=np.float32).reshape(1, 3))
    (added,) = model.wire_node("added", Add(), [x, bias])
    model.set_outputs(model.wire_node(output, Exp(), [added]))
    return model
