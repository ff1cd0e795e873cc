"""Whole networks: small ones written by hand, and the nine of the ``onnx`` package, against ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx_check import assert_close, check, expected, load, run
from onnx_networks import convolutional, encoder
from tract_onnx.frontend import OnnxLoader

from tract_core.errors import InputError
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.transforms.float_precision import FloatPrecision

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
NETWORKS = sorted(path.stem for path in LIGHT.glob("*.onnx"))


@pytest.mark.parametrize(("batch", "length"), [(1, 7), (3, 16)])
def test_an_encoder_with_symbolic_sizes(batch, length):
    random = np.random.default_rng(length)
    mask = (np.arange(length) < random.integers(2, length, (batch, 1))).astype(np.int64)
    check(encoder(), {"ids": random.integers(0, 50, (batch, length)), "mask": mask})


@pytest.mark.parametrize(("height", "width"), [(16, 16), (9, 12)])
def test_a_convolutional_network_with_symbolic_sizes(height, width):
    check(convolutional(), {"image": np.random.default_rng(0).random((2, 3, height, width), np.float32)})


def test_shapes_are_symbolic_all_through():
    typed = OnnxLoader().load_bytes(encoder().SerializeToString()).into_typed().declutter()
    assert [str(typed.outlet_fact(outlet)) for outlet in typed.outputs] == ["B,S,32,f32", "B,32,f32"]
    symbols = {
        name for node in typed.live_nodes() for fact in typed.output_facts(node) for name in fact.shape.symbols()
    }
    assert symbols == {"B", "S"}
    listed = {type(node.op).__name__ for node in typed.live_nodes()}
    assert not listed & {"DynReshape", "DynSlice", "DynBroadcast", "Gather_1", "Identity"}


def test_inputs_that_disagree():
    plan = TypedSimplePlan(OnnxLoader().load_bytes(encoder().SerializeToString()).into_typed())
    with pytest.raises(InputError, match="S is wanted and S is 3 by input 'ids'"):
        plan.run([np.zeros((1, 3), np.int64), np.zeros((1, 4), np.int64)])


def test_one_wrong_weight_is_noticed():
    model = encoder(layers=1)
    inputs = {"ids": np.array([[3, 1, 4]]), "mask": np.array([[1, 1, 1]])}
    wanted = expected(model, inputs)
    weights = max(model.graph.initializer, key=lambda tensor: len(tensor.raw_data))
    array = numpy_helper.to_array(weights).copy()
    array[3] += 1
    weights.CopyFrom(numpy_helper.from_array(array, weights.name))
    with pytest.raises(AssertionError):
        assert_close(run(model, inputs), wanted)


@pytest.fixture
def _unchecked(monkeypatch):
    """A check of the whole network after each of a thousand patches takes minutes; the small networks have it."""
    monkeypatch.delenv("TRACT_CHECK_PATCHES")


def light(name):
    return onnx.load(LIGHT / f"{name}.onnx")


def image(model):
    constants = {tensor.name for tensor in model.graph.initializer}
    (info,) = (info for info in model.graph.input if info.name not in constants)
    shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
    return info.name, shape


@pytest.mark.usefixtures("_unchecked")
@pytest.mark.parametrize("name", NETWORKS)
def test_light_networks_as_they_come(name):
    """Their weights are all equal, so that only sizes and the flow of data are tested.

    Sums are in f64: squeezenet ends in a softmax of numbers so large that the last digit of an f32 makes all the
    difference, and NumPy's products do not round all columns alike on every processor.
    """
    wanted = onnx.TensorProto.FromString((LIGHT / f"{name}_output_0.pb").read_bytes())
    typed = FloatPrecision("f32", "f64", keep_io_types=True).apply(load(light(name)).into_typed()).declutter()
    _, shape = image(light(name))
    found = TypedSimplePlan(typed).run([np.ones(shape, np.float32)])
    assert_close(found, [numpy_helper.to_array(wanted)])


def with_random_weights(model):
    """The same network with seeded random weights instead of constant ones, in the usual range of trained weights."""
    random = np.random.default_rng(1)
    sizes = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    kept: list[onnx.NodeProto] = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = sizes[node.input[0]]
        if len(shape) == 1:
            # Scales, biases, means and variances: near 1, so that they are right in any of these places.
            array = random.uniform(0.5, 1.5, shape).astype(np.float32)
        else:
            fan_in = max(1, np.prod(shape[1:]))
            array = random.standard_normal(shape, np.float32) * np.float32(np.sqrt(2 / fan_in))
        model.graph.initializer.append(numpy_helper.from_array(array, node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    return model


@pytest.mark.usefixtures("_unchecked")
@pytest.mark.parametrize("name", NETWORKS)
def test_light_networks_with_random_weights(name):
    model = with_random_weights(light(name))
    input_name, shape = image(model)
    inputs = {input_name: np.random.default_rng(2).random(shape, np.float32)}
    wanted = expected(model, inputs)
    assert np.ptp(wanted[0]) > 0.01 * np.abs(wanted[0]).max()
    assert_close(run(model, inputs), wanted)


def test_constants_are_not_unfolded_early():
    """The 548 MB of weights of VGG-19 are made of 36 numbers; nothing is computed before the model runs."""
    typed = OnnxLoader().load(LIGHT / "light_vgg19.onnx").into_typed().declutter()
    held = sum(node.op.value.nbytes for node in typed.live_nodes() if type(node.op).__name__ == "Const")
    assert held < 64 << 20
