"""Calling the row of a frontend's table: what it raises, and what it returns.

A row wires one operator of a format into operators of the core. It may be of any distribution, and errors name whose it
is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import isfunction
from typing import ParamSpec, TypeVar, cast

from tract_core.errors import LimitExceeded, ModelError, TractError
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.wired import Wired, outlet_of
from tract_core.plugins import Registry

P = ParamSpec("P")
R = TypeVar("R")


def call_row(registry: Registry, row: Callable[P, R], *arguments: P.args, **options: P.kwargs) -> R:
    """What a row returns. Raises TractError; whatever else goes wrong in it becomes a ModelError."""
    try:
        return row(*arguments, **options)
    except TractError:
        raise
    except MemoryError:
        raise LimitExceeded("there is not enough memory to wire it") from None
    except Exception as error:
        problem = f"it cannot be wired: {type(error).__name__}: {error}"
        raise ModelError(problem, hint=f"{_defect(registry, row)}; --debug shows the traceback") from error


def outlets_of(model: TypedModel, row: Callable[..., object], found: object) -> list[OutletId | None]:
    """The outlets that a row returned, ``None`` for one that is not computed.

    Raises ModelError, which names the row's distribution, when it returned something else.
    """
    several = isinstance(found, (tuple, list)) and not isinstance(found, OutletId)
    items = cast("Sequence[object]", found if several else (found,))
    outlets = [_outlet(model, one) for one in items]
    wrong = next((one for one in outlets if isinstance(one, str)), None)
    if wrong is None and (several or found is not None):
        return cast("list[OutletId | None]", outlets)
    what = f"a {type(items).__name__} with {wrong}" if several else wrong or "None, as if it had no return"
    problem = f"the function that wires it returned {what}, wanted an outlet, or one per output"
    raise ModelError(problem, hint=_defect(model.registry, row))


def _outlet(model: TypedModel, item: object) -> OutletId | str | None:
    """The outlet that an item of a result is, or what it is else."""
    if item is None:
        return None
    if not isinstance(item, (OutletId, Wired)):
        return f"a {type(item).__name__}"
    outlet = outlet_of(item)
    is_there = 0 <= outlet.node < len(model.nodes) and outlet.slot < len(model.nodes[outlet.node].outputs)
    return outlet if is_there else "an outlet of another model"


def _defect(registry: Registry, row: Callable[..., object]) -> str:
    """What to do about a row that is wrong."""
    if not isfunction(row):
        return "this is a defect of the distribution that brought it"
    return f"this is a defect of {registry.home_of(row)}: {row.__name__} in {row.__module__}"
