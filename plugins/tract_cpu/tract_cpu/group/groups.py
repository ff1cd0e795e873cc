"""The kinds of groups that there are on a CPU: what their kernels compute, in which blocks of channels.

Each says how it reads tensors, and how it gives its own: in blocks of a form, or plain, with their axes as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

from tract_llvm.fuse.chain import Chain
from tract_llvm.fuse.region import Region

from tract_core.compile.groups import Group, outlet_text
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_cpu.kernels.dots import DotGrouping
from tract_cpu.program.form import Form

Reading = tuple[OutletId, Form | None]
"""A tensor, and the blocks in which it is read; ``None`` where that is plain."""


@frozen
class CpuGroup(Group):
    """``reads``: the tensors of other groups, and how they are read. ``form``: the blocks of what comes out."""

    reads: tuple[Reading, ...]
    form: Form | None

    def notes(self, model: TypedModel) -> Iterator[str]:
        """In which blocks it works, if in any."""
        if self.form is not None:
            yield f"gives {self.form}"
        for outlet, form in self.reads:
            if form is not None:
                yield f"reads {outlet_text(model, outlet)} in {form}"


@frozen
class Host(CpuGroup):
    """One node that is left to the node executor. ``why``: for want of what."""

    why: str

    def notes(self, model: TypedModel) -> Iterator[str]:
        """The reason."""
        yield self.why


@frozen
class Alone(CpuGroup):
    """One node, which has a kernel of its own, or several, or is a view."""


@frozen
class Epilogue(CpuGroup):
    """One node with a kernel of its own, and the chain behind it, computed while its elements are at hand."""

    chain: Chain

    def notes(self, model: TypedModel) -> Iterator[str]:
        """The chain."""
        yield from CpuGroup.notes(self, model)
        yield from self.chain.notes(model)


@frozen
class Elements(Epilogue):
    """A chain that begins with an element-wise node."""


@frozen
class Products(Epilogue):
    """A sum of products over no axis: the product of two elements, and the chain behind it."""


@frozen
class Convolved(Epilogue):
    """A convolution, or a deconvolution, which reads its data first.

    ``grouping``: how products are summed in groups of channels; ``in_tiles``: whether in tiles.
    """

    grouping: DotGrouping | None
    in_tiles: bool


@frozen
class Channels(Convolved):
    """A product of a matrix that is part of the model with the channels at every position: as a convolution.

    ``slot``: which input is the data; ``axis``: where its channels are.
    """

    slot: int
    axis: int


@frozen
class Gates(Epilogue):
    """The product of a state, the chain behind it, and the epilogue of the recurrent network that reads its gates."""


@frozen
class Reduced(CpuGroup):
    """Nodes that reduce, and compute elements, along the same axes."""

    region: Region

    def notes(self, model: TypedModel) -> Iterator[str]:
        """The steps of a row."""
        yield from CpuGroup.notes(self, model)
        yield from self.region.notes(model)
