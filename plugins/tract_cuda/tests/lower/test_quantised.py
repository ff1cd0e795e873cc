"""Quantised products and convolutions on the virtual GPU: the integers of the reference, without the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from on_virtual import model_of, run, turned_first, wanted
from tract_cuda.compile import after, compiled
from tract_cuda.language.arch import arch_named
from tract_cuda.lowering import Target
from tract_cuda.program import Hosted, Launch

import tract_core as tract
from tract_core.data import DatumType, QuantizedType
from tract_core.model.axes import AxesMapping
from tract_core.model.typed import TypedModel
from tract_core.ops.conv import Conv
from tract_core.ops.einsum import EinSum
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec

NAN, INF = np.nan, np.inf


def facts_of(given: Sequence[np.ndarray]) -> list[str]:
    return [",".join([*map(str, one.shape), DatumType.from_numpy(one.dtype).short]) for one in given]


def kernels_of(model: TypedModel) -> list[str]:
    """The names of all kernels."""
    arch = arch_named("sm_80")
    assert arch is not None
    steps = compiled(model, Target(arch, 4)).program.steps
    assert not [step for step in steps if isinstance(step, Hosted)]
    return [step.kernel.name for step in steps if isinstance(step, Launch)]


def convolution(to: DatumType | QuantizedType, channels: int = 32, group: int = 1) -> tuple[Conv, list[Any]]:
    """A convolution into 20 channels, and its inputs."""
    rng = np.random.default_rng(0)
    pool = PoolSpec(DataFormat.NCHW, (3, 3), Explicit((1, 1), (0, 1)), strides=(2, 1))
    given: list[Any] = [
        rng.integers(0, 256, (2, channels, 6, 7), "u1"),
        rng.integers(-128, 128, (20, channels // group, 3, 3), "i1"),
        rng.integers(-999, 999, 20, "i4"),
        np.array(120, "u1"),
        np.array(0.37, "f4"),
        rng.integers(-9, 9, 20, "i1"),
        rng.uniform(0.01, 0.2, 20).astype("f4"),
        np.array(3, to.storage.numpy),
        np.array(11.5, "f4"),
    ]
    return Conv(pool, group=group, q_output=to), given


@pytest.mark.parametrize(
    "to", [DatumType.U8, DatumType.I8, DatumType.I32, QuantizedType(DatumType.U8, 100, 32.0)], ids=str
)
@pytest.mark.parametrize(("channels", "group"), [(32, 1), (40, 4), (20, 20)])
def test_convolutions_with_parameters_of_the_model(to, channels, group) -> None:
    op, given = convolution(to, channels, group)
    for zeros in (given[5], np.zeros((), "i1")):
        given[5] = zeros
        model = model_of(op, *facts_of(given), constants=dict(enumerate(given[1:], start=1)))
        (found,) = run(model, given[0], seeds=(0,))
        np.testing.assert_array_equal(found, wanted(op, *given))


def test_a_convolution_of_bytes_is_one_launch_on_tensor_cores() -> None:
    op, given = convolution(DatumType.U8)
    given[3], given[5] = np.array(0, "u1"), np.zeros((), "i1")
    for size in (4, 40):
        given[0] = np.random.default_rng(1).integers(0, 256, (2, 32, size, 40), "u1")
        model = model_of(op, *facts_of(given), constants=dict(enumerate(given[1:], start=1)))
        assert "mma" in kernels_of(model)
    np.testing.assert_array_equal(run(model, given[0], seeds=(0,))[0], wanted(op, *given))


@pytest.mark.parametrize("group", [1, 4])
def test_convolutions_with_parameters_of_the_run(group) -> None:
    """One scale is not a number, and one 0."""
    op, given = convolution(DatumType.I32, 40, group)
    given[6][3:5] = NAN, 0
    np.testing.assert_array_equal(run(model_of(op, *facts_of(given)), *given)[0], wanted(op, *given))


TEXT = "bmk,nk,n,m,m,k,n,,bn->bmn"


def product(to: DatumType | QuantizedType = DatumType.U8, depth: int = 33) -> tuple[EinSum, list[Any]]:
    """A product with zero points and scales along axes, of the data and of the result."""
    rng = np.random.default_rng(0)
    given: list[Any] = [
        rng.integers(-128, 128, (2, 5, depth), "i1"),
        rng.integers(0, 256, (21, depth), "u1"),
        rng.integers(-999, 999, 21, "i4"),
        rng.integers(-9, 9, 5, "i1"),
        rng.uniform(0.01, 0.2, 5).astype("f4"),
        rng.integers(0, 256, depth, "u1"),
        rng.uniform(0.01, 0.2, 21).astype("f4"),
        np.array(100, to.storage.numpy),
        rng.uniform(0.5, 2, (2, 21)).astype("f4"),
    ]
    return EinSum(AxesMapping.parse(TEXT), DatumType.I32, to), given


@pytest.mark.filterwarnings("ignore:divide by zero")
@pytest.mark.parametrize("known", [(), (1, 2, 3, 5, 7)], ids=["none", "some"])
def test_products_with_parameters_of_the_run(known) -> None:
    op, given = product()
    given[8][0, 3:5], given[6][7] = (0, NAN), INF
    model = model_of(op, *facts_of(given), constants={slot: given[slot] for slot in known})
    inputs = [one for slot, one in enumerate(given) if slot not in known]
    np.testing.assert_array_equal(run(model, *inputs, seeds=(0,))[0], wanted(op, *given))


def test_a_product_of_what_was_computed_before() -> None:
    op, given = product()
    (found,) = run(
        turned_first(op, "33,2,5,i8", *facts_of(given[1:])), np.moveaxis(given[0], -1, 0), *given[1:], seeds=(0,)
    )
    np.testing.assert_array_equal(found, wanted(op, *given))


PLAIN = "mk,kn,n,,m,n,n,n,->mn"


@pytest.mark.parametrize("to", [DatumType.U8, DatumType.I8, QuantizedType(DatumType.I8, 5, 0.5)], ids=str)
@pytest.mark.parametrize("depth", [0, 1, 33, 64])
@pytest.mark.parametrize("left", [True, False], ids=["data-left", "data-right"])
def test_products_with_parameters_of_the_model(to, depth, left) -> None:
    """They become sums of integers; the type that says how its numbers are meant stays."""
    rng = np.random.default_rng(0)
    given: list[Any] = [
        rng.integers(0, 256, (7, depth), "u1"),
        rng.integers(-128, 128, (depth, 24), "i1"),
        rng.integers(-999, 999, 24, "i4"),
        np.array(77, "u1"),
        rng.uniform(0.01, 0.02, 7).astype("f4"),
        rng.integers(-9, 9, 24, "i1"),
        rng.uniform(0.01, 0.2, 24).astype("f4"),
        rng.integers(0, 9, 24).astype(to.storage.numpy),
        np.array(3.5, "f4"),
    ]
    text = PLAIN
    if not left:
        given[0:2], given[3:5], given[5:7] = given[1::-1], given[5:7], given[3:5]
        text = "kn,mk,n,n,n,,m,n,->mn"
    op = EinSum(AxesMapping.parse(text), DatumType.I32, to)
    data = 0 if left else 1
    constants = {slot: one for slot, one in enumerate(given) if slot != data}
    model = model_of(op, *facts_of(given), constants=constants)
    (found,) = run(model, given[data], seeds=(0,))
    np.testing.assert_array_equal(found, wanted(op, *given))
    if not isinstance(to, QuantizedType):
        arch = arch_named("sm_80")
        assert arch is not None
        ops = [type(node.op).__name__ for node in after("native_form", model, Target(arch, 4)).model.live_nodes()]
        assert "Requantize" in ops
        assert ops.count("EinSum") == 1


TYPES = {"u1": "uint8", "i1": "int8"}


def qdq(data: str, weights: str, per_channel: bool) -> bytes:
    """Two convolutions, a residual sum and a product, as tools that quantise models write them."""
    rng = np.random.default_rng(0)
    constants = dict[str, np.ndarray]()
    lines = list[str]()

    def numbers(name: str, array: np.ndarray, axis: int) -> str:
        count = array.shape[axis] if per_channel else 1
        scale = rng.uniform(0.002, 0.01, count).astype("f4") if per_channel else np.float32(0.005)
        constants[f"{name}.s"], constants[f"{name}.w"] = np.asarray(scale), array
        constants[f"{name}.z"] = np.full(scale.shape, 128 if weights == "u1" else 0, weights)
        lines.append(f"{name} = DequantizeLinear<axis={axis}>({name}_w, {name}_s, {name}_z)")
        return name

    def steps(name: str, source: str, scale: float, zero: int) -> str:
        constants[f"{name}.s"], constants[f"{name}.z"] = np.float32(scale), np.array(zero, data)
        lines.append(f"{name}_q = QuantizeLinear({source}, {name}_s, {name}_z)")
        lines.append(f"{name} = DequantizeLinear({name}_q, {name}_s, {name}_z)")
        return name

    zero = 128 if data == "u1" else 3
    wide = [
        rng.integers(-127, 128, shape, weights) if weights == "i1" else rng.integers(0, 256, shape, weights)
        for shape in ((32, 16, 3, 3), (32, 32, 1, 1), (32, 10))
    ]
    numbers("w1", wide[0], 0), numbers("w2", wide[1], 0), numbers("w3", wide[2], 1)
    steps("a", "x", 0.02, zero)
    lines.append("c1 = Conv<pads=[1,1,1,1]>(a, w1) r1 = Relu(c1)")
    steps("b", "r1", 0.05, zero)
    lines.append("c2 = Conv(b, w2)")
    steps("d", "c2", 0.05, zero)
    lines.append("sum = Add(b, d)")
    steps("e", "sum", 0.07, zero)
    lines.append("mean = ReduceMean<keepdims=0>(e, axes) ")
    steps("f", "mean", 0.05, zero)
    lines.append("m = MatMul(f, w3)")
    steps("y", "m", 0.05, zero)
    graph = f"agraph (float[N,16,H,W] x) => (float[N,10] y) {{ {' '.join(lines)} }}"
    proto = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["": 18]> {graph}')
    constants["axes"] = np.array([2, 3])
    for name, array in constants.items():
        proto.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(array), name.replace(".", "_")))
    return proto.SerializeToString()


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize(("data", "weights"), [("u1", "i1"), ("i1", "i1"), ("u1", "u1")])
def test_networks_that_tools_quantised(data, weights, per_channel) -> None:
    """All on the device, as products of bytes; sums are exact where the model rounds: a step may be another one."""
    model = tract.onnx().load_bytes(qdq(data, weights, per_channel)).into_model()
    x = np.random.default_rng(1).standard_normal((2, 16, 9, 8), "f4")
    (found,) = run(model.typed, x)
    (right,) = tract.runtime_for_name("reference").prepare(model.clone()).run([x])
    close = np.abs(found - right.view())
    assert close.max() <= 0.051
    assert (close == 0).mean() > 0.7
    names = kernels_of(model.typed)
    assert names.count("mma") == 3
    assert not {"tile", "host"} & set(names)
