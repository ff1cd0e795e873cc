"""Tensors whose parts do not agree, or that take more memory than the file."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_hostile import any_info, gives, model_of, node, refused, taken, tensor_info

from tract_core.errors import CorruptModel, LimitExceeded, ModelError, Unsupported
from tract_core.limits import LoadLimits
from tract_core.testing.hostile import bounded

pytestmark = pytest.mark.hostile

FLOAT, INT64, INT4, STRING, BOOL = (getattr(TensorProto, name) for name in ("FLOAT", "INT64", "INT4", "STRING", "BOOL"))
BIG = (1 << 63) - 1


def tensor(kind=FLOAT, dims=(2,), **fields):
    found = TensorProto(name="w", data_type=kind, dims=dims)
    for name, value in fields.items():
        if isinstance(value, list):
            getattr(found, name).extend(value)
        elif isinstance(value, TensorProto.Segment):
            getattr(found, name).CopyFrom(value)
        else:
            setattr(found, name, value)
    return found


def with_constant(constant):
    return model_of([node("Identity", "w")], [], constants=[constant])


def with_attribute(constant):
    return model_of([node("Constant", [], value=constant)], [])


@pytest.mark.parametrize("place", [with_constant, with_attribute])
@pytest.mark.parametrize(
    ("constant", "kind", "message"),
    [
        (tensor(dims=(-1,)), CorruptModel, "negative size"),
        (tensor(dims=(2, -(1 << 63))), CorruptModel, "negative size"),
        (tensor(dims=(1 << 31,), raw_data=b"1234"), ModelError, "4 bytes are there|allowed"),
        (tensor(dims=(BIG,), raw_data=b"1234"), LimitExceeded, "memory has addresses"),
        (tensor(dims=(BIG, BIG), raw_data=b"1234"), LimitExceeded, "memory has addresses"),
        (tensor(dims=(1 << 32, 1 << 32), raw_data=b""), LimitExceeded, "memory has addresses"),
        (tensor(dims=(1 << 62, 4, 1), raw_data=b""), LimitExceeded, "memory has addresses"),
        (tensor(dims=(0, BIG)), LimitExceeded, "memory has addresses"),
        (tensor(dims=(1,) * 65, raw_data=b"1234"), LimitExceeded, "65 axes, at most 64"),
        (tensor(dims=(1,) * 1_000_000, raw_data=b"1234"), LimitExceeded, "1000000 axes"),
        (tensor(dims=(1 << 36,), raw_data=b"1234"), LimitExceeded, "takes 274877906944 bytes"),
        (tensor(raw_data=b"1234567"), CorruptModel, "7 bytes are there, f32 of shape .2. takes 8"),
        (tensor(raw_data=b"123456789"), CorruptModel, "9 bytes are there"),
        (tensor(raw_data=b""), CorruptModel, "0 bytes are there"),
        (tensor(), CorruptModel, "0 elements are there"),
        (tensor(float_data=[1.0]), CorruptModel, "1 elements are there"),
        (tensor(float_data=[1.0] * 3), CorruptModel, "3 elements are there"),
        (tensor(float_data=[1.0, 2.0], raw_data=b"12345678"), CorruptModel, "more than once"),
        (tensor(int64_data=[1, 2]), CorruptModel, "belong in float_data"),
        (tensor(float_data=[1.0, 2.0], double_data=[1.0]), CorruptModel, "belong in float_data"),
        (tensor(INT4, dims=(3,), raw_data=b"1"), CorruptModel, "1 bytes are there, i4 of shape .3. takes 2"),
        (tensor(INT4, dims=(3,), raw_data=b"123"), CorruptModel, "3 bytes are there"),
        (tensor(INT4, dims=(3,), int32_data=[1, 2, 3]), CorruptModel, "3 elements are there"),
        (tensor(STRING, raw_data=b"ab"), Unsupported, "strings cannot be raw"),
        (tensor(STRING, string_data=[b"\xff", b"a"]), CorruptModel, "not UTF-8"),
        (tensor(STRING, string_data=[b"a"]), CorruptModel, "1 elements are there"),
        (tensor(TensorProto.COMPLEX64, dims=(1,), float_data=[1.0]), CorruptModel, "complex elements take two"),
        (tensor(0, raw_data=b"12"), Unsupported, "element type number 0 is not known; known are f32"),
        (tensor(99, raw_data=b"12"), Unsupported, "element type number 99"),
        (tensor(-1, raw_data=b"12"), Unsupported, "element type number -1"),
        (tensor((1 << 31) - 1, raw_data=b"12"), Unsupported, "element type number 2147483647"),
        (tensor(segment=TensorProto.Segment(begin=0, end=1), raw_data=b"12345678"), Unsupported, "segments"),
        (tensor(data_location=TensorProto.EXTERNAL), CorruptModel, "the file's name is missing"),
    ],
)
def test_parts_that_do_not_agree(place, constant, kind, message):
    error = refused(place(constant), kind, message)
    assert "w" in error.where


@pytest.mark.parametrize(
    ("constant", "wanted"),
    [
        (tensor(INT4, dims=(3,), raw_data=b"\x21\x03"), [1, 2, 3]),
        (tensor(BOOL, raw_data=b"\x02\x00"), [True, False]),
        (tensor(dims=(0, 1 << 40)), np.zeros((0, 1 << 40))),
        (tensor(dims=(), float_data=[2.0]), 2.0),
        (tensor(TensorProto.UINT8, int32_data=[-1, 256]), [255, 0]),
    ],
)
def test_odd_ones_that_are_right(constant, wanted):
    np.testing.assert_array_equal(gives(with_constant(constant), [])[0], wanted)


@pytest.mark.parametrize("code", [-1, 0, 27, 99, (1 << 31) - 1])
def test_unknown_types_of_inputs(code):
    info = helper.make_tensor_value_info("x", 1, [2])
    info.type.tensor_type.elem_type = code
    refused(model_of([node("Relu", "x")], [info]), ModelError, "is not known")


@pytest.mark.parametrize("size", [-2, -(1 << 63)])
def test_negative_sizes_of_inputs(size):
    assert (
        "'x'" in refused(model_of([node("Relu", "x")], [tensor_info("x", [size])]), CorruptModel, "a size is -").where
    )


@pytest.mark.parametrize("shape", [[0], [BIG], [BIG, BIG], [1 << 31, 3], [BIG, 0]])
def test_sizes_that_no_machine_has(shape):
    """A declaration takes no memory, whatever it says; arithmetic on it does not overflow."""
    typed = taken(model_of([node("Relu", "x", "a"), node("Shape", "a")], [tensor_info("x", shape)]))
    assert list(typed.outlet_fact(typed.outputs[0]).dims) == shape


def test_too_many_axes_of_inputs():
    refused(model_of([node("Relu", "x")], [tensor_info("x", [1] * 100_000)]), LimitExceeded, "100000 axes, at most 64")
    inner = model_of([node("Relu", "x", "z"), node("Abs", "z")], ["x"])
    inner.graph.value_info.append(tensor_info("z", [1] * 100))
    refused(inner, LimitExceeded, "100 axes")


def test_axes_that_the_operators_add():
    """Twenty nodes that each add five axes."""
    axes = helper.make_tensor("axes", INT64, [5], range(5))
    nodes = [node("Unsqueeze", [f"t{index}", "axes"], [f"t{index + 1}"]) for index in range(20)]
    refused(model_of(nodes, [tensor_info("t0")], ["t20"], [axes]), LimitExceeded, "axes, 64 are allowed")


@pytest.mark.parametrize("op_type", ["Tile", "Expand"])
def test_sizes_that_overflow(op_type):
    """Three nodes that each make a size 2^31 times as large."""
    nodes = [node(op_type, [f"t{index}", f"n{index}"], [f"t{index + 1}"]) for index in range(3)]
    factors = [1 << 31] * 3 if op_type == "Tile" else [1 << 31, (1 << 63) - 1, 1 << 62]
    constants = [helper.make_tensor(f"n{index}", INT64, [1], [factor]) for index, factor in enumerate(factors)]
    refused(model_of(nodes, [tensor_info("t0", [1])], ["t3"], constants), ModelError, "more than 64 bits|differ|cannot")


def test_types_that_are_no_tensors():
    for kind in ("sparse_tensor_type", "opaque_type"):
        info = any_info("x")
        getattr(info.type, kind).SetInParent()
        refused(model_of([node("Relu", "x")], [info]), ModelError)
    sequence = helper.make_tensor_sequence_value_info("x", 1, [2])
    refused(model_of([node("Relu", "x")], [sequence]), ModelError)
    nothing = any_info("x")
    nothing.type.sequence_type.SetInParent()
    refused(model_of([node("Relu", "x")], [nothing]), ModelError)


def sparse(dims, indices, values=(1.0,), shape=None):
    return helper.make_sparse_tensor(
        helper.make_tensor("s", FLOAT, [len(values)], values),
        helper.make_tensor("i", INT64, shape or [len(indices)], indices),
        dims,
    )


def with_sparse(*tensors):
    model = model_of([node("Identity", ["s0"])], [])
    for index, one in enumerate(tensors):
        one.values.name = f"s{index}"
        model.graph.sparse_initializer.append(one)
    return model


@pytest.mark.parametrize(
    ("one", "kind", "message"),
    [
        (sparse([1 << 20, 1 << 20], [0]), LimitExceeded, "when they are unfolded"),
        (sparse([BIG, 2], [0]), LimitExceeded, "memory has addresses"),
        (sparse([4], [4]), CorruptModel, "outside the shape"),
        (sparse([4], [-1]), CorruptModel, "outside the shape"),
        (sparse([4], [BIG]), CorruptModel, "outside the shape"),
        (sparse([4], [0, 1]), CorruptModel, "do not go with"),
        (sparse([2, 2], [0, 1, 0], shape=[1, 3]), CorruptModel, "do not go with 2 axes"),
        (sparse([-4], [0]), CorruptModel, "negative size"),
        (sparse([], [0, 0], shape=[1, 2]), CorruptModel, "do not go with 0 axes"),
    ],
)
def test_sparse_tensors(one, kind, message):
    assert "sparse tensor" in refused(with_sparse(one), kind, message).where


def test_many_sparse_tensors():
    """Each is within the limit, and all together are not."""
    many = [sparse([1 << 20], [place]) for place in range(100)]
    refused(with_sparse(*many), LimitExceeded, "when they are unfolded", limits=LoadLimits(max_fold_bytes=64 << 20))


def test_tensors_larger_than_allowed():
    model = with_constant(tensor(dims=(1000,), raw_data=bytes(4000)))
    refused(model, LimitExceeded, "takes 4000 bytes, 3999 are allowed", limits=LoadLimits(max_tensor_bytes=3999))
    with bounded():
        taken(model, LoadLimits(max_tensor_bytes=4000))


def thousands_in_one_place(folder, kind, dims):
    """The path of a file with a tensor for each of the shapes, all in the same bytes of one file beside it."""
    (folder / "w").write_bytes(bytes(PLACE))
    model = model_of([node("Identity", ["w0"])], [])
    for index, shape in enumerate(dims):
        one = model.graph.initializer.add(
            name=f"w{index}", data_type=kind, dims=shape, data_location=TensorProto.EXTERNAL
        )
        one.external_data.add(key="location", value="w")
    path = folder / "m.onnx"
    path.write_bytes(model.SerializeToString())
    return path


PLACE = 1 << 20


@pytest.mark.parametrize(("kind", "bits"), [(FLOAT, 32), (INT4, 4), (BOOL, 8)])
def test_thousands_of_tensors_in_one_place(tmp_path, kind, bits):
    """Ten thousand tensors of a megabyte or two each: views of the file, or of what is unpacked once."""
    path = thousands_in_one_place(tmp_path, kind, [[PLACE * 8 // bits]] * 10_000)
    with bounded(memory=100 << 20):
        taken(path, LoadLimits(max_fold_bytes=0))


def test_thousands_of_tensors_in_one_place_that_are_each_unpacked(tmp_path):
    """Their shapes differ, so that none is another one: each is within the limit, and all together are not."""
    path = thousands_in_one_place(
        tmp_path, BOOL, [[PLACE >> n % 20, 1 << n % 20, *[1] * (n // 20)] for n in range(200)]
    )
    refused(path, LimitExceeded, "the tensors of the file take", limits=LoadLimits(max_fold_bytes=16 << 20))


def test_a_function_that_is_called_again_and_again():
    """What a call makes of a constant of the function, the other calls have too."""
    opset = helper.make_opsetid("", 17)
    for name, held in (("value_ints", [1] * 100_000), ("value", tensor(BOOL, (200_000,), raw_data=bytes(200_000)))):
        inner = [node("Constant", [], ["c"], **{name: held}), node("Size", ["c"], ["y"])]
        function = helper.make_function("ours", "F", [], ["y"], inner, [opset])
        calls = [helper.make_node("F", [], [f"y{n}"], domain="ours") for n in range(1000)]
        outputs = [f"y{n}" for n in range(1000)]
        model = model_of(calls, [], outputs, functions=[function], more_opsets=[("ours", 1)])
        with bounded(memory=100 << 20):
            taken(model, LoadLimits(max_fold_bytes=0))


def test_typed_numbers_are_read_without_lists():
    """A byte of the file may be a number of eight bytes, and no more than that is made of it."""
    count = 4_000_000
    model = with_constant(tensor(INT64, dims=(count,), int64_data=[1] * count))
    content = model.SerializeToString()
    assert len(content) < count + 1000
    with bounded(memory=200 << 20):
        taken(content)


def test_a_file_is_no_array_of_objects():
    """No element type of the format makes NumPy read Python objects."""
    for code in range(-5, 60):
        model = with_constant(tensor(code, dims=(1,), raw_data=b"\x01" * 8))
        try:
            found = gives(model, [])
        except ModelError:
            continue
        assert found[0].dtype.kind != "O"


def test_attributes_of_the_wrong_kind():
    for change in (
        {"kernel_shape": 3},
        {"kernel_shape": [1.5, 2.0]},
        {"kernel_shape": "3"},
        {"kernel_shape": tensor(INT64, dims=(2,), int64_data=[1, 1])},
        {"kernel_shape": ["3", "3"]},
    ):
        refused(model_of([node("MaxPool", "x", **change)], [tensor_info("x", [1, 1, 4, 4])]), CorruptModel, "of kind")


def test_attributes_that_refer_to_those_of_a_function():
    given = node("LeakyRelu", "x")
    given.attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="beta", type=onnx.AttributeProto.FLOAT))
    refused(model_of([given], ["x"]), CorruptModel, "refers to one of a function")
