from __future__ import annotations

import numpy as np
import pytest

from tract_core.dims import symbol
from tract_core.errors import FactError, RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.axis_dyn import DynMoveAxes, order_of, reference

U, V = symbol("U"), symbol("V")


@pytest.mark.parametrize(
    ("sizes", "x", "axes", "problem"),
    [
        ((U, V), "2,3,f32", "1,f32", "axes"),
        ((U, V), "2,3,f32", "i64", "the axes are i64, wanted a list of at most 2, for 2,3,f32"),
        ((U, V), "2,3,f32", "3,i64", "the axes are 3,i64, wanted a list of at most 2, for 2,3,f32"),
        ((U, V), "2,3,f32", "N,i64", "the axes are N,i64, wanted a list of at most 2, for 2,3,f32"),
        ((U,), "2,3,f32", "1,i64", r"\[U\] was announced for 2,3,f32"),
        ((2, 4), "2,3,f32", "1,i64", r"\[2,4\] was announced for 2,3,f32"),
    ],
)
def test_refusals(sizes, x, axes, problem):
    with pytest.raises(FactError, match=problem):
        DynMoveAxes(sizes).output_facts([parse_typed_fact(x), parse_typed_fact(axes)])


@pytest.mark.parametrize("axes", [[2], [-3], [0, 0], [1, -1]])
def test_axes_that_are_not_there_are_refused_in_the_run(axes):
    with pytest.raises(RunError, match=r"is outside a tensor of rank 2|of a tensor of rank 2 name one twice"):
        reference(DynMoveAxes((U, V)), np.zeros((2, 3)), np.array(axes))


def test_back_is_the_other_way():
    for axes in ([0], [2, 0], [-1, -2], [], [1, 2, 0]):
        there, back = order_of(axes, 3), order_of(axes, 3, back=True)
        assert [there[axis] for axis in back] == [0, 1, 2]
