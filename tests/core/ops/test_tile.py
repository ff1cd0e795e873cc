"""What tiling refuses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.dims import symbol
from tract_core.errors import FactError, RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.tile import DynTile, Tile

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("op", "facts", "message"),
    [
        (Tile((2,)), ["2,3,f32"], r"multipliers are \[2\], wanted 2 that are not negative for 2,3,f32"),
        (Tile((-1,)), ["2,f32"], r"multipliers are \[-1\]"),
        (DynTile((4,)), ["2,f32", "2,i64"], r"wants 1 integers as multipliers, found 2,i64"),
        (DynTile((4, 4)), ["2,f32", "1,i64"], r"2 sizes were announced for 2,f32, of rank 1"),
    ],
)
def test_facts_that_do_not_fit(op: Any, facts: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact) for fact in facts])


def test_negative_multiplier_is_refused_in_the_run(run_op: Callable[..., list[Array]]) -> None:
    with pytest.raises(RunError, match=r"multipliers are \[-1\], wanted none that is negative"):
        run_op(DynTile((symbol("N"),)), [np.zeros(3, dtype=np.float32), np.array([-1])])
