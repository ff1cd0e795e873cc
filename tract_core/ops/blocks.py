"""Numbers in blocks, as files hold weights: bytes, and the operator that makes the numbers of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.data.blocks import (
    BF16,
    F16,
    IQ1_M,
    IQ1_S,
    IQ2_S,
    IQ2_XS,
    IQ2_XXS,
    IQ3_S,
    IQ3_XXS,
    IQ4_NL,
    IQ4_XS,
    MXFP4,
    NVFP4,
    Q2_K,
    Q3_K,
    Q4_0,
    Q4_1,
    Q4_K,
    Q5_0,
    Q5_1,
    Q5_K,
    Q6_K,
    Q8_0,
    Q8_1,
    TQ1_0,
    TQ2_0,
    BlockFormat,
)
from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()

_PLAIN: Final = (Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1)
_NESTED: Final = (Q2_K, Q3_K, Q4_K, Q5_K, Q6_K)
_CODED: Final = (IQ4_NL, IQ4_XS, MXFP4, NVFP4)
_GROUPED: Final = (IQ1_S, IQ1_M, IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS, IQ3_S)
_TERNARY: Final = (TQ1_0, TQ2_0)
_NARROW: Final = (F16, BF16)

FORMATS: Final[Mapping[str, BlockFormat]] = {
    form.name: form for form in (*_PLAIN, *_NESTED, *_CODED, *_GROUPED, *_TERNARY, *_NARROW)
}
"""Every format, by its name."""


@frozen
class UnpackBlocks(TypedOp):
    """The numbers that blocks stand for: bytes [..., n, size of a block] -> floats [..., n * length of a block].

    ``form``: the name of the format, one of `FORMATS`. ``to``: the type of the floats.
    """

    form: str
    to: DatumType = DatumType.F32
    unpacks: ClassVar[bool] = True

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """As many axes less one. Raises FactError for what are no blocks of the format."""
        (packed,) = arity(self, inputs, 1)
        form = FORMATS.get(self.form)
        if form is None:
            raise FactError(f"{self.name}: there is no format of blocks {self.form!r}", hint=f"there are {_KNOWN}")
        if packed.datum_type is not DatumType.U8 or packed.rank < 2 or packed.shape[-1] != form.size:
            raise FactError(f"{self.name}: the input is {packed}, wanted blocks of {form.size} bytes")
        if not self.to.is_float():
            raise FactError(f"{self.name} makes floats, not {self.to.short}")
        return (TypedFact.of(self.to, (*packed.shape[:-2], packed.shape[-2] * form.length)),)


_KNOWN: Final = ", ".join(FORMATS)


@ROWS.row(REFERENCE, UnpackBlocks)
def reference(op: UnpackBlocks, packed: Array) -> Array:
    """Computed in f32, and rounded once."""
    form = FORMATS[op.form]
    numbers = form.decode(np.ascontiguousarray(packed).reshape(-1, form.size))
    return numbers.reshape(*packed.shape[:-2], packed.shape[-2] * form.length).astype(op.to.numpy)


@ROWS.row(COST, UnpackBlocks)
def cost(op: UnpackBlocks, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """A product for each number."""
    return {f"FMA({op.to.name})": outputs[0].shape.volume}


@ROWS.row(AXES, UnpackBlocks)
def axes(op: UnpackBlocks, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """All axes but the last stay, so that who needs some rows of a matrix unpacks no others."""
    rank = inputs[0].rank
    return AxesMapping.natural_but([rank], [rank - 1], [rank - 2, rank - 1])
