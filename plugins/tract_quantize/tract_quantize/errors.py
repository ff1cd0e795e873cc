"""How far the results of a quantised model are from those of the model in floats."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt
from typing import Final

import numpy as np

from tract_core.frozen import frozen
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_core.runtime.protocol import Plan
from tract_quantize.calibration.calibrating import Say, print_nothing, turns_of
from tract_quantize.samples import Samples

SCORES: Final = (2, 3)
"""Tensors of so many axes are taken for scores: for each row, or for each place of each row."""


@frozen
class OutputError:
    """Of one output, by its ``name``, over all samples.

    ``error``: the norm of the difference over the norm of the result in floats, or the former where that is 0.
    ``largest``: of the differences. ``agreement``: of how many positions, of all along the other axes, the largest
    element along the last axis is the same one; ``None`` for an output that is no scores.
    """

    name: str
    error: float
    largest: float
    agreement: float | None


def worst(errors: Sequence[OutputError]) -> float:
    """The largest error of all outputs."""
    return max((one.error for one in errors), default=0.0)


def errors_of(
    model: TypedModel, plans: tuple[Plan, Plan], samples: Samples, say: Say = print_nothing
) -> list[OutputError]:
    """The errors of the outputs of ``model``. ``plans``: the one in floats, and the quantised one."""
    tallies = [_Tally() for _ in model.outputs]
    pairs = zip(turns_of(plans[0], samples), turns_of(plans[1], samples), strict=True)
    for turn, (wanted, found) in enumerate(pairs):
        say(f"comparing, sample {turn + 1} of {len(samples)}")
        for tally, one, other in zip(tallies, wanted, found, strict=True):
            tally.add(one, other)
    names = [model.outlet_name(outlet) for outlet in model.outputs]
    return [tally.error_of(name) for tally, name in zip(tallies, names, strict=True)]


class _Tally:
    """What is added up of one output."""

    def __init__(self) -> None:
        self._difference, self._whole, self._largest = 0.0, 0.0, 0.0
        self._same, self._places = 0, 0

    def add(self, wanted: Array, found: Array) -> None:
        """Take a result in floats, and the one beside it."""
        if not wanted.size or wanted.dtype.kind not in "fiub":
            return
        one, other = wanted.astype(np.float64), found.astype(np.float64)
        difference = np.abs(one - other)
        self._difference += float((difference**2).sum())
        self._whole += float((one**2).sum())
        self._largest = max(self._largest, float(np.nan_to_num(difference, nan=inf, posinf=inf).max()))
        if wanted.dtype.kind == "f" and wanted.ndim in SCORES and wanted.shape[-1] > 1:
            same = wanted.argmax(axis=-1) == found.argmax(axis=-1)
            self._same += int(same.sum())
            self._places += same.size

    def error_of(self, name: str) -> OutputError:
        """All of it together."""
        norm = sqrt(self._whole) or 1.0
        error = sqrt(self._difference) / norm if np.isfinite(self._difference) else inf
        return OutputError(name, error, self._largest, self._same / self._places if self._places else None)
