"""Formats of blocks, beside the package ``gguf``, which decodes them on its own."""

from __future__ import annotations

import gguf
import numpy as np
import pytest

from tract_core.data.blocks import Q4_0, Blocks, byte_size
from tract_core.ops.blocks import FORMATS

WITH_OTHERS = sorted(set(FORMATS) - {"q8_1"})
"""Files have no tensors of q8_1, and the package does not decode them."""


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:overflow")
@pytest.mark.parametrize("name", WITH_OTHERS)
def test_any_bytes_mean_what_they_mean_to_others(name) -> None:
    form, kind = FORMATS[name], gguf.GGMLQuantizationType[name.upper()]
    assert gguf.GGML_QUANT_SIZES[kind] == (form.length, form.size)
    packed = np.random.default_rng(len(name)).integers(0, 256, (300, form.size), np.uint8)
    found = form.decode(packed)
    assert found.dtype == np.float32
    assert found.shape == (300, form.length)
    np.testing.assert_array_equal(found, gguf.quants.dequantize(packed, kind))
    assert np.isfinite(found).mean() > 0.8


@pytest.mark.parametrize("name", FORMATS)
def test_no_blocks_are_no_numbers(name) -> None:
    assert FORMATS[name].decode(np.zeros((0, FORMATS[name].size), np.uint8)).shape == (0, FORMATS[name].length)


def test_the_largest_scale_of_mxfp4_overflows_to_infinity_only() -> None:
    packed = np.array([[255, *range(16)]], np.uint8)
    found = FORMATS["mxfp4"].decode(packed)[0]
    assert found[1] == np.float32(2.0**127)
    assert found[7] == np.inf


def test_a_tensor_in_blocks_knows_its_shape() -> None:
    blocks = Blocks(Q4_0, (3, 64), np.zeros(108, np.uint8))
    assert byte_size(Q4_0, (3, 64)) == 108
    assert blocks.to_f32().shape == (3, 64)
