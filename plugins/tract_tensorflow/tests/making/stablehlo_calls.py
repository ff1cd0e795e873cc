"""Calls of targets by name, which LiteRT has no kernel for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import erf
from typing import Any

import numpy as np
from single import single

Case = tuple[str, bytes, list[Any]]

WANTED: Mapping[str, Callable[[Any], Any]] = {
    "Sharding": np.positive, "mhlo.acos": np.arccos, "mhlo.acosh": np.arccosh, "mhlo.asin": np.arcsin,
    "mhlo.asinh": np.arcsinh, "mhlo.atanh": np.arctanh, "mhlo.cosh": np.cosh, "mhlo.erf": np.vectorize(erf),
    "mhlo.sinh": np.sinh, "mhlo.tan": np.tan,
}  # fmt: skip


def given(name: str) -> Any:
    """Numbers that the function is defined for."""
    found = np.linspace(-0.9, 0.9, 7, dtype=np.float32)
    return found + 2 if name == "mhlo.acosh" else found


def expected(name: str) -> list[Any]:
    """What NumPy computes."""
    return [WANTED[name](given(name).astype(np.float64)).astype(np.float32)]


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """Each target."""
    for name in WANTED:
        options = {
            "callTargetName": name.encode(), "backendConfig": b"", "calledComputations": [],
            "customAttributes": np.zeros(0, np.uint8),
        }  # fmt: skip
        yield (name, *single("STABLEHLO_CUSTOM_CALL", [given(name)], options=("StablehloCustomCallOptions", options)))
