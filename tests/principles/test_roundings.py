"""No rewrite changes a rounding that somebody can see: arithmetic gives the same bits, decluttered as wired."""

from __future__ import annotations

from typing import Final

import ml_dtypes
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops import binary as b
from tract_core.ops import elementwise as e
from tract_core.ops.wiring import wire_one
from tract_core.rules import declutter
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.tolerance import bit_mismatch

FLOATS: Final = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}

BINARY: Final = (b.Add(), b.Sub(), b.Mul(), b.Div(), b.Min(), b.Max(), b.Pow())
UNARY: Final = (e.Neg(), e.Abs(), e.Square(), e.Sqrt(), e.Recip(), e.Floor(), e.Ceil(), e.Round(), e.RoundHalfToEven())
"""What has one right result to the last bit."""

ENDS: Final = [0.0, -0.0, np.inf, -np.inf, np.nan, 2.0**127, 2.0**-149, 65504.0, 1e308]
NUMBERS: Final = st.sampled_from(ENDS) | st.sampled_from([1 / 3, 0.1, 0.5, 2.0, -1.0, 1.0]) | st.integers(-50, 50)
"""Constants: the ends of the types, powers of two, numbers without an exact reciprocal."""

STEPS: Final = st.sampled_from(UNARY) | st.tuples(st.sampled_from(BINARY), NUMBERS, st.booleans())


def _values(kind: type) -> np.ndarray:
    """Numbers that a step rounds one way or the other: multiples of small numbers, and the ends of the types."""
    multiples = np.outer([1, 3, 7, 41, 49], np.arange(-40, 40)).ravel()
    with np.errstate(over="ignore"):
        return np.concatenate([multiples, multiples / 16, ENDS]).astype(kind)


def _chain(fact: str, kind: type, steps: list[TypedOp | tuple[TypedOp, float, bool]]) -> TypedModel:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(f"S,{fact}", model.symbols))
    for place, step in enumerate(steps):
        if not isinstance(step, tuple):
            x = wire_one(model, f"step_{place}", step, x)
            continue
        op, number, constant_first = step
        with np.errstate(over="ignore"):
            constant = model.add_const(f"c_{place}", np.array([number], kind))
        x = wire_one(model, f"step_{place}", op, *((constant, x) if constant_first else (x, constant)))
    model.set_outputs([x])
    return model


@given(st.sampled_from(sorted(FLOATS)), st.lists(STEPS, min_size=2, max_size=6))
def test_arithmetic_gives_the_same_bits(fact: str, steps: list[TypedOp | tuple[TypedOp, float, bool]]) -> None:
    model = _chain(fact, FLOATS[fact], steps)
    simple = declutter(model.clone())
    x = _values(FLOATS[fact])
    (found,), (wanted,) = (TypedSimplePlan(each).run([x]) for each in (simple, model))
    assert bit_mismatch(found, wanted) is None
