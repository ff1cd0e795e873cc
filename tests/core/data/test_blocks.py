"""Formats of blocks, beside the package ``gguf``, which decodes them on its own."""

from __future__ import annotations

import gguf
import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.data.blocks import Q4_0, Blocks, byte_size
from tract_core.data.blocks.grids import NAMES, grid
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


@pytest.mark.parametrize("name", NAMES)
def test_tables_of_groups_are_those_of_others(name) -> None:
    theirs = getattr(gguf.quants, {"iq1": "IQ1_S"}.get(name, name.upper()))
    theirs.init_grid()
    np.testing.assert_array_equal(grid(name), theirs.grid.reshape(theirs.grid_shape))
    assert not grid(name).flags.writeable


def test_scales_of_nvfp4_have_no_sign_and_are_0_where_they_are_no_numbers() -> None:
    packed = np.full((256, 36), 0x12, np.uint8)
    packed[:, 0] = np.arange(256)
    found = FORMATS["nvfp4"].decode(packed)[:, [0, 8]]
    floats = np.arange(127, dtype=np.uint8).view(DatumType.F8E4M3FN.numpy).astype(np.float32)
    np.testing.assert_array_equal(found[:127], floats[:, None] * [1, 0.5])
    np.testing.assert_array_equal(found[127], [0, 0])
    np.testing.assert_array_equal(found[128:255], found[:127])


def test_the_largest_scale_of_mxfp4_overflows_to_infinity_only() -> None:
    packed = np.array([[255, *range(16)]], np.uint8)
    found = FORMATS["mxfp4"].decode(packed)[0]
    assert found[1] == np.float32(2.0**127)
    assert found[7] == np.inf


def test_a_tensor_in_blocks_knows_its_shape() -> None:
    blocks = Blocks(Q4_0, (3, 64), np.zeros(108, np.uint8))
    assert byte_size(Q4_0, (3, 64)) == 108
    assert blocks.to_f32().shape == (3, 64)
