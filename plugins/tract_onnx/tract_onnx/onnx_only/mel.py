"""Bands of frequencies as wide as the ear hears them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, cast

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import RunError
from tract_core.frozen import frozen
from tract_core.limits import check_tensor
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, integers, scalar
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class MelWeightMatrix(TypedOp):
    """How much of each frequency of a Fourier transform is in each band: [``frequencies``, ``bands``], of type ``to``.

    Inputs, of rank 0: the number of bands; the length of the transform; samples per second; the lowest and the highest
    frequency of the bands, in hertz. Bands are equally wide on the mel scale, 2595 log10(1 + hertz / 700); each is a
    triangle, 1 in its middle, that reaches to the middles of its neighbours.
    """

    to: DatumType
    bands: Dim
    frequencies: Dim
    announces: ClassVar[tuple[str, ...]] = ("bands", "frequencies")

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """``frequencies`` times ``bands``. Raises FactError unless all inputs have rank 0, the first being integers."""
        roles = ("number of bands", "length of the transform", "samples per second", "lowest frequency", "highest one")
        for fact, role in zip(arity(self, inputs, 5), roles, strict=True):
            scalar(self, fact, role)
        for fact, role in zip(inputs[:3], roles, strict=False):
            integers(self, fact, role)
        return (TypedFact.of(self.to, (self.frequencies, self.bands)),)


@ROWS.row(REFERENCE, MelWeightMatrix)
def reference(op: MelWeightMatrix, *inputs: Array) -> Array:
    """The rising and the falling side of each triangle. Edges are frequencies of the transform, rounded down."""
    bands, length, rate, lowest, highest = inputs
    count, size = int(bands), int(length) // 2 + 1
    if count < 1 or size < 1 or int(rate) < 1:
        raise RunError(f"{count} bands of a transform of {int(length)} at {int(rate)} samples per second make no sense")
    check_tensor((size, count + 2), 8)
    low, high = (2595 * np.log10(1 + float(hertz) / 700) for hertz in (lowest, highest))
    # The standard divides the range into one step more than there are steps between the edges.
    mels = low + np.arange(count + 2) * ((high - low) / (count + 2))
    edges = (int(length) + 1) * (700 * (10 ** (mels / 2595) - 1)) // int(rate)
    if count < 1 or not 0 <= edges.min() <= edges.max() < size:
        raise RunError(f"{count} bands from {low:g} to {high:g} mel do not fit the {size} frequencies of the transform")
    first, middle, last = edges[:-2], edges[1:-1], edges[2:]
    places: Array = np.asarray(range(int(size)))[:, None]
    rising = (places - first) / np.maximum(middle - first, 1)
    falling = (last - places) / np.maximum(last - middle, 1)
    inside = (places >= first) & (places < last)
    slopes = cast("Array", np.where(places < middle, rising, falling))
    return cast("Array", np.where(places == middle, 1, np.where(inside, slopes, 0))).astype(op.to.numpy)


@ROWS.row(COST, MelWeightMatrix)
def cost(op: MelWeightMatrix, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One division per element."""
    return {"DIV(F64)": outputs[0].shape.volume}


@ROWS.row(AXES, MelWeightMatrix)
def axes(op: MelWeightMatrix, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """The axes of the output come from nowhere."""
    return AxesMapping.disconnected([0] * len(inputs), [2])
