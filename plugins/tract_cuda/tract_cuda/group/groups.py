"""The kinds of groups that there are on a GPU: what their kernels compute."""

from __future__ import annotations

from collections.abc import Iterator

from tract_llvm.fuse.chain import Chain
from tract_llvm.fuse.region import Region

from tract_core.compile.groups import Group
from tract_core.frozen import frozen
from tract_core.model.typed import TypedModel
from tract_cuda.blocks import BlockRecord
from tract_cuda.kernels.blocks import BlockForm


@frozen
class Host(Group):
    """One node that is left to the node executor. ``why``: for want of what."""

    why: str

    def notes(self, model: TypedModel) -> Iterator[str]:
        """The reason."""
        yield self.why


@frozen
class Alone(Group):
    """One node, which has a kernel of its own, or several, or is a view."""


@frozen
class Packed(Group):
    """One node whose result stays in blocks, which kernels unpack as they read.

    ``form``: how numbers lie in these. ``record``: where its parts lie among bytes; ``None`` where they are the inputs
    of a `DequantizeLinear`, which are part of the model.
    """

    form: BlockForm
    record: BlockRecord | None

    def notes(self, model: TypedModel) -> Iterator[str]:
        """How long blocks are, and of what."""
        yield f"blocks of {self.form.length} {self.form.codes.name}, with a scale in {self.form.scale.name}"


@frozen
class Epilogue(Group):
    """One node with a kernel of its own, and the chain behind it, computed while its elements are at hand."""

    chain: Chain

    def notes(self, model: TypedModel) -> Iterator[str]:
        """The chain."""
        yield from self.chain.notes(model)


@frozen
class Products(Epilogue):
    """A sum of products of two factors: the first input of the expression is the sum."""


@frozen
class Convolved(Epilogue):
    """A convolution: the first input of the expression is the sum of a window, the second one the bias."""


@frozen
class Elements(Epilogue):
    """A chain that begins with an element-wise node: all inputs of the expression are operands."""


@frozen
class Reduced(Group):
    """Nodes that reduce, and compute elements, along the same axes."""

    region: Region

    def notes(self, model: TypedModel) -> Iterator[str]:
        """The steps of a row."""
        yield from self.region.notes(model)


@frozen
class Scaled(Epilogue):
    """Numbers into small integers, or back: the operands of the chain begin with the inputs of the node."""
