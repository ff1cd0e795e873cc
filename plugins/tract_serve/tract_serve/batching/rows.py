"""Where the rows of a model are, along which requests are joined: found in the model, and not assumed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tract_inferers.models.check import check_rows
from tract_inferers.models.follow import followed
from tract_inferers.models.policy import Policy
from tract_inferers.models.wiring import in_front

from tract_core.dims import is_symbolic, symbol
from tract_core.errors import TractError
from tract_core.frozen import frozen

if TYPE_CHECKING:
    from tract_core.model.fact import TypedFact
    from tract_core.model.typed import TypedModel

_TRIED: Final = 7
"""What other sizes are while rows are tried: the size of little else."""


@frozen
class RowAxes:
    """``symbol``: how many there are. ``inputs``, ``outputs``: along which axis of each they lie."""

    symbol: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def rows_of(model: TypedModel) -> RowAxes | str:
    """The rows of a model: what is computed of one depends on no other. Else the reason why there are none."""
    facts = [model.outlet_fact(outlet) for outlet in model.inputs]
    names = _shared_symbols(facts)
    if not names:
        return "no size of all inputs is one symbol"
    reason = ""
    for name in names:
        axes = [_axis(fact, name) for fact in facts]
        outputs = [_axis(model.outlet_fact(outlet), name) for outlet in model.outputs]
        if None in outputs:
            reason = reason or f"not every output has the size {name} once"
            continue
        found = RowAxes(name, tuple(_known(axes)), tuple(_known(outputs)))
        problem = _problem(model, found)
        if problem is None:
            return found
        reason = reason or problem
    return reason


def _problem(model: TypedModel, rows: RowAxes) -> str | None:
    """Why rows are none, if they are not."""
    trail = followed(model, rows.inputs, rows.symbol)
    if trail.lost is None and all(
        trail.axes[outlet] == axis for outlet, axis in zip(model.outputs, rows.outputs, strict=True)
    ):
        return None
    if trail.mixed is not None:
        return f"what one row gives depends on the others, in node {trail.mixed.name!r}"
    others = {name: _TRIED for fact in _facts(model) for name in fact.shape.symbols() if name != rows.symbol}
    try:
        known = model.substitute(others).clone().declutter()
        check_rows(Policy.around(in_front(known, rows.inputs, rows.symbol).declutter(), rows.symbol), None)
    except TractError as error:
        return error.problem
    return None


def _facts(model: TypedModel) -> list[TypedFact]:
    return [model.outlet_fact(outlet) for outlet in [*model.inputs, *model.outputs]]


def _shared_symbols(facts: Sequence[TypedFact]) -> list[str]:
    """Symbols that are a size of every input, the outermost ones of the first input first."""
    if not facts:
        return []
    first = [str(size) for size in facts[0].shape if is_symbolic(size)]
    return [name for name in dict.fromkeys(first) if all(_axis(fact, name) is not None for fact in facts)]


def _axis(fact: TypedFact, name: str) -> int | None:
    """The one axis whose size is that symbol."""
    found = [axis for axis, size in enumerate(fact.shape) if size == symbol(name)]
    others = sum(1 for size in fact.shape if is_symbolic(size) and name in str(size))
    return found[0] if len(found) == 1 and others == 1 else None


def _known(axes: Sequence[int | None]) -> list[int]:
    return [axis for axis in axes if axis is not None]
