"""Weights of few values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

import numpy as np

from tract_core.analysis.findings import Finding
from tract_core.data import Constant, DatumType
from tract_core.errors import TransformError
from tract_core.model.const import Const
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel

Array = np.ndarray[Any, Any]

FEWEST: Final = 16
"""Constants of fewer elements are no weights, and stay as they are."""

MUCH: Final = 0.25
"""From this relative error of a weight on, users are told."""


@dataclass(frozen=True, slots=True)
class Palette:
    """Let every weight take one of a few values, evenly spaced between its smallest and its largest element."""

    name: ClassVar[str] = "palette"
    bits: int = field(metadata={"doc": "2^bits is how many values there are, 1 to 8 bits"})

    def apply(self, model: TypedModel) -> TypedModel:
        """The model with other weights. Raises TransformError for a number of bits that is none of 1 to 8."""
        if not 1 <= self.bits <= 8:
            raise TransformError(f"palette: 'bits' is {self.bits}, wanted 1 to 8")

        def change(op: TypedOp) -> TypedOp:
            weight = _weight(op)
            return op if weight is None else Const(Constant(self._rounded(weight)))

        return model.mapped(change, lambda fact: fact.without_value()).declutter()

    def examine(self, model: TypedModel) -> Iterator[Finding]:
        """The weights that change a lot."""
        for node in model.live_nodes():
            weight = _weight(node.op)
            if weight is None or not 1 <= self.bits <= 8:
                continue
            error = np.linalg.norm(self._rounded(weight) - weight) / max(float(np.linalg.norm(weight)), 1e-30)
            if error > MUCH:
                yield Finding(
                    "palette",
                    f"with {self.bits} bits the weight changes by {error:.0%}",
                    (f"node {node.name!r}",),
                    f"take more bits, as with --palette {self.bits + 2}",
                    "remark",
                )

    def _rounded(self, weight: Array) -> Array:
        low, high = float(weight.min()), float(weight.max())
        step = (high - low) / (2**self.bits - 1)
        return (low + np.rint((weight - low) / step) * step).astype(weight.dtype) if step else weight


def _weight(op: TypedOp) -> Array | None:
    """The finite floats that an operator holds, if there are enough of them to be a weight."""
    if not isinstance(op, Const) or not isinstance(op.value, Constant) or op.value.datum_type is not DatumType.F32:
        return None
    array = op.value.array
    return array if array.size >= FEWEST and np.isfinite(array).all() else None
