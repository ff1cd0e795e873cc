"""Turns with arrays that lie on the device: what is needed for one, and what a caller may not give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations, product
from types import MappingProxyType
from typing import Any, Final, Protocol, cast

import numpy as np

from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.plugins.keys import Array
from tract_cuda.arrays import DeviceArray, seen
from tract_cuda.driver.device import Stream
from tract_cuda.program import Download, Upload
from tract_cuda.segments import Piece, Segment

Ends = Mapping[tuple[type[Upload | Download], OutletId], DeviceArray]
"""The other ends of copies that do not go to the host."""

NO_ENDS: Final[Ends] = MappingProxyType({})


class Pieces(Protocol):
    """What is asked of a plan."""

    @property
    def pieces(self) -> Sequence[Piece]:
        """All that is done, in order."""
        ...

    @property
    def inputs(self) -> Sequence[OutletId]:
        """Those of the model."""
        ...

    @property
    def outputs(self) -> Sequence[OutletId]:
        """Those of the model."""
        ...


@frozen
class DeviceTurn:
    """``segment``: the whole model. ``inputs``, ``out``: as they were given."""

    segment: Segment
    inputs: tuple[Any, ...]
    out: tuple[Any, ...] | None

    def seen(self, stream: Stream) -> tuple[list[DeviceArray | None], list[DeviceArray | None]]:
        """The inputs, and what is filled, where they lie on the device.

        Raises InputError for one that cannot be read there, and for one that is filled and overlaps with another.
        """
        sources, targets = ([seen(one, stream) for one in some or ()] for some in (self.inputs, self.out))
        pairs = [*product(sources, targets), *combinations(targets, 2)]
        if any(one is not None and other is not None and _overlap(one, other) for one, other in pairs):
            raise InputError("an array that is filled shares memory with another", hint="give each output its own")
        return sources, targets

    def on_host(self, sources: Sequence[DeviceArray | None]) -> list[Any]:
        """The inputs as NumPy can read them, ``sources`` being those on the device."""
        return [array if one is None else one for array, one in zip(self.inputs, sources, strict=True)]


def ends_of(kind: type[Upload | Download], outlets: Sequence[OutletId], arrays: Sequence[DeviceArray | None]) -> Ends:
    """The ends of the copies of one kind. There may be no arrays at all."""
    return {(kind, outlet): one for outlet, one in zip(outlets, arrays, strict=False) if one is not None}


def turn_there(plan: Pieces, inputs: Any, out: Any) -> DeviceTurn | None:
    """The turn that was asked for; ``None`` where nothing lies on the device, or not all of the model runs there."""
    given, filled = _listed(inputs), None if out is None else _listed(out)
    if given is None or (out is not None and filled is None) or len(given) != len(plan.inputs):
        return None
    every = (*given, *(filled or ()))
    if all(map(_is_array, every)) or not all(_is_array(one) or _lies_there(one) for one in every):
        return None
    segment = _whole(plan)
    return None if segment is None else DeviceTurn(segment, given, filled)


def stand_ins(given: Sequence[Any] | None, there: Sequence[DeviceArray | None]) -> list[Array]:
    """What was given, with arrays of the host for those on the device, of the same types and shapes."""
    return [array if one is None else one.stand_in for array, one in zip(given or (), there, strict=True)]


def _listed(values: Any) -> tuple[Any, ...] | None:
    return tuple(cast("Sequence[Any]", values)) if isinstance(values, (list, tuple)) else None


def _is_array(value: Any) -> bool:
    """Whether a value is an array of the host, as one that a runtime is given."""
    if not isinstance(value, np.ndarray):
        return False
    array = cast("Array", value)
    return array.flags.c_contiguous and array.dtype.isnative


def _lies_there(value: Any) -> bool:
    if hasattr(value, "__dlpack_device__"):
        return value.__dlpack_device__()[0] == 2
    return hasattr(value, "__cuda_array_interface__")


def _whole(plan: Pieces) -> Segment | None:
    """The only piece of a plan, if it has no other, and gives all outputs."""
    piece = plan.pieces[0] if len(plan.pieces) == 1 else None
    if not isinstance(piece, Segment):
        return None
    given = {one.outlet for one in piece.steps if isinstance(one, Download)}
    return piece if given.issuperset(plan.outputs) and len(given) == len(plan.outputs) else None


def _overlap(one: DeviceArray, other: DeviceArray) -> bool:
    return one.address < other.address + other.nbytes and other.address < one.address + one.nbytes
