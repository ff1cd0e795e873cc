"""Functions of one quantised tensor, element by element: tables, which hold what the kernels of TFLite compute."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import Unsupported
from tract_core.ops.wired import Wired
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.gemmlowp import inverse_square_root, times_factor, times_powers
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.quantization import fixed_point
from tract_tensorflow.tflite.quantized.hard_swish import hard_swish_of
from tract_tensorflow.tflite.registry import quantized_op
from tract_tensorflow.tflite.sigmoid_16 import logistic_16, tanh_16
from tract_tensorflow.tflite.steps import storage
from tract_tensorflow.tflite.tables import OnIntegers, OnNumbers, by_table, of_bytes, of_words, rounded
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


def _of_integers(wire: Wiring, function: OnIntegers) -> Wired:
    return by_table(wire.tensor(0), function, storage(wire.node.output()))


def _of_numbers(wire: Wiring, function: OnNumbers) -> Wired:
    """By a table over the numbers, in the way of the kernels for bytes, or of those for 16 bits."""
    make = of_words if storage(wire.node.input(0)) is DatumType.I16 else of_bytes
    return _of_integers(wire, make(wire.node.quantization(0), wire.node.output_quantization(), function))


def _factor(node: TfliteNode) -> float:
    """Steps of the input in steps of the output, computed in f32."""
    return float(np.float32(node.quantization(0).scale) / np.float32(node.output_quantization().scale))


@quantized_op(ROWS, "LOGISTIC")
def logistic(node: TfliteNode, wire: Wiring) -> Wired:
    """1 / (1 + exp(-x)); of 16 bits, between the entries of a table of its own"""
    if storage(node.input(0)) is DatumType.I16:
        return _of_integers(wire, logistic_16(node.quantization(0).scale))
    return _of_numbers(wire, lambda x: 1 / (1 + np.exp(-x)))


@quantized_op(ROWS, "TANH")
def tanh(node: TfliteNode, wire: Wiring) -> Wired:
    """As LOGISTIC"""
    if storage(node.input(0)) is DatumType.I16:
        return _of_integers(wire, tanh_16(node.quantization(0).scale))
    return _of_numbers(wire, np.tanh)


@quantized_op(ROWS, "EXP")
def exp(node: TfliteNode, wire: Wiring) -> Wired:
    """The number e to the power x"""
    return _of_numbers(wire, np.exp)


@quantized_op(ROWS, "ELU")
def elu(node: TfliteNode, wire: Wiring) -> Wired:
    """Below zero, exp(x) - 1"""
    return _of_numbers(wire, lambda x: np.where(x < 0, np.expm1(np.minimum(x, 0)), x))


@quantized_op(ROWS, "GELU")
def gelu(node: TfliteNode, wire: Wiring) -> Wired:
    """Times the part of a normal distribution that lies below x, or its approximation"""
    return _of_numbers(wire, _gelu_near if node.flag("approximate") else _gelu)


def _gelu(x: Array) -> Array:
    parts = [math.erfc(-number * math.sqrt(0.5)) for number in x.tolist()]
    return 0.5 * x * np.array(parts)


def _gelu_near(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


@quantized_op(ROWS, "LOG")
def log(node: TfliteNode, wire: Wiring) -> Wired:
    """The natural logarithm; of zero and below, the least number that the output has"""
    y, low = node.output_quantization(), -128 if storage(node.output()) is DatumType.I8 else -(2**15)
    least = float(np.float32(low - y.zero) * np.float32(y.scale))
    return _of_numbers(wire, lambda x: np.where(x <= 0, least, np.log(np.where(x <= 0, 1, x))))


@quantized_op(ROWS, "SQRT")
def sqrt(node: TfliteNode, wire: Wiring) -> Wired:
    """The square root, cut off in steps of the output; 0 of what is below 0, which TFLite refuses"""
    x, y = node.quantization(0), node.output_quantization()

    def on_integers(values: Array) -> Array:
        numbers = np.float32(x.scale) * np.maximum(values - x.zero, 0).astype(np.float32)
        return np.trunc(np.sqrt(numbers) / np.float32(y.scale)).astype(np.int64) + y.zero

    return _of_integers(wire, on_integers)


@quantized_op(ROWS, "RSQRT")
def rsqrt(node: TfliteNode, wire: Wiring) -> Wired:
    """1 / sqrt(x); the largest number of the output for zero, and below, which TFLite refuses"""
    x, y = node.quantization(0), node.output_quantization()
    if storage(node.input(0)) is DatumType.I16:
        largest = float(np.float32(2**15 - 1) * np.float32(y.scale))
        return _of_numbers(wire, lambda x: np.where(x <= 0, largest, 1 / np.sqrt(np.where(x <= 0, 1, x))))
    factor = 1.0 / float(np.sqrt(np.float32(x.scale)) * np.float32(y.scale))
    return _of_integers(wire, lambda values: _rsqrt_of_bytes(values - x.zero, factor, y.zero))


_BEHIND_POINT: Final = 20
"""Bits behind the point of the reciprocals of roots of bytes."""


def _rsqrt_of_bytes(distances: Array, factor: float, zero: int) -> Array:
    multiplier, shift = inverse_square_root(np.maximum(distances, 2))
    multiplier, shift = np.where(distances < 2, 2**31 - 1, multiplier), np.where(distances < 2, 0, shift)
    data = times_powers(np.ones_like(distances), multiplier, _BEHIND_POINT - shift)
    times, power = fixed_point(factor)
    found = times_powers(data, np.full_like(data, times), np.full_like(data, power - _BEHIND_POINT)) + zero
    return np.where(distances <= 0, 127, found)


@quantized_op(ROWS, "ABS")
def absolute(node: TfliteNode, wire: Wiring) -> Wired:
    """The distance from the zero point"""
    x, y, factor = node.quantization(0), node.output_quantization(), _factor(node)

    def on_integers(values: Array) -> Array:
        distances = np.abs(values - x.zero)
        return (distances if factor == 1 else times_factor(distances, factor)) + y.zero

    return _of_integers(wire, on_integers)


@quantized_op(ROWS, "NEG")
def neg(node: TfliteNode, wire: Wiring) -> Wired:
    """The integers with the other sign, of which the least has none: scales are the same, and zero points are 0"""
    return -wire.tensor(0)


def _bounded(name: str, low: float | None, high: float | None) -> None:
    """Numbers between two bounds."""

    @quantized_op(ROWS, name)
    def row(node: TfliteNode, wire: Wiring) -> Wired:
        """Into the steps of the output, and between the bounds"""
        x, y = node.quantization(0), node.output_quantization()
        least, most = (None if end is None else y.zero + _steps(end, y.scale) for end in (low, high))

        def on_integers(values: Array) -> Array:
            return np.clip(times_factor(values - x.zero, _factor(node)) + y.zero, least, most)

        return _of_integers(wire, on_integers)

    row.__name__ = row.__qualname__ = name.lower()


def _steps(number: float, scale: float) -> int:
    return int(rounded(np.array([np.float32(number) / np.float32(scale)], np.float32))[0])


for _name, _ends in {"RELU": (0, None), "RELU6": (0, 6), "RELU_N1_TO_1": (-1, 1), "RELU_0_TO_1": (0, 1)}.items():
    _bounded(_name, *_ends)


@quantized_op(ROWS, "LEAKY_RELU")
def leaky_relu(node: TfliteNode, wire: Wiring) -> Wired:
    """Below zero, times the slope"""
    x, y = node.quantization(0), node.output_quantization()
    slope = float(np.float32(x.scale) * np.float32(node.number("alpha", 0)) / np.float32(y.scale))

    def on_integers(values: Array) -> Array:
        distances = values - x.zero
        return np.where(distances >= 0, times_factor(distances, _factor(node)), times_factor(distances, slope)) + y.zero

    return _of_integers(wire, on_integers)


@quantized_op(ROWS, "HARD_SWISH")
def hard_swish(node: TfliteNode, wire: Wiring) -> Wired:
    """Times x + 3, bounded by 0 and 6, over 6"""
    if storage(node.input(0)) is DatumType.I16:
        raise Unsupported("HARD_SWISH of 16-bit numbers; TFLite has it for bytes")
    return _of_integers(wire, hard_swish_of(node.quantization(0), node.output_quantization()))
