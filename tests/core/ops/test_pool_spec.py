"""Windows and paddings: sizes that are decided once, for numbers and symbols alike."""

from __future__ import annotations

from typing import Any

import pytest

from tract_core.dims import evaluate, symbol
from tract_core.errors import FactError
from tract_core.ops.pool import MaxPool
from tract_core.ops.pool_spec import (
    DataFormat,
    Explicit,
    ExplicitOnnxPool,
    PoolSpec,
    SameLower,
    SameUpper,
    Valid,
    Window,
)

PADDINGS = [
    Valid(),
    SameUpper(),
    SameLower(),
    Explicit((1,), (2,)),
    ExplicitOnnxPool((1,), (2,)),
    ExplicitOnnxPool((1,), (0,), ceil_mode=True),
    ExplicitOnnxPool((1,), (2,), ceil_mode=True),
]


@pytest.mark.parametrize("padding", PADDINGS, ids=str)
@pytest.mark.parametrize("window", [Window(1), Window(3), Window(3, 2, 2), Window(2, 1, 3), Window(4, 1, 4)], ids=str)
def test_symbolic_sizes_are_those_of_numbers(padding: Any, window: Window) -> None:
    planned = padding.ends(0, symbol("S"), window)
    for size in range(8, 20):
        assert [evaluate(dim, {"S": size}) for dim in planned] == list(padding.ends(0, size, window))


@pytest.mark.parametrize("size", range(4, 16))
@pytest.mark.parametrize("stride", [1, 2, 3, 4])
@pytest.mark.parametrize("ends", [(0, 0), (1, 0), (1, 1), (0, 2)])
def test_ceil_mode_follows_the_definition(size: int, stride: int, ends: tuple[int, int]) -> None:
    kernel, (before, after) = 3, ends
    wanted = -(-(size + before + after - kernel) // stride) + 1
    if (wanted - 1) * stride >= size + before:
        wanted -= 1
    padding = ExplicitOnnxPool((before,), (after,), ceil_mode=True)
    assert padding.ends(0, size, Window(kernel, 1, stride))[0] == wanted


@pytest.mark.parametrize(
    ("padding", "expected"),
    [
        (Valid(), "S/2"),
        (Explicit((1,), (1,)), "S/2+1"),
        (SameUpper(), "(S+1)/2"),
        (ExplicitOnnxPool((0,), (0,), ceil_mode=True), "(S+1)/2"),
    ],
    ids=str,
)
def test_output_sizes_print_plainly(padding: Any, expected: str) -> None:
    assert str(padding.ends(0, symbol("S"), Window(2, 1, 2))[0]) == expected


@pytest.mark.parametrize(
    ("layout", "c_axis", "h_axis", "spatial"),
    [
        (DataFormat.NCHW, 1, 2, (30, 40)),
        (DataFormat.NHWC, 3, 1, (20, 30)),
        (DataFormat.CHW, 0, 1, (20, 30, 40)),
        (DataFormat.HWC, 3, 0, (10, 20, 30)),
    ],
)
def test_data_formats(layout: DataFormat, c_axis: int, h_axis: int, spatial: tuple[int, ...]) -> None:
    shape = (10, 20, 30, 40)
    assert (layout.c_axis(4), layout.h_axis, layout.spatial(shape)) == (c_axis, h_axis, spatial)
    assert layout.rank(len(spatial)) == 4
    assert layout.replaced(shape, shape[c_axis], spatial) == shape


def test_omitted_strides_and_dilations_are_ones() -> None:
    assert PoolSpec(DataFormat.NCHW, (3, 3)) == PoolSpec(DataFormat.NCHW, (3, 3), Valid(), (1, 1), (1, 1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strides": (1,)}, r"1 strides \[1\] for a kernel of 2 axes"),
        ({"dilations": (0, 1)}, r"dilation \[0, 1\] has an entry below 1"),
        ({"padding": Explicit((1,), (1,))}, "is for 1 and 1 axes; the kernel has 2"),
    ],
)
def test_specs_that_make_no_sense(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(FactError, match=message):
        PoolSpec(DataFormat.NCHW, (3, 3), **arguments)


def test_a_convolution_cannot_have_negative_padding() -> None:
    pool = PoolSpec(DataFormat.NCHW, (3,), Explicit((-1,), (0,)))
    with pytest.raises(FactError, match="the padding is -1 before and 0 after; it cannot be negative"):
        pool.plan(MaxPool(pool), (1, 1, 9))


def test_a_deconvolution_cannot_have_the_padding_of_a_pool() -> None:
    pool = PoolSpec(DataFormat.NCHW, (3,), ExplicitOnnxPool((0,), (0,)))
    with pytest.raises(FactError, match="a deconvolution cannot have the padding ExplicitOnnxPool"):
        pool.transposed_plan(MaxPool(pool), (1, 1, 9), (0,))
