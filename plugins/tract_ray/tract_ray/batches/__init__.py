"""Batches of all kinds, one module for each, imported where a batch is one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

from tract_core.errors import InputError
from tract_core.importing import imported

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array
    from tract_ray.columns import BatchColumn
    from tract_ray.dead_letters import DeadLetters


class Batch(Protocol):
    """Columns of equally many rows.

    ``kept`` are names of columns that the result has, ``outputs`` arrays by the names of theirs, rows outermost,
    ``bad`` says why rows are, by their number.
    """

    names: Sequence[str]
    rows: int

    def column(self, name: str) -> BatchColumn:
        """The values of a column, not copied where they are numbers that lie in one piece."""
        ...

    def rows_of(self, kept: Sequence[str], outputs: Mapping[str, Array], good: Array | None) -> Any:
        """A batch of the rows of these numbers, ``None`` for all; ``outputs`` has no others."""
        ...

    def with_nulls(self, kept: Sequence[str], outputs: Mapping[str, Array], error: str, bad: Mapping[int, str]) -> Any:
        """A batch of all rows, in which bad ones have no outputs, and the reason in the column ``error``."""
        ...

    def letters(self, kept: Sequence[str], rows: Sequence[int], error: str, bad: Mapping[int, str]) -> DeadLetters:
        """The rows of these numbers, with the reasons in the column ``error``, as a file."""
        ...


_KINDS: Final[Mapping[tuple[str, str], str]] = {
    ("builtins", "dict"): "tract_ray.batches.arrays:ArrayBatch",
    ("pyarrow", "Table"): "tract_ray.batches.arrow:ArrowBatch",
    ("pyarrow", "RecordBatch"): "tract_ray.batches.arrow:RecordsBatch",
    ("pandas", "DataFrame"): "tract_ray.batches.frames:FrameBatch",
}
"""What wraps a batch, by the package and the name of its class or of one that it derives from."""


def batch_of(batch: Any) -> Batch:
    """A batch of any kind. Raises InputError for what is none."""
    for kind in type(batch).__mro__:
        place = _KINDS.get((kind.__module__.partition(".")[0], kind.__name__))
        if place is not None:
            module, _, name = place.partition(":")
            return getattr(imported(module), name)(batch)
    wanted = "a dictionary of NumPy arrays, a pyarrow.Table or a pandas.DataFrame"
    raise InputError(f"a batch is {wanted}; got {type(batch).__name__}")
