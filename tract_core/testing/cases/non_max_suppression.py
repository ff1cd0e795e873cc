"""Cases of boxes that do not overlap much with better ones, by numbers that one can follow on squared paper."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.dims import symbol
from tract_core.ops.non_max_suppression import NonMaxSuppression
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

_BOXES = [[[0, 0, 4, 4], [0, 1, 4, 5], [0, 2, 4, 6], [8, 8, 9, 9], [0, 0, 4, 4]]]
"""The second covers 3/5 of what it and the first cover, as do the third and the second; the first and third, 1/3."""
_SCORES = [[[0.5, 0.9, 0.7, 0.1, 0.5]]]


def _case(
    name: str, wanted: list[Any], most: int = 9, overlap: float = 0.5, least: float = 0.0, **options: Any
) -> Case:
    boxes, scores = options.get("boxes", _BOXES), options.get("scores", _SCORES)
    return Case(
        f"NonMaxSuppression-{name}",
        NonMaxSuppression(options.get("centred", False), symbol("K")),
        [Arg("B,N,4,f32", boxes), Arg("B,C,N,f32", scores), Arg("i64", most), Arg("f32", overlap), Arg("f32", least)],
        lambda *_: np.array(wanted, np.int64).reshape(-1, 3),
        {"B": 1, "C": len(scores[0]), "N": len(boxes[0]), "K": len(wanted)},
    )


_CENTRED = [[[2 + shift, 2, 4, 4] for shift in (0, 1, 2)]]

_CASES = [
    _case("half", [[0, 0, 1], [0, 0, 3]]),
    _case("the earlier of equal scores", [[0, 0, 1], [0, 0, 2], [0, 0, 0], [0, 0, 3]], overlap=0.7),
    _case("two", [[0, 0, 1], [0, 0, 2]], most=2, overlap=0.7),
    _case("a least score", [[0, 0, 1]], least=0.6),
    _case("centred", [[0, 0, 2], [0, 0, 0]], boxes=_CENTRED, scores=[[[0.1, 0.2, 0.3]]], centred=True),
    _case("classes", [[0, 0, 2], [0, 0, 0], [0, 1, 1]], boxes=_CENTRED, scores=[[[1, 2, 3], [1, 3, 2]]], centred=True),
]

ROWS.add(CASES, "non_max_suppression", _CASES)
