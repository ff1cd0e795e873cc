"""What was compared, and how near it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from tract_core.frozen import frozen
from tract_torch.tolerance import Difference, TractCheckTolerance


@frozen
class Trial:
    """One run of both. ``inputs``: ``example``, or ``seed N``; ``sizes``: the values of the archive's symbols.

    ``outputs``: how each of them differs.
    """

    inputs: str
    sizes: Mapping[str, int]
    outputs: tuple[Difference, ...]

    @property
    def name(self) -> str:
        """As ``seed 1 at B=3, S=7``."""
        at = _sizes(self.sizes)
        return f"{self.inputs} at {at}" if at else self.inputs


@frozen
class Refusal:
    """Sizes that were not compared. ``by``: ``module`` or ``archive``, whichever did not take them; ``reason``: its."""

    sizes: Mapping[str, int]
    by: str
    reason: str


@dataclass(slots=True)
class CheckReport:
    """What was compared, in order. Prints as a table.

    ``archive``: its path; ``runtime``: the name of ours that ran it. ``notes``: what kept the check from being whole.
    """

    archive: str
    runtime: str
    tolerance: TractCheckTolerance
    trials: list[Trial] = field(default_factory=list[Trial])
    refusals: list[Refusal] = field(default_factory=list[Refusal])
    notes: list[str] = field(default_factory=list[str])

    @property
    def largest(self) -> float:
        """The largest difference of any output."""
        return max((one.largest or 0.0 for trial in self.trials for one in trial.outputs), default=0.0)

    def values_of(self, symbol: str) -> set[int]:
        """The sizes of a symbol at which both were compared."""
        return {trial.sizes[symbol] for trial in self.trials if symbol in trial.sizes}

    def to_json(self) -> dict[str, Any]:
        """The same as lists, dictionaries, texts and numbers."""
        return asdict(self) | {"tolerance": self.tolerance.value, "largest": self.largest}

    def __str__(self) -> str:
        rows = [("inputs", "sizes", "output", "largest difference", "beyond")]
        for trial in self.trials:
            for one in trial.outputs:
                largest = "-" if one.largest is None else f"{one.largest:.3g}"
                beyond = f"{one.differing} of {one.elements}"
                rows.append((trial.inputs, _sizes(trial.sizes) or "-", one.name, largest, beyond))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        skipped = [f"not compared at {_sizes(one.sizes)}: the {one.by} refuses: {one.reason}" for one in self.refusals]
        title = f"{self.archive} on {self.runtime}, {self.tolerance.value}"
        return "\n".join([title, *lines, *skipped, *self.notes])


def _sizes(values: Mapping[str, int]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())
