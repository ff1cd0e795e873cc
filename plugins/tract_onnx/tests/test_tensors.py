"""Tensors of every element type, stored in every way, against the ``onnx`` package's own reader."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from tract_onnx.tensors import ELEMENT_TYPES, TensorReader
from tract_onnx.wire_format import Skeleton

from tract_core.data import DatumType
from tract_core.data.stored import byte_count, from_bytes
from tract_core.errors import CorruptModel, LimitExceeded, ModelError, Unsupported
from tract_core.frontend.external import ExternalFiles

PLAIN = [code for code in ELEMENT_TYPES if code != TensorProto.STRING]


def read(tensor):
    return TensorReader(b"", Skeleton(b"", b"never a prefix!!", []), ExternalFiles(None)).array(tensor)


def random_values(code, shape):
    """Values that every numeric type holds exactly."""
    random = np.random.default_rng(code)
    dtype = helper.tensor_dtype_to_np_dtype(code)
    choices = np.array([0, 1]) if code in (TensorProto.BOOL, 25, 26) else np.array([1, 2, 4])
    if code in (TensorProto.FLOAT4E2M1, TensorProto.UINT4):
        choices = np.array([0, 1, 2, 3, 4, 6])
    if code in (TensorProto.INT4, TensorProto.INT8, TensorProto.FLOAT, TensorProto.BFLOAT16):
        choices = np.array([-8, -3, -1, 0, 2, 7])
    return random.choice(choices, shape).astype(dtype)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (0, 4), (3, 1, 3)])
@pytest.mark.parametrize("code", PLAIN)
def test_raw_elements(code, shape):
    tensor = numpy_helper.from_array(random_values(code, shape), "t")
    assert tensor.HasField("raw_data")
    found, wanted = read(tensor), numpy_helper.to_array(tensor)
    assert found.dtype == ELEMENT_TYPES[code].numpy
    assert found.shape == shape
    assert found.tobytes() == wanted.astype(found.dtype).tobytes()


@pytest.mark.parametrize("code", PLAIN)
def test_typed_elements(code):
    values = random_values(code, (2, 5))
    kind = ELEMENT_TYPES[code]
    numbers = values.astype(np.complex128 if kind.is_complex() else np.float64)
    tensor = helper.make_tensor("t", code, (2, 5), numbers.reshape(-1).tolist())
    assert not tensor.HasField("raw_data")
    found, wanted = read(tensor), numpy_helper.to_array(tensor)
    assert found.tobytes() == wanted.astype(found.dtype).tobytes()
    assert found.shape == (2, 5)


def test_strings():
    tensor = helper.make_tensor("t", TensorProto.STRING, (2,), ["été".encode(), b""])
    found = read(tensor)
    assert found.tolist() == ["été", ""]
    assert DatumType.from_numpy(found.dtype) is DatumType.STRING


@pytest.mark.parametrize("offset", range(9))
def test_views_at_any_offset(offset):
    wanted = np.arange(6, dtype=np.float64).reshape(2, 3)
    content = b"x" * offset + wanted.tobytes()
    found = from_bytes(DatumType.F64, (2, 3), content, offset, wanted.nbytes)
    assert not found.flags.owndata
    assert not found.flags.writeable
    np.testing.assert_array_equal(found @ found.T, wanted @ wanted.T)
    np.testing.assert_array_equal(found + 1, wanted + 1)


def test_sparse_tensors():
    tensor = helper.make_sparse_tensor(
        helper.make_tensor("s", TensorProto.FLOAT, (2,), [5.0, 7.0]),
        helper.make_tensor("", TensorProto.INT64, (2, 2), [0, 2, 1, 0]),
        [2, 3],
    )
    reader = TensorReader(b"", Skeleton(b"", b"never a prefix!!", []), ExternalFiles(None))
    assert reader.sparse(tensor).tolist() == [[0, 0, 5], [7, 0, 0]]
    tensor.indices.CopyFrom(helper.make_tensor("", TensorProto.INT64, (2,), [2, 3]))
    assert reader.sparse(tensor).tolist() == [[0, 0, 5], [7, 0, 0]]
    tensor.indices.CopyFrom(helper.make_tensor("", TensorProto.INT64, (2,), [2, 6]))
    with pytest.raises(CorruptModel, match="outside the shape"):
        reader.sparse(tensor)
    tensor.dims[:] = [1 << 20, 1 << 20]
    with pytest.raises(LimitExceeded, match="4398046511104 bytes when they are unfolded"):
        reader.sparse(tensor)


def floats(**fields):
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[2])
    for name, value in fields.items():
        if isinstance(value, list):
            getattr(tensor, name).extend(value)
        else:
            setattr(tensor, name, value)
    return tensor


@pytest.mark.parametrize(
    ("tensor", "message"),
    [
        (floats(raw_data=b"1234567"), "7 bytes are there, f32 of shape [2] takes 8"),
        (floats(float_data=[1.0]), "1 elements are there, f32 of shape [2] takes 2"),
        (floats(float_data=[1.0, 2.0], raw_data=b"12345678"), "more than once"),
        (floats(int64_data=[1, 2]), "belong in float_data, found int64_data"),
        (TensorProto(name="w", data_type=1, dims=[-1]), "negative size"),
        (TensorProto(name="w", data_type=1, dims=[1 << 62, 1 << 62, 0]), "more elements than memory has addresses"),
        (TensorProto(name="w", data_type=1, dims=[1 << 40], raw_data=b"1234"), "takes 4398046511104"),
        (TensorProto(name="w", data_type=1, dims=[1] * 70), "70 axes, at most 64"),
        (TensorProto(name="w", data_type=8, dims=[1], string_data=[b"\xff"]), "not UTF-8"),
        (TensorProto(name="w", data_type=21, dims=[3], raw_data=b"1"), "1 bytes are there, u4 of shape [3] takes 2"),
        (TensorProto(name="w", data_type=1, dims=[1], data_location=1), "the file's name is missing"),
    ],
)
def test_what_is_refused(tensor, message):
    with pytest.raises(ModelError) as caught:
        read(tensor)
    assert message in caught.value.problem
    assert caught.value.where == "tensor 'w'"


@pytest.mark.parametrize("code", [0, 27, 1000, -1])
def test_unknown_element_types(code):
    with pytest.raises(Unsupported, match=rf"element type number {code} is not known; known are f32, u8"):
        read(TensorProto(name="w", data_type=code, dims=[1], raw_data=b"1234"))


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=80))
def test_random_bytes_as_a_tensor(content):
    tensor = TensorProto()
    try:
        tensor.ParseFromString(content)
    except Exception:
        return
    with contextlib.suppress(CorruptModel, Unsupported):
        read(tensor)


def test_packed_sizes_round_up():
    assert byte_count(DatumType.I4, (3,)) == 2
    assert byte_count(DatumType.U2, (5,)) == 2
