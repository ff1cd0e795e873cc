"""Blocks that llama.cpp's own library has written, as `make_ggml_blocks.py` kept them."""

from __future__ import annotations

import numpy as np
import pytest
from make_ggml_blocks import FILE, LENGTH, NAMES, ROWS

import tract_core as tract
from tract_core.api.model import Model
from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.blocks import FORMATS, UnpackBlocks
from tract_core.ops.einsum import EinSum

KEPT = np.load(FILE)
EVERY = [name.lower() for name in NAMES]


@pytest.mark.parametrize("name", EVERY)
def test_numbers_come_out_to_the_bit(name: str) -> None:
    packed = KEPT[name]
    found = FORMATS[name].decode(packed.reshape(-1, packed.shape[-1]))
    np.testing.assert_array_equal(found.reshape(ROWS, LENGTH).view(np.uint32), KEPT[f"{name} again"].view(np.uint32))


@pytest.mark.parametrize("rounded", [False, True])
@pytest.mark.parametrize("name", EVERY)
def test_products_with_them(name: str, rounded: bool) -> None:
    """In floats, and with rows of 8 bits, which are off by up to a part in 254 of the largest number of a block."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(f"S,{LENGTH},f32", model.symbols))
    (weights,) = model.wire_node("weights", UnpackBlocks(name), [model.add_const("packed", KEPT[name])])
    product = EinSum(AxesMapping.parse("sk,nk->sn"), DatumType.F32)
    model.set_outputs(model.wire_node("product", product, [x, weights]))
    runnable = tract.runtime_for_name("cpu", bytes=rounded).prepare(Model.from_typed(model))
    for count in (1, 3, 40):
        rows = np.random.default_rng(count).normal(size=(count, LENGTH)).astype(np.float32)
        exact = KEPT[f"{name} again"].astype(np.float64)
        wanted, size = rows @ exact.T, np.linalg.norm(exact, axis=1) * np.sqrt(LENGTH)
        error = np.abs(runnable.run([rows])[0].to_numpy() - wanted)
        assert (error <= (2e-3 if rounded else 1e-6) * size).all()
