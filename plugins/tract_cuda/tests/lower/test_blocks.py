"""Models with weights in blocks on the virtual GPU, against the reference: what is on the device, and what it gives."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest
from on_virtual import run
from tract_cuda.driver.device import Device
from tract_cuda.driver.library import Driver
from tract_cuda.language.arch import ARCHS
from tract_cuda.lowering import Target
from tract_cuda.plan import CudaPlan
from tract_cuda.program import launches_in
from tract_cuda.testing.virtual import VirtualGpu

import tract_core as tract
from tract_core.data import DatumType
from tract_core.data.blocks import Q4_0, encode_q4_0
from tract_core.errors import RunError
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import MoveAxis, Reshape
from tract_core.ops.binary import Add, Max, Mul
from tract_core.ops.blocks import UnpackBlocks
from tract_core.ops.conv import Conv
from tract_core.ops.einsum import EinSum
from tract_core.ops.gather import Gather
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec
from tract_core.ops.scan import OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.slice import Slice

RNG = np.random.default_rng(11)
TARGET = Target(ARCHS[0], 4)


def close(found: np.ndarray, right: np.ndarray, of: float = 1) -> None:
    """Within what sums in another order are off, of numbers about as large as ``of``."""
    assert found.dtype == right.dtype
    rounds = 2.0**-10 if found.dtype == np.float16 else 2.0**-18
    np.testing.assert_allclose(found.astype("f8"), right.astype("f8"), rtol=rounds, atol=rounds * of)


def reference(model: TypedModel, *inputs: np.ndarray) -> list[np.ndarray]:
    runnable = tract.runtime_for_name("reference").prepare(tract.Model.from_typed(model.clone()))
    return [one.to_numpy() for one in runnable.run(list(inputs))]


def loaded(nodes: Sequence[Any], arrays: dict[str, np.ndarray], x: str, y: str, kind: int) -> TypedModel:
    """A file of ONNX with one input ``x`` and one output ``y``. The sizes of both are a text, as ``B,64``."""

    def info(name: str, sizes: str) -> Any:
        return oh.make_tensor_value_info(name, kind, [int(one) if one.isdigit() else one for one in sizes.split(",")])

    constants = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    graph = oh.make_graph(nodes, "graph", [info("x", x)], [info("y", y)], constants)
    opsets = [oh.make_opsetid("", 21), oh.make_opsetid("com.microsoft", 1)]
    proto = oh.make_model(graph, opset_imports=opsets, ir_version=10)
    return tract.onnx().load_bytes(proto.SerializeToString()).into_model().typed


def few_bits(bits: int, size: int, block: int, rows: str, *, zeros: bool, half: bool = False) -> TypedModel:
    """A `MatMulNBits` with seven columns, and a bias."""
    blocks, dtype = -(-size // block), np.float16 if half else np.float32
    per_byte = 8 // bits
    arrays = {
        "w": RNG.integers(0, 256, (7, blocks, block // per_byte), np.uint8),
        "scale": (RNG.standard_normal(7 * blocks) / 2**bits).astype(dtype),
    }
    if zeros:
        arrays["zero"] = RNG.integers(0, 256, 7 * -(-blocks // per_byte), np.uint8)
    arrays["bias"] = RNG.standard_normal(7).astype(dtype)
    inputs = ["x", "w", "scale", "zero" if zeros else "", "", "bias"]
    node = oh.make_node("MatMulNBits", inputs, ["y"], domain="com.microsoft", K=size, N=7, bits=bits, block_size=block)
    kind = onnx.TensorProto.FLOAT16 if half else onnx.TensorProto.FLOAT
    return loaded([node], arrays, f"{rows},{size}", f"{rows},7", kind)


def launches(model: TypedModel) -> list[str]:
    plan = plan_on(VirtualGpu(), model)
    return [step.kernel.name for step in launches_in(plan.program.steps)]


def plan_on(gpu: VirtualGpu, model: TypedModel) -> CudaPlan:
    return CudaPlan(model, Device(Driver(gpu), 0), TARGET)


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", [True, False], ids=["zero points", "middle"])
@pytest.mark.parametrize("rows", ["1", "3", "B"])
def test_products_of_files_with_few_bits(bits: int, zeros: bool, rows: str) -> None:
    model = few_bits(bits, 80, 32, rows, zeros=zeros)
    assert launches(model) == ["tile" if rows == "B" else "vector_blocks"]  # the bias is added behind the sum
    for count in (1, 6) if rows == "B" else (int(rows),):
        x = RNG.standard_normal((count, 80)).astype("f4")
        close(run(model, x)[0], reference(model, x)[0], 32)


@pytest.mark.parametrize("rows", ["2", "B"])
def test_halves_are_multiplied_in_f32_and_rounded_once(rows: str) -> None:
    model, x = few_bits(4, 64, 16, rows, zeros=True, half=True), RNG.standard_normal((2, 64)).astype("f2")
    assert "unpack" not in launches(model)
    close(run(model, x)[0], reference(model, x)[0], 8)


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("size", [64, 50])
def test_dequantised_constants_in_blocks(axis: int, size: int) -> None:
    """``size``: of the axis that is summed, which may end in the middle of a block."""
    shape = [size, 6] if axis == 0 else [6, size]
    blocks = [-(-one // 32) if n == axis else one for n, one in enumerate(shape)]
    arrays = {
        "q": RNG.integers(-128, 128, shape).astype("i1"),
        "scale": (RNG.standard_normal(blocks) / 64).astype("f4"),
        "zero": RNG.integers(-3, 4, blocks).astype("i1"),
    }
    nodes = [oh.make_node("DequantizeLinear", ["q", "scale", "zero"], ["w"], axis=axis, block_size=32)]
    if axis:
        nodes.append(oh.make_node("Transpose", ["w"], ["turned"], perm=[1, 0]))
    nodes.append(oh.make_node("MatMul", ["x", "turned" if axis else "w"], ["p"]))
    nodes.append(oh.make_node("Relu", ["p"], ["y"]))
    model = loaded(nodes, arrays, f"B,{size}", "B,6", onnx.TensorProto.FLOAT)
    assert launches(model) == ["tile"]
    x = RNG.standard_normal((5, size)).astype("f4")
    close(run(model, x)[0], reference(model, x)[0], 32)


# ---- archives


def source(model: TypedModel, name: str, fact: str) -> OutletId:
    return model.add_source(name, parse_typed_fact(fact, model.symbols))


def matrix(model: TypedModel, rows: int, columns: int, kind: str = "f32", name: str = "w") -> OutletId:
    """A matrix of normal numbers, in blocks of four bits along its columns."""
    blocks = encode_q4_0(RNG.standard_normal((rows, columns)).astype("f4")).content
    packed = model.add_const(f"{name}.blocks", blocks.reshape(rows, columns // 32, Q4_0.size))
    (found,) = model.wire_node(name, UnpackBlocks(Q4_0.name, DatumType[kind.upper()]), [packed])
    return found


def product(model: TypedModel, name: str, x: OutletId, w: OutletId, expression: str = "mk,nk->mn") -> OutletId:
    (found,) = model.wire_node(name, EinSum(AxesMapping.parse(expression), DatumType.F32), [x, w])
    return found


def language(rows: int = 40, columns: int = 64) -> TypedModel:
    """Numbers of words become rows of a matrix, which is multiplied with what becomes of them: the weights are tied."""
    model = TypedModel()
    words, w = source(model, "words", "S,i64"), matrix(model, rows, columns)
    (x,) = model.wire_node("rows", Gather(0), [w, words])
    (x,) = model.wire_node("squares", Mul(), [x, x])
    model.set_outputs([product(model, "scores", x, w)])
    return model


@pytest.mark.parametrize("name", ["model.nnef.tgz", "model.nnef"])
def test_archives_with_tied_weights(name: str, tmp_path: Path) -> None:
    tract.Model.from_typed(language()).save(tmp_path / name)
    model, words = tract.load(tmp_path / name).typed, np.array([3, 39, -1, 0, 3])
    assert launches(model) == ["unpack", "map", "tile"]
    close(run(model, words)[0], reference(model, words)[0], 16)


def test_a_word_that_there_is_not_is_refused_by_name() -> None:
    with pytest.raises(RunError, match=r"node 'rows' .*index 40 is outside axis 0, which has size 40"):
        run(language(), np.array([1, 40]))
    assert run(language(), np.array([], "i8"))[0].shape == (0, 40)


def test_weights_are_on_the_device_once_and_packed() -> None:
    gpu = VirtualGpu()
    plan = plan_on(gpu, language(400, 256))
    packed = 400 * 256 // 32 * 18
    assert packed <= gpu.used() < packed + 256
    state = plan.spawn()
    state.run([np.array([7])])
    numbers = 400 * 256 * 4
    assert gpu.used() < packed + numbers // 4  # and the arena has no room for all numbers
    del state, plan
    gc.collect()
    assert gpu.used() == 0


def test_weights_that_kernels_want_in_another_order_are_there_once() -> None:
    """Of a convolution, those that lie as the model has them are read by nobody."""
    model = TypedModel()
    x = source(model, "x", "B,8,5,5,f32")
    weights = RNG.standard_normal((16, 8, 3, 3)).astype("f4")
    pool = PoolSpec(DataFormat.NCHW, (3, 3), Explicit((1, 1), (1, 1)), (), (), 8, 16)
    inputs = [x, model.add_const("w", weights), model.add_const("bias", np.zeros(16, "f4"))]
    model.set_outputs(model.wire_node("y", Conv(pool), inputs))
    gpu = VirtualGpu()
    plan = plan_on(gpu, model)
    assert weights.nbytes <= gpu.used() <= weights.nbytes + 2 * 256
    assert sum(one.nbytes for one in plan.program.read_constants().values()) == weights.nbytes + 64
    data = RNG.standard_normal((2, 8, 5, 5)).astype("f4")
    close(plan.spawn().run([data])[0], reference(model, data)[0], 8)


def test_what_is_computed_of_each_sum_goes_along() -> None:
    model = TypedModel()
    x, other = source(model, "x", "B,64,f32"), source(model, "other", "B,9,f32")
    found = product(model, "p", x, matrix(model, 9, 64))
    (found,) = model.wire_node("sum", Add(), [found, other])
    (found,) = model.wire_node("relu", Max(), [found, model.add_const("zero", np.zeros((1, 1), "f4"))])
    model.set_outputs([found])
    assert launches(model) == ["tile"]
    arrays = RNG.standard_normal((6, 64)).astype("f4"), RNG.standard_normal((6, 9)).astype("f4")
    close(run(model, *arrays)[0], reference(model, *arrays)[0], 16)


def test_whoever_wants_the_numbers_has_them_unpacked_once() -> None:
    model = TypedModel()
    x, w = source(model, "x", "9,64,f32"), matrix(model, 9, 64)
    (turned,) = model.wire_node("turned", MoveAxis(0, 1), [w])
    (total,) = model.wire_node("sum", Add(), [x, w])
    model.set_outputs([product(model, "p", x, w), total, turned, w])
    assert launches(model).count("unpack") == 1
    array = RNG.standard_normal((9, 64)).astype("f4")
    for found, right in zip(run(model, array), reference(model, array), strict=True):
        close(found, right, 16)


def test_blocks_that_are_no_constant_are_unpacked_where_they_lie() -> None:
    model = TypedModel()
    x, packed = source(model, "x", "B,64,f32"), source(model, "packed", "N,2,36,u8")
    (w,) = model.wire_node("w", UnpackBlocks("q8_1"), [packed])
    model.set_outputs([product(model, "p", x, w)])
    assert launches(model) == ["tile"]
    blocks = RNG.integers(0, 256, (5, 2, 36), np.uint8)
    blocks[..., 1] = blocks[..., 1] & 0x83 | 0x24
    array = RNG.standard_normal((3, 64)).astype("f4")
    close(run(model, array, blocks)[0], reference(model, array, blocks)[0], 64)


@pytest.mark.parametrize(("form", "size"), [("q4_0", 18), ("q8_0", 34), ("q8_1", 36)])
@pytest.mark.parametrize("start", [0, 1])
def test_blocks_that_are_part_of_others(form: str, size: int, start: int) -> None:
    """From the second row on, blocks of 18 and 34 bytes begin in the middle of a word."""
    model = TypedModel()
    x, packed = source(model, "x", "2,96,f32"), source(model, "packed", f"3,3,{size},u8")
    (part,) = model.wire_node("part", Slice(0, start, 3), [packed])
    (w,) = model.wire_node("w", UnpackBlocks(form), [part])
    model.set_outputs([product(model, "p", x, w)])
    assert launches(model) == ["vector_blocks"]
    blocks = RNG.integers(0, 256, (3, 3, size), np.uint8)
    blocks[..., 1] = blocks[..., 1] & 0x83 | 0x24
    array = RNG.standard_normal((2, 96)).astype("f4")
    close(run(model, array, blocks)[0], reference(model, array, blocks)[0], 64)


def test_blocks_that_begin_at_an_odd_byte_are_copied() -> None:
    model = TypedModel()
    x, packed = source(model, "x", "2,32,f32"), source(model, "packed", "109,u8")
    (part,) = model.wire_node("part", Slice(0, 1, 109), [packed])
    (part,) = model.wire_node("shaped", Reshape(0, (108,), (3, 1, 36)), [part])
    (w,) = model.wire_node("w", UnpackBlocks("q8_1"), [part])
    model.set_outputs([product(model, "p", x, w)])
    assert launches(model) == ["map", "vector_blocks"]
    data = RNG.integers(0, 256, 109, np.uint8)
    data[2::36] = data[2::36] & 0x83 | 0x24
    array = RNG.standard_normal((2, 32)).astype("f4")
    close(run(model, array, data)[0], reference(model, array, data)[0], 64)


def test_numbers_in_f64_are_left_to_the_host() -> None:
    model = TypedModel()
    packed = source(model, "packed", "2,36,u8")
    model.set_outputs(model.wire_node("w", UnpackBlocks("q8_1", DatumType.F64), [packed]))
    assert list(plan_on(VirtualGpu(), model).hosted().values()) == ["there is no kernel for this operator yet"]


def test_the_plan_says_what_stays_in_blocks() -> None:
    model = language()
    plan = plan_on(VirtualGpu(), model)
    text = str(plan.explain())
    assert "it lies in what is there" in text
    first, *_ = plan.groups
    assert first.kind == "packed"
    assert list(first.notes(model)) == ["blocks of 32 u4, with a scale in f16"]


def test_somebody_looks_at_the_numbers_and_exchanges_them() -> None:
    model = TypedModel()
    x, w = source(model, "x", "2,64,f32"), matrix(model, 3, 64)
    model.set_outputs([product(model, "p", x, w)])
    array, seen = RNG.standard_normal((2, 64)).astype("f4"), list[np.ndarray]()

    def observe(_: object, given: Any) -> Any:
        (outlet, numbers), *_ = given.items()
        if outlet != w:
            return None
        seen.append(numbers)
        return {outlet: np.ones_like(numbers)}

    plan = plan_on(VirtualGpu(), model)
    (found,) = plan.spawn_observed(observe).run([array])
    close(found, np.repeat(array.sum(1, dtype="f8"), 3).reshape(2, 3).astype("f4"), 16)
    close(array @ seen[0].T, plan.spawn().run([array])[0], 16)


def test_products_in_bodies() -> None:
    """A state is multiplied three times with weights that the body has, and a slice is added each time."""
    body = TypedModel()
    state, each = source(body, "state", "1,2,32,f32"), source(body, "each", "1,2,32,f32")
    found = product(body, "p", state, matrix(body, 32, 32), "bmk,nk->bmn")
    (found,) = body.wire_node("small", Mul(), [found, body.add_const("c", np.full((1, 1, 1), 0.125, "f4"))])
    body.set_outputs(body.wire_node("sum", Add(), [found, each]))
    model = TypedModel()
    inputs = [source(model, "start", "1,2,32,f32"), source(model, "all", "3,2,32,f32")]
    outputs = (OutputMapping(state=True, last=0),)
    op = Scan(body, (StateInput(), ScannedInput(0)), outputs, reset_every_turn=True)
    model.set_outputs(model.wire_node("loop", op, inputs))
    assert launches(model).count("vector_blocks") == 1  # in a loop
    arrays = [RNG.standard_normal(shape).astype("f4") for shape in ((1, 2, 32), (3, 2, 32))]
    close(run(model, *arrays)[0], reference(model, *arrays)[0], 8)
