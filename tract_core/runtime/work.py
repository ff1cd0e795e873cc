"""How much a part of a model has to do: operations, and bytes that it reads and writes, for sizes that are known."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tract_core.dims import evaluate
from tract_core.errors import DimError
from tract_core.frozen import frozen
from tract_core.model.questions import node_cost

if TYPE_CHECKING:
    from tract_core.model.typed import TypedModel
    from tract_core.runtime.parts import Part

_NO_OPERATIONS = ("PARAMS", "BUF")
"""Kinds of cost that count elements, not operations."""


@frozen
class Work:
    """``operations``: a multiply-add counts as two. ``bytes``: of the tensors read or written, each whole and once."""

    operations: int
    bytes: int


@frozen
class Ceilings:
    """What a machine can do at most: operations a second, and bytes a second that come from its memory.

    ``operations_per_s``, ``bytes_per_s``: these two.
    """

    operations_per_s: float
    bytes_per_s: float

    def or_better(self, other: Ceilings) -> Ceilings:
        """The higher ones of two measurements: what others do on a machine lowers what it can do at a time."""
        operations = max(self.operations_per_s, other.operations_per_s)
        return Ceilings(operations, max(self.bytes_per_s, other.bytes_per_s))

    def share_of(self, work: Work, seconds: float) -> float:
        """How near a part comes to what is possible: 1 where operations, or bytes, take all of its time."""
        least = max(work.operations / self.operations_per_s, work.bytes / self.bytes_per_s)
        return least / seconds if seconds > 0 else 0.0


def work_of(model: TypedModel, part: Part, symbols: Mapping[str, int]) -> Work | None:
    """The work of a part of the model itself; ``None`` in bodies, and where a size is not known."""
    if part.body:
        return None
    try:
        operations = sum(
            evaluate(count, symbols) * (2 if kind.startswith("FMA") else 1)
            for node in part.within(model)
            for kind, count in node_cost(model, node, symbols).items()
            if not kind.startswith(_NO_OPERATIONS)
        )
        read = {outlet for node in part.within(model) for outlet in node.inputs if outlet.node not in part.nodes}
        facts = [model.outlet_fact(outlet) for outlet in [*read, *part.results(model)]]
        size = sum(evaluate(fact.shape.volume, symbols) * fact.datum_type.itemsize for fact in facts)
    except DimError:  # a size that only the middle of the run tells
        return None
    return Work(operations, size)
