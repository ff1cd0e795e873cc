"""The bits of elements, read as elements of another type, which may be wider or narrower."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class BytesAs(TypedOp):
    """The same bytes as elements of the type ``to``, the least significant first.

    Narrower elements stand on one more axis, the last one; wider ones take the place of all elements on the last axis.
    """

    to: DatumType

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """One axis more or less. Raises FactError for texts, and for a last axis of another size."""
        (x,) = arity(self, inputs, 1)
        if DatumType.STRING in (x.datum_type.storage, self.to):
            raise FactError(f"BytesAs: texts have no bytes of their own, found {x} to {self.to.short}")
        before, after = x.datum_type.storage.itemsize, self.to.itemsize
        if before == after:
            return (TypedFact.of(self.to, x.shape),)
        if before > after:
            return (TypedFact.of(self.to, (*x.shape, before // after)),)
        if not x.rank or not may_equal(x.shape[-1], after // before):
            raise FactError(f"BytesAs to {self.to.short} wants a last axis of size {after // before}, found {x}")
        return (TypedFact.of(self.to, x.shape[:-1]),)


@ROWS.row(REFERENCE, BytesAs)
def reference(op: BytesAs, x: Array) -> Array:
    """numpy.ndarray.view"""
    source = np.ascontiguousarray(x).reshape(x.shape)
    after = op.to.itemsize
    if source.itemsize < after:
        return source.view(op.to.numpy)[..., 0]
    return source[..., np.newaxis].view(op.to.numpy) if source.itemsize > after else source.view(op.to.numpy)


@ROWS.row(COST, BytesAs)
def cost(op: BytesAs, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, BytesAs)
def axes(op: BytesAs, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Axes stay in place where there are as many."""
    ranks = [inputs[0].rank], [outputs[0].rank]
    return AxesMapping.natural(*ranks) if ranks[0] == ranks[1] else AxesMapping.disconnected(*ranks)
