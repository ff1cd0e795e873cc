"""Cases of normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.ops.norm import RmsNorm
from tract_core.plugins.tables import Rows
from tract_core.testing.case import CASES, Arg, Case

ROWS = Rows()

_SIZES = {"B": 2, "S": 5}


def _rms_norm(axis: int, eps: float) -> Any:
    return lambda x: x / np.sqrt((x * x).sum(axis=axis, keepdims=True) / x.shape[axis] + eps)


def _case(axis: int, eps: float, arg: Arg) -> Case:
    return Case(f"RmsNorm-{axis}-{eps}-{arg.fact}", RmsNorm(axis, eps), [arg], _rms_norm(axis, eps), _SIZES)


_CASES = [
    _case(2, 1e-5, Arg("B,S,8,f32")),
    _case(1, 1e-6, Arg("B,S,8,f32")),
    _case(0, 0.5, Arg("S,f64")),
    _case(1, 1e-5, Arg("B,S,f16", high=300)),
    _case(1, 1e-5, Arg("B,S,bf16")),
    _case(1, 1e-3, Arg("B,S,f32", low=-1e-2, high=1e-2)),
    Case("RmsNorm-3 4", RmsNorm(0, 0.0), [Arg("2,f32", [3, 4])], lambda _: np.array([3, 4]) / np.sqrt(12.5)),
]

ROWS.add(CASES, "norm", _CASES)
