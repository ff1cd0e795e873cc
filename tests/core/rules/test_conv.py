from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tract_core.data import Constant
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, MoveAxis, RmAxis
from tract_core.ops.binary import Add, Binary, Div, Mul, Sub
from tract_core.ops.conv import Conv, KernelFormat
from tract_core.ops.deconv import Deconv
from tract_core.ops.downsample import Downsample
from tract_core.ops.elementwise import Exp, Floor
from tract_core.ops.norm import wire_batch_norm
from tract_core.ops.pad import Pad, PadConstant, PadEdge
from tract_core.ops.pool_spec import DataFormat, Explicit, Padding, PoolSpec, SameUpper, Valid
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.softmax import Softmax
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources
from tract_core.testing.tolerance import Tolerance

CLOSE = Tolerance(1e-4, 1e-4)
RANDOM = np.random.default_rng(3)


def _random(*shape: int) -> Any:
    return RANDOM.uniform(-1, 1, shape).astype(np.float32)


def _conv(
    model: TypedModel, x: OutletId, kernel: tuple[int, ...] = (3, 3), *, bias: Any = None, **options: Any
) -> OutletId:
    """From 3 to 4 channels, unless ``layout`` or ``group`` say otherwise."""
    layout = options.pop("layout", DataFormat.NCHW)
    form = options.pop("form", KernelFormat.OIHW)
    group = options.pop("group", 1)
    spec = PoolSpec(layout, kernel, **options)
    shape = {KernelFormat.OIHW: (4, 3 // group, *kernel), KernelFormat.HWIO: (*kernel, 3, 4)}[form]
    weights = model.add_const("kernel", _random(*shape))
    held = model.add_const("bias", _random(4) if bias is None else np.array(bias, np.float32))
    return wire_one(model, "conv", Conv(spec, form, group), x, weights, held)


@pytest.mark.parametrize("layout", [DataFormat.NCHW, DataFormat.NHWC])
@pytest.mark.parametrize("form", [KernelFormat.OIHW, KernelFormat.HWIO])
@pytest.mark.parametrize("bias", [None, 0.5], ids=str)
@pytest.mark.parametrize("op", [Add(), Sub(), Mul(), Div()], ids=str)
def test_numbers_per_channel_go_into_the_kernel(op: Binary, bias: Any, layout: DataFormat, form: KernelFormat) -> None:
    model, (x,) = sources("B,3,H,W,f32" if layout is DataFormat.NCHW else "B,H,W,3,f32")
    y = _conv(model, x, bias=bias, layout=layout, form=form)
    shape = (1, 4, 1, 1) if layout is DataFormat.NCHW else (1, 1, 1, 4)
    model.set_outputs([wire_one(model, "out", op, y, model.add_const("c", _random(*shape) + 2))])
    simple = checked_declutter(model, {"B": 2, "H": 5, "W": 6}, tolerance=CLOSE)
    assert operators(simple) == ["Conv"]
    assert simple.outlet_name(simple.outputs[0]) == "out"


def test_no_channels_take_numbers_too() -> None:
    model, (x,) = sources("B,3,H,W,f32")
    weights, bias = model.add_const("kernel", _random(0, 3, 3, 3)), model.add_const("bias", _random(0))
    y = wire_one(model, "conv", Conv(PoolSpec(DataFormat.NCHW, (3, 3))), x, weights, bias)
    model.set_outputs([wire_one(model, "out", Mul(), y, model.add_const("c", _random(1, 1, 1, 1)))])
    checked_declutter(model, {"B": 2, "H": 5, "W": 6})


@pytest.mark.parametrize("bias", [None, 0.5], ids=str)
def test_one_number_for_all_channels(bias: Any) -> None:
    model, (x,) = sources("B,3,H,W,f32")
    number = model.add_const("c", np.full((1, 1, 1, 1), 3, np.float32))
    model.set_outputs([wire_one(model, "out", Mul(), _conv(model, x, bias=bias), number)])
    assert operators(checked_declutter(model, {"B": 2, "H": 5, "W": 6}, tolerance=CLOSE)) == ["Conv"]


def test_batch_normalisation_disappears() -> None:
    model, (x,) = sources("B,3,H,W,f32")
    y = _conv(model, x)
    parameters = {label: model.add_const(label, _random(4) + 2) for label in ("scale", "bias", "mean", "variance")}
    model.set_outputs([wire_batch_norm(model, "out", y, eps=1e-5, **parameters)])
    assert operators(checked_declutter(model, {"B": 2, "H": 5, "W": 6}, tolerance=CLOSE)) == ["Conv"]


def _mean_of_nine(model: TypedModel, x: OutletId, kind: type = np.float32) -> OutletId:
    """The sum over 3 x 3 whole numbers, divided by 9."""
    pool = PoolSpec(DataFormat.NCHW, (3, 3))
    kernel, bias = model.add_const("ones", np.ones((1, 1, 3, 3), kind)), model.add_const("none", np.zeros((), kind))
    total = wire_one(model, "conv", Conv(pool), x, kernel, bias)
    return wire_one(model, "mean", Div(), total, model.add_const("nine", np.full((1, 1, 1, 1), 9, kind)))


def test_numbers_stay_outside_where_a_jump_would_show_their_rounding() -> None:
    model, (x,) = sources("1,1,H,W,f32")
    y = wire_one(model, "turned", MoveAxis(2, 3), _mean_of_nine(model, x))
    shift = model.add_const("shift", np.full((1, 1, 1, 1), 2, np.float32))
    model.set_outputs([wire_one(model, "out", Floor(), wire_one(model, "moved", Add(), y, shift))])
    image = RANDOM.integers(0, 256, (1, 1, 40, 40)).astype(np.float32)
    simple = checked_declutter(model, inputs=[image], tolerance=Tolerance(0, 0))
    assert "Div" in operators(simple)


@pytest.mark.parametrize("blur", [Exp(), Softmax((1,)), Reduce((2,), Reducer.SUM)], ids=str)
def test_what_stands_behind_a_sum_or_an_exponential_shows_no_rounding(blur: TypedOp) -> None:
    model, (x,) = sources("1,1,H,W,f32")
    model.set_outputs([wire_one(model, "out", Floor(), wire_one(model, "blur", blur, _mean_of_nine(model, x)))])
    assert "Div" not in operators(checked_declutter(model, {"H": 5, "W": 6}))


def test_half_floats_stay_outside_as_the_sum_is_rounded() -> None:
    model, (x,) = sources("1,1,H,W,f16")
    model.set_outputs([_mean_of_nine(model, x, np.float16)])
    assert operators(checked_declutter(model, {"H": 5, "W": 6})) == ["Conv", "Div"]


@pytest.mark.parametrize(("number", "folded"), [(0.0, True), (1e-30, True), (1e-44, False), (np.inf, False)])
def test_a_kernel_keeps_all_of_its_digits(number: float, folded: bool) -> None:
    model, (x,) = sources("B,3,H,W,f32")
    factor = model.add_const("c", np.full((1, 1, 1, 1), number, np.float32))
    model.set_outputs([wire_one(model, "out", Mul(), _conv(model, x), factor)])
    simple = checked_declutter(model, {"B": 2, "H": 5, "W": 6}, tolerance=Tolerance(1e-44, 1e-4))
    assert (operators(simple) == ["Conv"]) == folded


def test_numbers_per_place_stay_outside() -> None:
    model, (x,) = sources("B,3,6,6,f32")
    model.set_outputs([wire_one(model, "out", Mul(), _conv(model, x), model.add_const("c", _random(1, 1, 1, 4)))])
    assert operators(checked_declutter(model, {"B": 2}, tolerance=CLOSE)) == ["Conv", "Mul"]


def test_a_convolution_that_is_read_elsewhere_keeps_its_kernel() -> None:
    model, (x,) = sources("B,3,6,6,f32")
    y = _conv(model, x)
    model.set_outputs([wire_one(model, "out", Mul(), y, model.add_const("c", _random(1, 4, 1, 1))), y])
    assert operators(checked_declutter(model, {"B": 2}, tolerance=CLOSE)) == ["Conv", "Mul"]


ZEROS = PadConstant(Constant(np.array(0, np.float32)))


@pytest.mark.parametrize(
    ("mode", "pads", "padding", "folded"),
    [
        (ZEROS, ((0, 0), (0, 0), (1, 2), (0, 1)), Valid(), True),
        (ZEROS, ((0, 0), (0, 0), (1, 2), (0, 1)), Explicit((1, 1), (0, 1)), True),
        (ZEROS, ((0, 0), (0, 0), (1, 2), (0, 1)), SameUpper(), False),
        (ZEROS, ((1, 0), (0, 0), (1, 2), (0, 1)), Valid(), False),
        (PadConstant(Constant(np.array(1, np.float32))), ((0, 0), (0, 0), (1, 2), (0, 1)), Valid(), False),
        (PadEdge(), ((0, 0), (0, 0), (1, 2), (0, 1)), Valid(), False),
    ],
    ids=str,
)
def test_zeros_around_become_padding(mode: Any, pads: Any, padding: Padding, folded: bool) -> None:
    model, (x,) = sources("B,3,6,6,f32")
    model.set_outputs([_conv(model, wire_one(model, "pad", Pad(pads, mode), x), padding=padding)])
    found = operators(checked_declutter(model, {"B": 2}, tolerance=CLOSE))
    assert found == (["Conv"] if folded else ["Pad", "Conv"])


@pytest.mark.parametrize("layout", [DataFormat.NCHW, DataFormat.NHWC])
@pytest.mark.parametrize("form", [KernelFormat.OIHW, KernelFormat.HWIO])
@pytest.mark.parametrize("bias", [None, 0.5, 0.0], ids=str)
def test_a_pointwise_convolution_is_a_matrix_product(layout: DataFormat, form: KernelFormat, bias: Any) -> None:
    model, (x,) = sources("B,3,H,W,f32" if layout is DataFormat.NCHW else "B,H,W,3,f32")
    model.set_outputs([_conv(model, x, (1, 1), bias=bias, layout=layout, form=form)])
    simple = checked_declutter(model, {"B": 2, "H": 5, "W": 6}, tolerance=CLOSE)
    assert operators(simple) == (["EinSum"] if bias == 0.0 else ["EinSum", "Add"])
    assert simple.outlet_name(simple.outputs[0]) == "conv"


def test_a_pointwise_convolution_takes_batch_normalisation_first() -> None:
    model, (x,) = sources("B,3,H,W,f32")
    y = _conv(model, x, (1, 1))
    parameters = {label: model.add_const(label, _random(4) + 2) for label in ("scale", "bias", "mean", "variance")}
    model.set_outputs([wire_batch_norm(model, "out", y, eps=1e-5, **parameters)])
    found = operators(checked_declutter(model, {"B": 2, "H": 5, "W": 6}, tolerance=CLOSE))
    assert found == ["EinSum", "Add"]


def test_groups_and_padding_are_not_pointwise() -> None:
    model, (x,) = sources("B,3,H,W,f32")
    padded = Explicit((1, 0), (0, 0))
    model.set_outputs([_conv(model, x, (1, 1), padding=padded)])
    assert operators(checked_declutter(model, {"B": 2, "H": 5, "W": 6}, tolerance=CLOSE)) == ["Conv"]


@pytest.mark.parametrize(
    ("kernel", "strides", "dilations", "wanted"),
    [
        ((1, 1), (2, 2), (1, 1), ["Downsample", "Downsample", "EinSum", "Add"]),
        ((3, 3), (2, 1), (2, 1), ["Downsample", "Conv"]),
        ((3, 3), (2, 2), (1, 1), ["Conv"]),
        ((3, 3), (2, 2), (4, 4), ["Downsample", "Downsample", "Conv"]),
    ],
    ids=str,
)
def test_elements_that_no_window_reads_are_dropped_first(
    kernel: tuple[int, int], strides: tuple[int, int], dilations: tuple[int, int], wanted: list[str]
) -> None:
    model, (x,) = sources("B,3,H,W,f32")
    model.set_outputs([_conv(model, x, kernel, strides=strides, dilations=dilations)])
    for size in (9, 10, 12):
        simple = checked_declutter(model, {"B": 2, "H": size, "W": size}, tolerance=CLOSE)
        assert operators(simple) == wanted


@pytest.mark.parametrize(("modulo", "wanted"), [(0, ["Conv"]), (1, ["Conv", "Downsample"])])
def test_what_is_dropped_behind_is_not_computed(modulo: int, wanted: list[str]) -> None:
    model, (x,) = sources("B,3,H,W,f32")
    y = _conv(model, x, padding=Explicit((1, 1), (1, 1)), strides=(1, 2))
    model.set_outputs([wire_one(model, "out", Downsample(2, 3, modulo), y)])
    for size in (7, 8, 9):
        simple = checked_declutter(model, {"B": 2, "H": size, "W": 6}, tolerance=CLOSE)
        assert operators(simple) == wanted


def test_an_axis_added_for_the_convolution_is_not_needed() -> None:
    model, (x,) = sources("B,3,S,f32")
    y = _conv(model, wire_one(model, "add", AddAxis(2), wire_one(model, "exp", Exp(), x)), (1, 3))
    model.set_outputs([wire_one(model, "out", RmAxis(2), y)])
    assert operators(checked_declutter(model, {"B": 2, "S": 7}, tolerance=CLOSE)) == ["Exp", "Conv"]


@pytest.mark.parametrize(
    ("after", "added", "left"),
    [((1, 1), (1, 1), ((0, 0), (0, 0))), ((2, 0), (1, 1), ((1, 0), (0, 1))), ((0, 1), (1, 0), ((0, 1), (1, 0)))],
)
def test_a_deconvolution_does_not_cut_what_it_adds(after: Any, added: Any, left: Any) -> None:
    model, (x, kernel, bias) = sources("B,2,H,5,f32", "3,2,3,3,f32", "3,f32")
    pool = PoolSpec(DataFormat.NCHW, (3, 3), Explicit((1, 0), after), strides=(2, 2))
    model.set_outputs([wire_one(model, "deconv", Deconv(pool, adjustments=added), x, kernel, bias)])
    op = checked_declutter(model, {"B": 2, "H": 4}).node_by_name("deconv").op
    assert isinstance(op, Deconv)
    assert (op.pool.padding, op.adjustments) == (Explicit((1, 0), left[0]), left[1])
