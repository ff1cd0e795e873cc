"""The scan of the file: what it cuts out is found again, and broken files are refused with typed errors."""

from __future__ import annotations

import contextlib

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx_networks import convolutional, encoder
from tract_onnx.frontend import OnnxLoader
from tract_onnx.wire_format import LARGE, scan

from tract_core.errors import CorruptModel, LimitExceeded, ModelError, TractError


def restored(skeleton, content):
    """The model that the skeleton stands for."""
    model = onnx.ModelProto()
    model.ParseFromString(skeleton.content)
    for tensor in tensors(model.graph):
        region = skeleton.region(tensor.raw_data)
        if region is not None:
            tensor.raw_data = content[region.offset : region.offset + region.length]
    return model


def tensors(graph):
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield sparse.values
        yield sparse.indices
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            if attribute.HasField("g"):
                yield from tensors(attribute.g)


arrays = st.integers(0, 40).map(lambda size: np.arange(size, dtype=np.float32))
constants = arrays.map(lambda array: helper.make_node("Constant", [], ["c"], value=numpy_helper.from_array(array)))


@st.composite
def graphs(draw, depth=0):
    """Graphs with initializers and constants of all sizes, also in graphs inside nodes."""
    nodes = draw(st.lists(constants, max_size=3))
    if depth < 2 and draw(st.booleans()):
        nodes.append(helper.make_node("If", ["c"], ["d"], then_branch=draw(graphs(depth + 1))))
    weights = [
        numpy_helper.from_array(array, f"w{slot}") for slot, array in enumerate(draw(st.lists(arrays, max_size=4)))
    ]
    return helper.make_graph(nodes, draw(st.text(max_size=5)), [], [], weights)


@settings(max_examples=150, deadline=None)
@given(graphs(), st.integers(0, 100))
def test_scanned_and_parsed_is_the_same_as_parsed(graph, large):
    content = helper.make_model(graph).SerializeToString()
    skeleton = scan(content, large=large)
    assert restored(skeleton, content) == onnx.ModelProto.FromString(content)
    assert all(region.length > large for region in skeleton.regions)


def test_large_payloads_are_not_in_the_skeleton():
    content = encoder(hidden=64).SerializeToString()
    skeleton = scan(content)
    assert len(skeleton.content) < len(content) / 10
    assert sum(region.length for region in skeleton.regions) > len(content) * 0.9
    assert restored(skeleton, content) == onnx.ModelProto.FromString(content)


def test_constants_of_the_model_are_views_of_the_file(tmp_path):
    path = tmp_path / "model.onnx"
    wanted = np.random.default_rng(0).random((64, 64), np.float32)
    for shift in range(4):  # whatever the alignment
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["y"])],
            "g" * (shift + 1),
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 64])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 64])],
            [numpy_helper.from_array(wanted, "w")],
        )
        path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())
        model = OnnxLoader().load(path)
        array = model.node_by_name("w").op.value.array
        assert not array.flags.owndata
        assert not array.flags.writeable
        np.testing.assert_array_equal(array, wanted)


def test_a_payload_that_looks_like_a_stand_in_is_left_alone():
    fake = scan(encoder(hidden=64).SerializeToString()).prefix + bytes(8)
    array = np.frombuffer(fake, np.uint8)
    model = helper.make_model(helper.make_graph([], "g", [], [], [numpy_helper.from_array(array, "w")]))
    skeleton = scan(model.SerializeToString())
    assert skeleton.region(fake) is None
    assert restored(skeleton, b"") == model


SMALL = convolutional().SerializeToString()


@pytest.mark.parametrize("large", [0, LARGE])
def test_a_model_cut_off_anywhere(large, monkeypatch):
    """Every prefix of a model is either refused with a typed error or, at a boundary, a model."""
    monkeypatch.setattr("tract_onnx.frontend.scan", lambda buffer, **options: scan(buffer, large=large, **options))
    accepted = 0
    for end in range(len(SMALL)):
        try:
            OnnxLoader().load_bytes(SMALL[:end])
        except ModelError:
            continue
        accepted += 1
    assert accepted <= 1


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(SMALL) - 1), st.integers(0, 255))
def test_a_model_with_one_wrong_byte(place, value):
    content = SMALL[:place] + bytes([value]) + SMALL[place + 1 :]
    with contextlib.suppress(TractError):
        OnnxLoader().load_bytes(content).into_typed()


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes(content):
    with pytest.raises(ModelError):
        OnnxLoader().load_bytes(content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x3a\xff\xff\xff\xff\x0f", "a field of 4294967295 bytes where 0 are left"),
        (b"\x3a" + b"\xff" * 20, "a number that does not end"),
        (b"\x08" + b"\xff" * 12, "a number that does not end"),
        (b"\x3b\x00", "wire type 3"),
        (b"\x0d\x00", "a field of 4 bytes where 1 are left"),
    ],
)
def test_broken_encodings(content, message):
    with pytest.raises(CorruptModel) as caught:
        scan(content, large=0)
    assert message in caught.value.problem
    assert caught.value.where.startswith("offset ")


def test_deep_nesting_is_refused():
    graph = helper.make_graph([], "innermost", [], [], [numpy_helper.from_array(np.zeros(5000, np.float32), "w")])
    inner = graph.SerializeToString()
    for _ in range(2000):
        for tag in (0x32, 0x2A, 0x0A):  # attribute.g, node.attribute, graph.node
            inner = bytes([tag]) + encode(len(inner)) + inner
    content = b"\x3a" + encode(len(inner)) + inner
    with pytest.raises(LimitExceeded, match="nested more than 100 deep"):
        scan(content)
    with pytest.raises(ModelError):
        OnnxLoader().load_bytes(content)


def encode(number):
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])
