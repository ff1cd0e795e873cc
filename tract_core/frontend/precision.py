"""Operators that stand for several of the core: narrow floats are computed in f32, and rounded once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from copy import copy
from functools import wraps
from typing import TypeVar

from tract_core.data import DatumType
from tract_core.frontend.wiring import SlotWiring
from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.wired import Results, Wired, outlet_of

N = TypeVar("N")
W = TypeVar("W", bound=SlotWiring)


def rounded_once(*, wide: Collection[int] = ()) -> Callable[[Callable[[N, W], Results]], Callable[[N, W], Results]]:
    """Decorator: let the wiring of an operator see f32 in the place of narrower inputs, and give what input 0 was.

    ``wide``: the outputs that are f32 all the same.
    """

    def decorate(function: Callable[[N, W], Results]) -> Callable[[N, W], Results]:
        @wraps(function)
        def wired(node: N, wire: W) -> list[OutletId | None]:
            kind, narrow = wire.dtype(wire.input(0)), is_narrow(wire, wire.input(0))
            widely = copy(wire)
            widely.slots = [None if x is None else widened(wire, x) for x in wire.slots]
            result = function(node, widely)
            outlets = [result] if isinstance(result, (OutletId, Wired)) else result
            rounded = [slot for slot in range(len(outlets)) if narrow and slot not in wide]
            found = [None if x is None else outlet_of(x) for x in outlets]
            return [x if x is None or slot not in rounded else wire.cast(x, kind) for slot, x in enumerate(found)]

        return wired

    return decorate


def is_narrow(wire: NodeWiring, x: OutletId) -> bool:
    """Whether a tensor holds floats of less than 32 bits."""
    kind = wire.dtype(x)
    return kind.is_float() and kind.itemsize < DatumType.F32.itemsize


def widened(wire: NodeWiring, x: OutletId) -> OutletId:
    """``x``, in f32 where it holds narrower floats."""
    return wire.cast(x, DatumType.F32) if is_narrow(wire, x) else x
