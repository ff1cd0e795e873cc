"""Operators as they were before version 7 of the operator set, against results written out with NumPy."""

from __future__ import annotations

import numpy as np
import onnx.defs
import pytest
from onnx_check import assert_close, run
from onnx_single import node_model
from tract_onnx.registry import DEFAULT_DOMAIN, ONNX, OnnxOps

from tract_core.errors import CorruptModel
from tract_core.plugins import default_registry

F32 = np.float32
X = np.random.default_rng(0).standard_normal((2, 3, 4, 4)).astype(F32)
ROW = np.arange(6, dtype=F32).reshape(2, 3)


def gives(wanted, op_type, inputs, *, opset=1, **options):
    """As wired and decluttered, with fixed sizes and with a symbol for the batch."""
    given = {f"x{slot}": array for slot, array in enumerate(inputs) if array is not None}
    outputs = wanted if isinstance(wanted, list) else [wanted]
    for batch in (None, "N"):
        model = node_model(op_type, inputs, "", opset=opset, batch=batch, outputs=len(outputs), **options)
        for declutter in (False, True):
            assert_close(run(model, given, declutter=declutter), outputs, 1e-5)


def test_every_version_of_every_operator_is_known():
    ops = OnnxOps(default_registry()[ONNX])
    missing = [
        (schema.domain, schema.name, schema.since_version)
        for schema in onnx.defs.get_all_schemas_with_history()
        if ops.find(schema.domain or DEFAULT_DOMAIN, schema.name, schema.since_version) is None
    ]
    assert not missing


@pytest.mark.parametrize(("name", "dtype"), [("INT32", np.int32), ("DOUBLE", np.float64), ("BOOL", np.bool_)])
def test_cast_to_a_name(name, dtype):
    gives(ROW.astype(dtype), "Cast", [ROW], to=name)


def test_cast_to_a_name_that_is_none():
    with pytest.raises(CorruptModel, match="attribute 'to' of Cast is 'FLOOT', wanted an element type"):
        run(node_model("Cast", [ROW], "", opset=1, to="FLOOT"), {"x0": ROW})


def test_concat_along_axis_1_where_none_is_given():
    gives(np.concatenate([ROW, ROW], 1), "Concat", [ROW, ROW])


@pytest.mark.parametrize("axis", [0, 1])
def test_tile_along_one_axis(axis):
    counts = [3 if place == axis else 1 for place in range(2)]
    inputs = [ROW, np.array([3], np.int64), np.array([axis], np.int64)]
    gives(np.tile(ROW, counts), "Tile", inputs)
    model = node_model("Tile", inputs, "", opset=1, fixed=(1, 2))
    assert_close(run(model, {"x0": ROW}), [np.tile(ROW, counts)])


def test_pools_whose_power_is_a_float():
    power = (np.abs(X.astype(np.float64)) ** 3).sum((2, 3), keepdims=True) ** (1 / 3)
    gives(power.astype(F32), "GlobalLpPool", [X], p=3.0)
    gives(power.astype(F32), "LpPool", [X], p=3.0, kernel_shape=[4, 4])


def test_dropout_gives_its_input():
    gives(X, "Dropout", [X], is_test=1)


def test_clip_by_attributes():
    gives(np.clip(X, -0.5, 0.25), "Clip", [X], min=-0.5, max=0.25)


def test_selu_with_the_old_defaults():
    wide = X.astype(np.float64)
    gives((1.0507 * np.where(wide > 0, wide, 1.6732 * np.expm1(wide))).astype(F32), "Selu", [X])


def test_instance_normalization():
    scale, bias = np.array([1, 2, 3], F32), np.array([0, 1, 2], F32)
    wide = X.astype(np.float64)
    centred = (wide - wide.mean((2, 3), keepdims=True)) / np.sqrt(wide.var((2, 3), keepdims=True) + 1e-3)
    wanted = centred * scale[:, None, None] + bias[:, None, None]
    gives(wanted.astype(F32), "InstanceNormalization", [X, scale, bias], epsilon=1e-3)


@pytest.mark.parametrize(("spatial", "shape", "opset"), [(1, (3,), 1), (0, (3, 4, 4), 1), (0, (3, 4, 4), 7)])
def test_batch_normalization(spatial, shape, opset):
    random = np.random.default_rng(1)
    scale, bias, mean = (random.standard_normal(shape).astype(F32) for _ in range(3))
    variance = random.uniform(0.5, 2, shape).astype(F32)
    a, b, m, v = (
        one.astype(np.float64).reshape(shape if spatial == 0 else (3, 1, 1)) for one in (scale, bias, mean, variance)
    )
    wanted = (X - m) / np.sqrt(v + 1e-5) * a + b
    attributes = {"is_test": 1} if opset < 7 else {}
    gives(
        wanted.astype(F32),
        "BatchNormalization",
        [X, scale, bias, mean, variance],
        opset=opset,
        spatial=spatial,
        **attributes,
    )


@pytest.mark.parametrize("opset", [1, 6])
def test_batch_normalization_in_training(opset):
    """Standardised by the statistics of the batch."""
    one, zero = np.ones(3, F32), np.zeros(3, F32)
    wide = X.astype(np.float64)
    mean, variance = wide.mean((0, 2, 3), keepdims=True), wide.var((0, 2, 3), keepdims=True)
    wanted = ((wide - mean) / np.sqrt(variance + 1e-5)).astype(F32)
    gives(wanted, "BatchNormalization", [X, one, zero, zero, one], opset=opset)


def test_reshape_to_an_attribute():
    gives(X.reshape(2, -1), "Reshape", [X], shape=[0, -1])


def test_pad_by_paddings():
    gives(np.pad(ROW, ((0, 1), (2, 0)), constant_values=7), "Pad", [ROW], paddings=[0, 2, 1, 0], value=7.0)


def test_split_by_an_attribute_or_an_input():
    x = np.arange(12, dtype=F32).reshape(4, 3)
    pieces = [x[:, :1], x[:, 1:]]
    gives(pieces, "Split", [x], axis=1, split=[1, 2])
    gives(pieces, "Split", [x, np.array([1, 2])], axis=1)


def test_a_second_operand_that_begins_at_an_axis():
    row = np.arange(3, dtype=F32)
    gives(X + row[:, None, None], "Add", [X, row], broadcast=1, axis=1)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4)])
def test_not(shape):
    x = np.random.default_rng(2).integers(0, 2, shape).astype(np.bool_)
    model = node_model("Not", [x], "", opset=1)
    assert_close(run(model, {"x0": x}), [np.logical_not(x)])
