"""ONNX's own cases, read, written again in normal form, and run by others."""

from __future__ import annotations

import os
from typing import Final

import pytest
from onnx_backend_suite import MODES, TOLERANCES, all_cases, refusal
from written_onnx import Written

from tract_core.errors import Unwritable

CASES = all_cases()
EVERY: Final = 1 if "TRACT_LONG" in os.environ else 8
"""Of so many cases, one is run; `make test-long` runs all."""

UNWRITABLE: Final = (
    *("affine_grid_2d_align_corners_expanded", "affine_grid_2d_expanded", "sequence_map_extract_shapes"),
    *("compress_bfloat16", "einsum_sum_bfloat16", "unique_bfloat16_"),
    *("qlinearmatmul_2D", "qlinearmatmul_3D", "strnorm"),
)
"""How the names of cases begin that are not written yet."""

OTHERWISE: Final = {
    "convinteger_with_padding": "ONNX Runtime takes one zero point for all channels",
    "range_bfloat16_type_positive_delta_expanded": "the package onnx counts in f32 there",
    "reduce_max_empty_set_bool": "ONNX Runtime takes no largest one of nothing",
    "resize_downsample_scales_cubic_align_corners": "ONNX Runtime rounds the size first",
    "resize_downsample_scales_linear_align_corners": "ONNX Runtime rounds the size first",
    "training_dropout": "the numbers are drawn",
    "training_dropout_default": "the numbers are drawn",
    "training_dropout_default_mask": "the numbers are drawn",
    "training_dropout_mask": "the numbers are drawn",
}
"""Cases that come out otherwise, and why."""

ROUGH: Final = ("dft", "stft")
"""How the names of cases begin that ONNX Runtime computes less exactly: within 5e-4 where numbers reach 460."""

CHOSEN = [
    (mode, name)
    for mode in ("decluttered", "symbolic")
    for name in list(CASES)[EVERY // 2 :: EVERY]
    if refusal(name, mode) is None and name.removeprefix("test_") not in OTHERWISE
]


@pytest.mark.parametrize(("mode", "name"), CHOSEN)
@pytest.mark.filterwarnings("ignore")
def test_a_case_that_was_written_gives_what_it_must(mode: str, name: str) -> None:
    options = {"backend": Written, **MODES[mode], **TOLERANCES.get(name, {})}
    if name.removeprefix("test_").startswith(ROUGH):
        options["atol"] = 5e-4
    try:
        CASES[name](None, **options)
    except Unwritable:
        if not name.removeprefix("test_").startswith(UNWRITABLE):
            raise


def test_nearly_all_cases_are_written() -> None:
    left_out = [name for name in CASES if name.removeprefix("test_").startswith((*UNWRITABLE, *OTHERWISE))]
    assert len(left_out) < 0.05 * len(CASES)
