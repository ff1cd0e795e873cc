"""Operators of the core that archives of the established engines can say come back as they were, and at once the same.

The models are the cases by which runtimes are checked: every operator with fixed sizes and with symbolic ones.
"""

from __future__ import annotations

import pytest
from nnef_runs import read_back, written

from tract_core.errors import Unsupported
from tract_core.model.same import same_model
from tract_core.ops.axis import AddAxis, MoveAxis, Reshape, RmAxis
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cast import Cast
from tract_core.ops.concat import TypedConcat
from tract_core.ops.elementwise import LeakyRelu
from tract_core.ops.iff import Iff
from tract_core.ops.pad import Pad
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.slice import Slice
from tract_core.ops.softmax import LogSoftmax, Softmax
from tract_core.ops.tile import Tile
from tract_core.plugins import default_registry
from tract_core.testing.case import CASES

SPELLED = (
    AddAxis,
    RmAxis,
    MoveAxis,
    Reshape,
    MultiBroadcastTo,
    Cast,
    TypedConcat,
    LeakyRelu,
    Iff,
    Pad,
    Reduce,
    Slice,
    Softmax,
    LogSoftmax,
    Tile,
)

FOUND = [case for cases in default_registry()[CASES].rows().values() for case in cases if isinstance(case.op, SPELLED)]

UNSAID = ("Pad-PadWrap", "Pad-bool")
"""What neither the standard nor the established engine has."""


def comes_back_inexactly(case, symbolic: bool) -> bool:
    """A mean of squares is a mean, of squares, in a file; which declutter joins where it can count."""
    mean = isinstance(case.op, Reduce) and case.op.reducer is Reducer.MEAN_OF_SQUARES
    return mean and (symbolic or "f16" in case.name)


@pytest.mark.parametrize("symbolic", [False, True], ids=["fixed", "symbolic"])
@pytest.mark.parametrize("case", [case for case in FOUND if not case.name.startswith(UNSAID)], ids=str)
def test_an_operator_comes_back(case, symbolic) -> None:
    model = case.model(symbolic=symbolic)
    found = read_back(model)
    assert same_model(found.declutter(), model.declutter()) is not comes_back_inexactly(case, symbolic)
    (shape,), (wanted,) = ([m.outlet_fact(one) for one in m.outputs] for m in (found, model))
    assert shape.without_value() == wanted.without_value()


@pytest.mark.parametrize("case", [case for case in FOUND if case.name.startswith(UNSAID)], ids=str)
def test_what_the_established_engine_cannot_say_is_refused_without_our_own_registry(case) -> None:
    with pytest.raises(Unsupported, match="cannot be written"):
        written(case.model(symbolic=False))
