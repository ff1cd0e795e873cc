"""Fourier transforms, and complex numbers as pairs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_core.data import Constant
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.ops.fft import ComplexToInnerDim, Fft, InnerDimToComplex, Stft
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(
    ROWS,
    CORE,
    "tract_core_fft(input: tensor<scalar>, axis: integer, inverse: logical = false) -> (output: tensor<scalar>)",
)
def read_fft(call: Call) -> OutletId:
    """Of pairs on the last axis, neither way divided by the number of elements."""
    x = call.input("input")
    return call.op(Fft(call.axis("axis", call.rank(x)), call.flag("inverse")), x)


@ROWS.row(NNEF_WRITE, Fft)
def write_fft(op: Fft, node: Spelling) -> Invocation | None:
    """With its direction."""
    return node.invoke("tract_core_fft", node.input(0), axis=op.axis, inverse=op.inverse, registry=CORE)


@reads(
    ROWS,
    CORE,
    "tract_core_stft(input: tensor<scalar>, axis: integer, frame: integer, stride: integer,"
    " window: tensor<scalar> = false) -> (output: tensor<scalar>)",
)
def read_stft(call: Call) -> OutletId:
    """Frame by frame. Raises CorruptModel for a window that is computed."""
    x, window = call.input("input"), Constant(call.array("window")) if call.has("window") else None
    op = Stft(call.axis("axis", call.rank(x)), call.integer("frame"), call.integer("stride"), window)
    return call.op(op, x)


@ROWS.row(NNEF_WRITE, Stft)
def write_stft(op: Stft, node: Spelling) -> Invocation | None:
    """With the window as a constant."""
    window = None if op.window is None else node.constant("window", op.window)
    numbers = {"axis": op.axis, "frame": op.frame, "stride": op.stride}
    return node.invoke("tract_core_stft", node.input(0), **numbers, window=window, registry=CORE)


_COMPLEX: Final[Mapping[str, type[TypedOp]]] = {
    "tract_core_inner_dim_to_complex": InnerDimToComplex,
    "tract_core_complex_to_inner_dim": ComplexToInnerDim,
}
_NAMES: Final[Mapping[type, str]] = {op: name for name, op in _COMPLEX.items()}


@reads(ROWS, CORE, *(f"{name}(input: tensor<?>) -> (output: tensor<?>)" for name in _COMPLEX))
def read_complex(call: Call) -> OutletId:
    """Pairs become complex numbers, or the other way round."""
    return call.op(_COMPLEX[call.name](), call.input("input"))


@ROWS.row(NNEF_WRITE, *_NAMES)
def write_complex(op: TypedOp, node: Spelling) -> Invocation | None:
    """By its name."""
    return node.invoke(_NAMES[type(op)], node.input(0), registry=CORE)
