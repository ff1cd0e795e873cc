"""Tensors in blocks for tests: constants, the operators that unpack them, and the numbers that these mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from executed import text

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.blocks import FORMATS, UnpackBlocks
from tract_core.ops.blocks import reference as unpacked_blocks
from tract_core.ops.einsum import EinSum
from tract_core.ops.quantize import DequantizeLinear
from tract_core.ops.quantize import dequantize as dequantized

RNG = np.random.default_rng(3)
LIMITS = {"u2": (0, 4), "i2": (-2, 2), "u4": (0, 16), "i4": (-8, 8), "u8": (0, 256), "i8": (-128, 128)}


class InBlocks:
    """A tensor in blocks: constants, the operator that unpacks them, and the numbers that the latter means."""

    def __init__(self, op: Any, arrays: Sequence[np.ndarray], numbers: np.ndarray) -> None:
        self.op, self.arrays, self.numbers = op, arrays, numbers

    def wire(self, model: TypedModel) -> OutletId:
        """The numbers in a model."""
        outlets = [model.add_const(f"w{number}", array) for number, array in enumerate(self.arrays)]
        (found,) = model.wire_node("w", self.op, outlets)
        return found


def linear(
    kind: str,
    shape: Sequence[int],
    block: int,
    axis: int = -1,
    *,
    scale: str = "f32",
    to: str = "f32",
    same: bool = False,
) -> InBlocks:
    """Small integers with scales and zero points, at both ends of their type too. ``same``: one zero point for all."""
    axis, low_high = axis % len(shape), LIMITS[kind]
    parameters = [*shape[:axis], -(-shape[axis] // block), *shape[axis + 1 :]]
    codes = RNG.integers(*low_high, shape)
    codes.reshape(-1)[:1], codes.reshape(-1)[1:2] = low_high[0], low_high[1] - 1
    zeros = np.full(parameters, low_high[1] // 2) if same else RNG.integers(*low_high, parameters)
    scales = RNG.standard_normal(parameters)
    dtype = DatumType[kind.upper()].numpy
    arrays = [codes.astype(dtype), scales.astype(DatumType[scale.upper()].numpy), zeros.astype(dtype)]
    op = DequantizeLinear(DatumType[to.upper()], axis, block)
    return InBlocks(op, arrays, dequantized(op, *arrays))


def records(form: str, shape: Sequence[int], to: str = "f32") -> InBlocks:
    """Blocks of bytes, as archives have them, whose scales are of all sizes, subnormal ones too."""
    size = FORMATS[form].size
    data = RNG.integers(0, 256, (*shape[:-1], shape[-1] // 32, size), np.uint8)
    data[..., 1] &= 0xBB  # neither infinite nor no number
    op = UnpackBlocks(form, DatumType[to.upper()])
    return InBlocks(op, [data], unpacked_blocks(op, data))


FORMS = {
    **{kind: lambda n, k, kind=kind: linear(kind, (n, k), 16) for kind in LIMITS},
    "one zero": lambda n, k: linear("u4", (n, k), 32, same=True),
    "halves": lambda n, k: linear("i4", (n, k), 32, scale="f16", to="f16"),
    "bf16": lambda n, k: linear("u4", (n, k), 32, scale="bf16", to="bf16"),
    "long": lambda n, k: linear("u4", (n, k), 128),
    "q4_0": lambda n, k: records("q4_0", (n, k)),
    "q8_0": lambda n, k: records("q8_0", (n, k)),
    "q8_1": lambda n, k: records("q8_1", (n, k)),
    "q4_0 f16": lambda n, k: records("q4_0", (n, k), "f16"),
}


def product(weights: InBlocks, x: np.ndarray, expression: str = "mk,nk->mn", *, first: bool = False) -> TypedModel:
    """A product with a tensor in blocks, which is the second factor unless it is the ``first``."""
    model = TypedModel()
    fact = text(x.shape, DatumType.from_numpy(x.dtype).short)
    factors = [model.add_source("x", parse_typed_fact(fact, model.symbols)), weights.wire(model)]
    op = EinSum(AxesMapping.parse(expression), DatumType.F32)
    model.set_outputs(model.wire_node("y", op, factors[::-1] if first else factors))
    return model
