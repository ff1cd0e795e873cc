"""What convolutions are made of, however they are computed."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.program.views import View

from tract_core.dims import Dim
from tract_core.frozen import frozen, replaced
from tract_cpu.kernels.dots import DotGrouping
from tract_cpu.place.chain import PlacedChain
from tract_cpu.products.weights import Weights
from tract_cpu.program.arguments import Given
from tract_cpu.program.form import Form


@frozen
class WindowAxis:
    """One spatial axis: its ``place`` in the tensors, and how the window moves along it.

    ``window``: its positions, ``dilation`` apart. ``stride``: from one window to the next. ``before``: the padding.
    """

    place: int
    window: int = 1
    stride: int = 1
    dilation: int = 1
    before: Dim = 0


@frozen
class ConvInput:
    """What a convolution reads, in axes as a tensor in blocks has. ``block``: channels that follow each other."""

    view: View
    block: int


@frozen
class Parts:
    """All that a convolution is made of.

    ``source``: what is read; ``form``: of the result; ``axes``: the spatial ones; ``has_batch``: whether there are
    several inputs, along the first axis; ``grouping``: how products are summed in groups of channels; ``in_tiles``:
    whether in tiles.
    """

    form: Form
    axes: tuple[WindowAxis, ...]
    source: ConvInput
    weights: Weights
    groups: int
    chain: PlacedChain
    result: View
    has_batch: bool
    grouping: DotGrouping | None = None
    in_tiles: bool = False

    @property
    def depthwise(self) -> bool:
        """Whether each channel is summed alone."""
        return self.weights.inputs == 1 and self.groups == self.weights.outputs and self.groups > 1


def target_of(parts: Parts, view: View, moves: Sequence[Dim]) -> dict[str, Given]:
    """What kernels are told of an operand behind the sums, or of the result.

    ``moves``: how far apart its elements are along each loop over positions.
    """
    batch = view.strides[0] if parts.has_batch else 0
    return {"tensor": view.address, "batch": batch, "block": view.strides[parts.form.axis], "moves": list(moves)}


def first(parts: Parts) -> View:
    """The data from what the first window reads first on."""
    source = parts.source.view
    offset = source.offset
    for one in parts.axes:
        offset = offset - source.strides[one.place] * one.before
    return replaced(source, offset=offset)
