"""Models with sequences and optionals, written as text: what they give here, and in ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
from onnx_check import assert_close, expected, load

from tract_core.data import Container
from tract_core.data.boxes import boxed, from_tensor
from tract_core.runtime.plan import TypedSimplePlan


def model_of(body, *, opset=17, functions=""):
    """A model from its text: ``f (float[N] x) => (float[N] y) { y = Neg (x) }``."""
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}, "local": 1]>\n{body}\n{functions}')


def plan_of(model, *, declutter=True):
    typed = load(model).into_typed()
    typed.check_consistency()
    if declutter:
        typed.declutter()
    return TypedSimplePlan(typed)


def give(plan, inputs):
    """Run; sequences are lists, an empty optional is ``None``, on both sides."""
    given = [
        boxed(value) if isinstance(fact.datum_type, Container) else value
        for value, fact in zip(inputs, plan.input_facts, strict=True)
    ]
    return [from_tensor(one) for one in plan.run(given)]


def outputs_of(body, *inputs, declutter=True, opset=17):
    return give(plan_of(model_of(body, opset=opset), declutter=declutter), inputs)


def assert_same(found, wanted):
    """Lists item by item, arrays in type, shape and elements (to the rounding of f32)."""
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        if isinstance(other, list):
            assert_same(one, other)
        elif other is None:
            assert one is None
        else:
            assert_close([one], [np.asarray(other)], 1e-6)


def check_text(body, *inputs, wanted=None, opset=17):
    """As wired and decluttered: what is ``wanted``, or else what ONNX Runtime gives."""
    model = model_of(body, opset=opset)
    if wanted is None:
        names = [info.name for info in model.graph.input]
        wanted = expected(model, dict(zip(names, inputs, strict=True)))
    for declutter in (False, True):
        assert_same(give(plan_of(model, declutter=declutter), inputs), wanted)
