from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tract_core.ops.scatter import ScatterNd
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources


def _grid(*axes: list[int]) -> Any:
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)


@pytest.mark.parametrize(
    ("x", "places", "updates", "wanted"),
    [
        ("6,S,f32", _grid([2, 3, 4]), "3,S,f32", ["Slice", "Slice", "TypedConcat"]),
        ("6,S,f32", _grid([0, 1]), "2,S,f32", ["Slice", "TypedConcat"]),
        ("2,6,f32", _grid([0, 1], [4, 5]), "2,2,f32", ["Slice", "TypedConcat"]),
        ("3,f32", _grid([0, 1, 2]), "3,f32", ["Identity"]),
        ("6,S,f32", _grid([2, 4]), "2,S,f32", ["ScatterNd"]),
        ("2,6,f32", _grid([1], [4, 5]), "1,2,f32", ["ScatterNd"]),
        ("6,S,f32", _grid([4, 3]), "2,S,f32", ["ScatterNd"]),
    ],
    ids=str,
)
def test_a_block_is_spliced_in(x: str, places: Any, updates: str, wanted: list[str]) -> None:
    model, (data, new) = sources(x, updates)
    model.set_outputs([wire_one(model, "out", ScatterNd(), data, model.add_const("i", places), new)])
    assert operators(checked_declutter(model, {"S": 3})) == wanted


def test_a_reduction_stays() -> None:
    model, (data, new) = sources("6,S,f32", "2,S,f32")
    op = ScatterNd("add")
    model.set_outputs([wire_one(model, "out", op, data, model.add_const("i", _grid([0, 1])), new)])
    assert operators(checked_declutter(model, {"S": 3})) == ["ScatterNd"]
