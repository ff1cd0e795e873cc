"""Functions of one quantised number: what each integer becomes is computed when the model is loaded.

A function of bytes is a table of 256 entries. One of 16-bit numbers is a table of all 65536, which holds what the
kernels of TFLite compute for each, be it between the entries of their smaller tables, or with a fixed point.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.errors import FactError
from tract_core.ops.gather import Gather
from tract_core.ops.quantize import LookupTable
from tract_core.ops.rounding import limits
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_tensorflow.tflite.gemmlowp import times_factor
from tract_tensorflow.tflite.quantization import Quantization

OnIntegers = Callable[[Array], Array]
"""From integers of a type, in 64 bits, to those that a kernel makes of them."""

OnNumbers = Callable[[Array], Array]
"""From numbers to numbers, in f64."""

BYTES: Final = (DatumType.I8, DatumType.U8)


def by_table(x: Wired, function: OnIntegers, to: DatumType) -> Wired:
    """What a function makes of each integer, saturated in the type ``to``. Raises FactError for wider integers."""
    kind = x.dtype.storage
    low, high = limits(to)
    if kind in BYTES:
        values = np.arange(256).astype(np.uint8).view(kind.numpy).astype(np.int64)
        return x.op(LookupTable(Constant(np.clip(function(values), low, high).astype(to.numpy))))
    if kind is not DatumType.I16:
        raise FactError(f"a function of quantised numbers is given {x.fact}, wanted integers of 8 or 16 bits")
    values = np.arange(-(2**15), 2**15)
    table = x.operand(np.clip(function(values), low, high).astype(to.numpy))
    return table.op(Gather(0), x.cast(DatumType.I32) + 2**15)


def rounded(x: Array) -> Array:
    """The nearest integers in the type of ``x``, halves away from zero."""
    return np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x)


def of_bytes(x: Quantization, y: Quantization, function: OnNumbers) -> OnIntegers:
    """A function of the numbers that bytes stand for, as the kernels of TFLite fill a table: in f32, step by step."""
    scale, steps = np.float32(x.scale), np.float32(1) / np.float32(y.scale)

    def on_integers(values: Array) -> Array:
        numbers = scale * (values - x.zero).astype(np.float32)
        found = function(numbers.astype(np.float64)).astype(np.float32)
        return (rounded(found * steps) + np.float32(y.zero)).astype(np.int64)

    return on_integers


def of_words(x: Quantization, y: Quantization, function: OnNumbers) -> OnIntegers:
    """The same of 16-bit numbers: between the 513 entries of a table, each of which leans to the middle of its part."""
    entries = interpolated(np.float32(x.scale), x.zero, np.float32(y.scale), y.zero, function)
    return lambda values: between(entries, values)


def interpolated(scale: np.floating, zero: int, to_scale: np.floating, to_zero: int, function: OnNumbers) -> Array:
    """A table of 513 entries of a function over all 16-bit numbers, computed in the type of the scales."""
    kind = type(scale)
    first, last = scale * kind(-(2**15) - zero), scale * kind(2**15 - 1 - zero)
    span = to_scale * kind(2**15 - 1 - to_zero) - to_scale * kind(-(2**15) - to_zero)
    steps, step = kind(2**16) / span, (last - first) / kind(512)

    def at(places: Array) -> Array:
        return function(places.astype(np.float64)).astype(kind)

    starts = first + np.arange(512).astype(kind) * step
    here, middle = at(starts) * steps, rounded(at(starts + step / kind(2)) * steps)
    after = at(first + np.arange(1, 513).astype(kind) * step) * steps
    line = rounded((after + rounded(here)) / kind(2))
    found = rounded(here) - rounded((line - middle) / kind(2))
    end = rounded(at(np.array([last], kind)) * steps)
    return np.clip(np.concatenate([found, end]), -(2**15), 2**15 - 1).astype(np.int64)


def between(entries: Array, values: Array) -> Array:
    """What lies between the entries of such a table, halves up."""
    place, rest = 256 + (values >> 7), values & 0x7F
    return entries[place] + (((entries[place + 1] - entries[place]) * rest + 64) >> 7)


def requantized(x: Quantization, y: Quantization) -> OnIntegers:
    """Integers in the steps of another tensor, with a fixed point."""
    return lambda values: times_factor(values - x.zero, x.scale / y.scale) + y.zero
