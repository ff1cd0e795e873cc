"""Fourier transforms. A complex number is a pair of real ones on a last axis of size 2: real part, imaginary part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.dims import Dim, is_symbolic, product
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_be_at_most, may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, axis_in, float_type, wide
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()

_COMPLEX_OF: Final = {DatumType.F32: DatumType.COMPLEX_F32, DatumType.F64: DatumType.COMPLEX_F64}
_REAL_OF: Final = {complex_type: real for real, complex_type in _COMPLEX_OF.items()}


@frozen
class Fft(TypedOp):
    """The discrete Fourier transform along ``axis``, or the inverse one; neither divides by the number of elements."""

    axis: int
    inverse: bool = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's type and shape. Raises FactError unless these are floats with a last axis of size 2."""
        (x,) = arity(self, inputs, 1)
        found = _pairs(self, x, self.axis)
        if not may_be_at_most(1, x.shape[self.axis]):
            raise FactError(f"Fft: there is nothing to transform on axis {self.axis} of {x}")
        return (found,)


@frozen
class Stft(TypedOp):
    """The Fourier transforms of the frames of a signal: ``frame`` elements of ``axis`` each, starting every ``stride``.

    ``axis`` becomes the axis of frames, ``(size - frame) / stride + 1`` of them, and right after it comes the axis of
    the ``frame`` frequencies. Frames are multiplied by ``window`` (rank 1), which is centred, with zeros on both
    sides, where it is shorter than a frame.
    """

    axis: int
    frame: int
    stride: int
    window: Constant | None = None

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's type, one more axis. Raises FactError when no frame fits, or the window does not fit a frame."""
        (x,) = arity(self, inputs, 1)
        _pairs(self, x, self.axis)
        size = x.shape[self.axis]
        if self.frame < 1 or self.stride < 1 or not may_be_at_most(self.frame, size):
            raise FactError(f"Stft: frames of {self.frame} every {self.stride} do not fit axis {self.axis} of {x}")
        if self.window is not None and (self.window.array.ndim != 1 or self.window.array.size > self.frame):
            raise FactError(f"Stft: the window has shape {self.window.array.shape}, wanted at most [{self.frame}]")
        frames = (size - self.frame) // self.stride + 1
        return (x.with_shape((*x.shape[: self.axis], frames, self.frame, *x.shape[self.axis + 1 :])),)


@frozen
class InnerDimToComplex(TypedOp):
    """Pairs of real numbers on the last axis as complex numbers, without that axis."""

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """One axis less. Raises FactError unless the input is f32 or f64 with a last axis of size 2."""
        (x,) = arity(self, inputs, 1)
        if x.datum_type not in _COMPLEX_OF or not x.rank or not may_equal(x.shape[-1], 2):
            raise FactError(f"InnerDimToComplex wants f32 or f64 with a last axis of size 2, found {x}")
        return (TypedFact.of(_COMPLEX_OF[x.datum_type.storage], x.shape[:-1]),)


@frozen
class ComplexToInnerDim(TypedOp):
    """Complex numbers as pairs of real ones on a new last axis."""

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """One axis more, of size 2. Raises FactError for anything but complex numbers."""
        (x,) = arity(self, inputs, 1)
        if x.datum_type not in _REAL_OF:
            raise FactError(f"ComplexToInnerDim wants complex numbers, found {x}")
        return (TypedFact.of(_REAL_OF[x.datum_type.storage], (*x.shape, 2)),)


def _pairs(op: TypedOp, x: TypedFact, axis: int) -> TypedFact:
    """``x`` without its value, when it holds pairs of floats and ``axis`` is not that of the pairs."""
    if not x.rank or not may_equal(x.shape[-1], 2):
        raise FactError(f"{op.name} wants a last axis of size 2, for real and imaginary parts, found {x}")
    axis_in(op, axis, x.rank - 1)
    return float_type(op, x)


def _to_complex(x: Array) -> Array:
    """The same bits: to multiply by 1j would make infinite parts, and -0.0, something else."""
    real = np.ascontiguousarray(x, wide(x.dtype))
    return real.view(np.result_type(real, np.complex64))[..., 0]


def _to_pairs(x: Array, dtype: np.dtype[np.generic]) -> Array:
    return np.stack([x.real, x.imag], axis=-1).astype(dtype, copy=False)


@ROWS.row(REFERENCE, Fft)
def fft(op: Fft, x: Array) -> Array:
    """numpy.fft without its normalisation; narrow floats are transformed in f32"""
    values = _to_complex(x)
    count = values.real.dtype.type(x.shape[op.axis])
    found = np.fft.ifft(values, axis=op.axis) * count if op.inverse else np.fft.fft(values, axis=op.axis)
    return _to_pairs(found, x.dtype)


@ROWS.row(REFERENCE, Stft)
def stft(op: Stft, x: Array) -> Array:
    """Frames, times the window, each transformed."""
    if x.shape[op.axis] < op.frame:
        raise RunError(f"no frame of {op.frame} fits axis {op.axis}, of size {x.shape[op.axis]}")
    values = _to_complex(x)
    frames = np.lib.stride_tricks.sliding_window_view(values, op.frame, axis=op.axis)  # the window goes last
    frames = frames[(slice(None),) * op.axis + (slice(None, None, op.stride),)]
    if op.window is not None:
        frames = frames * _padded(op.window.array, op.frame).astype(values.real.dtype)
    return _to_pairs(np.moveaxis(np.fft.fft(frames, axis=-1), -1, op.axis + 1), x.dtype)


def _padded(window: Array, frame: int) -> Array:
    before = (frame - window.size) // 2
    return np.pad(window, (before, frame - window.size - before))


@ROWS.row(REFERENCE, InnerDimToComplex)
def inner_dim_to_complex(op: InnerDimToComplex, x: Array) -> Array:
    """Real part + i * imaginary part"""
    return _to_complex(x)


@ROWS.row(REFERENCE, ComplexToInnerDim)
def complex_to_inner_dim(op: ComplexToInnerDim, x: Array) -> Array:
    """The two parts, side by side."""
    return _to_pairs(x, x.real.dtype)


@ROWS.row(MEMORY, Fft, Stft)
def memory(op: Fft | Stft, made: int, x: Array) -> int:
    """What goes into the transform and comes out of it, laid out anew where that is not along the last axis; frames"""
    each = 2 * wide(x.dtype).itemsize
    copies = 3 if isinstance(op, Fft) else 4 if op.window is None else 5
    widened = x.size if 2 * x.itemsize != each else x.size // 2
    return each * (widened + copies * made // (2 * x.itemsize)) + made


@ROWS.row(COST, Fft)
def fft_cost(op: Fft, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """By Cooley and Tukey's counting, 3 multiply-adds per element and level; unknown where the axis is symbolic."""
    (x,) = inputs
    return _transform_cost(x, x.shape[op.axis], product(x.shape[:-1]))


@ROWS.row(COST, Stft)
def stft_cost(op: Stft, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """The transforms of all frames, and a product with the window."""
    elements = product(outputs[0].shape[:-1])
    found = dict(_transform_cost(inputs[0], op.frame, elements))
    if op.window is not None:
        kind = f"FMA({inputs[0].datum_type.storage.name})"
        found[kind] = found[kind] + elements * 2
    return found


def _transform_cost(x: TypedFact, size: Dim, elements: Dim) -> Mapping[str, Dim]:
    if is_symbolic(size):
        return {}
    levels = max(int(size) - 1, 0).bit_length()
    return {f"FMA({x.datum_type.storage.name})": elements * (3 * levels)}


@ROWS.row(COST, InnerDimToComplex, ComplexToInnerDim)
def free(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, Fft)
def fft_axes(op: Fft, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Axes stay in place, but those of the signal and of the pairs are disconnected."""
    rank = inputs[0].rank
    return AxesMapping.natural_but([rank], [rank], [op.axis, rank - 1])


@ROWS.row(AXES, Stft)
def stft_axes(op: Stft, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Axes keep their order; those of the signal, the frames, the frequencies and the pairs are disconnected."""
    rank = inputs[0].rank
    mapping = AxesMapping.natural_but([rank], [rank], [op.axis, rank - 1])
    (target,) = mapping.outputs
    return mapping.with_output(0, target[: op.axis + 1] + mapping.free_name() + target[op.axis + 1 :])


@ROWS.row(AXES, InnerDimToComplex)
def to_complex_axes(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place; that of the pairs ends."""
    return AxesMapping.natural([inputs[0].rank], [outputs[0].rank])


@ROWS.row(AXES, ComplexToInnerDim)
def to_pairs_axes(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place; that of the pairs begins."""
    return AxesMapping.natural([inputs[0].rank], [outputs[0].rank])
