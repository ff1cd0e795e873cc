"""Operators of the core that archives of the established engines can say come back as they were, and at once the same.

The models are the cases by which runtimes are checked: every operator with fixed sizes and with symbolic ones.
"""

from __future__ import annotations

import established
import numpy as np
import pytest
from established import interchange
from statements import read_back, written
from tract_nnef.documents.saver import NnefWriter
from tract_nnef.options import Writing

from tract_core.errors import Unsupported
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.same import same_model
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, MoveAxis, Reshape, RmAxis
from tract_core.ops.binary import Binary, FloorRem, Rem, SubF
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cast import Cast
from tract_core.ops.concat import TypedConcat
from tract_core.ops.elementwise import ElementWise, GeluExact
from tract_core.ops.iff import Iff
from tract_core.ops.pad import Pad, PadWrap
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.slice import Slice
from tract_core.ops.softmax import LogSoftmax, Softmax
from tract_core.ops.tile import Tile
from tract_core.plugins import default_registry
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.case import CASES

SPELLED = (
    AddAxis,
    RmAxis,
    MoveAxis,
    Reshape,
    MultiBroadcastTo,
    Cast,
    TypedConcat,
    Binary,
    ElementWise,
    Iff,
    Pad,
    Reduce,
    Slice,
    Softmax,
    LogSoftmax,
    Tile,
)

FOUND = [case for cases in default_registry()[CASES].rows().values() for case in cases if isinstance(case.op, SPELLED)]

NARROW = [f"{op}-bf16-ends and {one}" for op in ("Min", "Max") for one in ("0.0", "-0.0", "1.0", "nan")]
"""What has constants of bf16."""

UNSAID = ("Pad-PadWrap-5", "Pad-bool", "Rem-", "FloorRem-", *NARROW)
"""What neither the standard nor the established engine has."""


def comes_back_inexactly(case, symbolic: bool) -> bool:
    """Whether declutter cannot tell that it is that operator which was spelled by others."""
    if isinstance(case.op, Reduce) and case.op.reducer is Reducer.MEAN_OF_SQUARES:
        return symbolic or "f16" in case.name
    if isinstance(case.op, SubF):
        (a, b) = (parse_typed_fact(arg.fact).shape for arg in case.args)
        return a == b
    around = isinstance(case.op, Pad) and isinstance(case.op.mode, PadWrap)
    return around or (isinstance(case.op, GeluExact) and "f16" in case.name)


@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
@pytest.mark.parametrize("case", [case for case in FOUND if not case.name.startswith(UNSAID)], ids=str)
def test_an_operator_comes_back(case, symbolic) -> None:
    model = case.model(symbolic=symbolic)
    found = read_back(model)
    if not comes_back_inexactly(case, symbolic):
        assert same_model(found.declutter(), model.declutter())
        return
    assert not same_model(found.declutter(), model.declutter())
    agree([found, model], case.given(), 1e-3 if "f16" in case.name else 1e-6)


def agree(models, inputs, tolerance=0.0) -> None:
    outputs = [TypedSimplePlan(one).run(inputs) for one in models]
    for computed, wanted in zip(*outputs, strict=True):
        np.testing.assert_allclose(computed, wanted, rtol=tolerance)


@pytest.mark.parametrize("case", [case for case in FOUND if case.name.startswith(UNSAID)], ids=str)
def test_what_the_established_engine_cannot_say_is_refused_without_our_own_registry(case) -> None:
    with pytest.raises(Unsupported, match=r"cannot be written|of bf16, which other engines do not read"):
        written(case.model(symbolic=False))


@pytest.mark.parametrize("op", [Rem(), FloorRem()], ids=str)
def test_remainders_of_integers_by_known_ones_are_what_quotients_leave(op) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("2,7,i32"))
    by = model.add_const("by", np.array([[3], [-4]], np.int32))
    model.set_outputs(model.wire_node("rest", op, [x, by]))
    agree([read_back(model), model], [np.array([np.arange(-3, 4), np.arange(-9, 12, 3)], np.int32)])


KINDS = ("bf16", "complex", "f8", "f4", "i4", "u4", "string", "Q")
"""Types that the established engine has not, or does not hand out."""

DEFECTS = {
    "Div-i32-written": "a division by nothing aborts",
    "Div-u8-written": "a division by nothing aborts",
    "Min-f": "not-a-number is not handed on",
    "Max-f": "not-a-number is not handed on",
    "Pow-i32-written": "integers are powers of floats",
    "Eq-bool-written": "truth values are not compared",
    "Square-B,i64": "only floats are squared",
    "Pad-PadReflect-5-0": "mirroring twice aborts",
    "Reduce-max-(1,)-B,S,bool": "truth values have no order",
    "Reduce-max nan": "not-a-number is not handed on",
    "Reduce-max of nothing": "the lowest number is not infinite",
    "Reduce-min of nothing": "the highest number is not infinite",
    "Reduce-sum of nothing": "sums of nothing abort",
    "Tile--f32": "no list may be empty",
}
"""What the established engine refuses, or computes otherwise."""

THERE = [
    case
    for case in FOUND
    if not case.name.startswith((*UNSAID, *DEFECTS))
    and not (isinstance(case.op, SubF) or any(kind in case.name for kind in KINDS))
]


@interchange
@pytest.mark.parametrize("case", THERE, ids=str)
def test_the_established_engine_computes_the_same(case, tmp_path) -> None:
    model = case.model(symbolic=False)
    NnefWriter(how=Writing(frozenset({"tract_core"}))).write(model, tmp_path / "m.tar")
    found = established.run(tmp_path / "m.tar", case.given())
    for computed, wanted in zip(found, TypedSimplePlan(model).run(case.given()), strict=True):
        assert computed.shape == wanted.shape
        np.testing.assert_allclose(computed, wanted, rtol=2e-3 if "f16" in case.name else 1e-5, atol=1e-6)
