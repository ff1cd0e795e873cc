"""Tensors in files beside the model, and paths that lead elsewhere."""

from __future__ import annotations

import os
from hashlib import sha1

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx_check import assert_close
from tract_onnx.frontend import OnnxLoader

from tract_core.errors import CorruptModel, ModelError, UnsafePath
from tract_core.runtime.plan import TypedSimplePlan

WEIGHTS = np.random.default_rng(0).random((4, 3), np.float32)


def model_with(**entries):
    """A product with weights that are elsewhere. ``entries``: what the file says about where."""
    weights = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[4, 3], data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        weights.external_data.add(key=key, value=str(value))
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
        [weights],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def load(folder, **entries):
    path = folder / "model.onnx"
    path.write_bytes(model_with(**entries).SerializeToString())
    return OnnxLoader().load(path)


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "inside"
    (inside / "below").mkdir(parents=True)
    (inside / "weights.bin").write_bytes(b"1234567" + WEIGHTS.tobytes())
    (inside / "below" / "weights.bin").write_bytes(WEIGHTS.tobytes())
    (tmp_path / "secret.bin").write_bytes(WEIGHTS.tobytes())
    return inside


@pytest.mark.parametrize(
    "entries",
    [
        {"location": "weights.bin", "offset": 7, "length": 48},
        {"location": "weights.bin", "offset": 7},
        {"location": "below/weights.bin"},
        {"location": "./below/weights.bin", "checksum": sha1(WEIGHTS.tobytes()).hexdigest()},
    ],
)
def test_weights_are_read_in_place(folder, entries):
    model = load(folder, **entries)
    array = model.node_by_name("w").op.value.array
    assert not array.flags.owndata
    x = np.random.default_rng(1).random((2, 4), np.float32)
    assert_close(TypedSimplePlan(model.into_typed()).run([x]), [x @ WEIGHTS])


def test_what_the_onnx_package_writes(tmp_path):
    path = tmp_path / "model.onnx"
    model = model_with()
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(WEIGHTS, "w"))
    onnx.save(model, str(path), save_as_external_data=True, location="data", size_threshold=0)
    np.testing.assert_array_equal(OnnxLoader().load(path).node_by_name("w").op.value.array, WEIGHTS)


@pytest.mark.parametrize(
    "location",
    [
        "../secret.bin",
        "below/../../secret.bin",
        "below/../weights.bin",
        "..\\secret.bin",
        "/etc/passwd",
        "\\\\server\\share\\x",
        "C:\\x",
        "C:x",
        "file:///etc/passwd",
        "weights.bin\x00",
        "",
        ".",
        "x" * 2000,
    ],
)
def test_paths_that_lead_out(folder, location):
    with pytest.raises(UnsafePath) as caught:
        load(folder, location=location)
    assert "model.onnx" in caught.value.where
    assert "tensor 'w'" in caught.value.where
    assert caught.value.hint


def test_links(folder, tmp_path):
    (folder / "link.bin").symlink_to(tmp_path / "secret.bin")
    (folder / "out").symlink_to(tmp_path)
    (folder / "within.bin").symlink_to("below/weights.bin")
    for location in ("link.bin", "out/secret.bin"):
        with pytest.raises(UnsafePath, match="leads out of the model's folder"):
            load(folder, location=location)
    np.testing.assert_array_equal(load(folder, location="within.bin").node_by_name("w").op.value.array, WEIGHTS)


def test_special_files(folder):
    os.mkfifo(folder / "pipe")
    with pytest.raises(UnsafePath, match="not a plain file"):
        load(folder, location="pipe")
    with pytest.raises(ModelError):
        load(folder, location="below")
    with pytest.raises(ModelError, match="it is not a plain file"):
        OnnxLoader().load(folder / "pipe")  # and nobody waits for its other end


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"location": "weights.bin", "offset": 8}, "48 bytes at offset 8 go beyond the 55 bytes"),
        ({"location": "weights.bin", "offset": -1}, "has offset '-1', wanted a number of bytes"),
        ({"location": "weights.bin", "length": "9" * 30}, "wanted a number of bytes"),
        ({"location": "weights.bin", "length": 47}, "47 bytes are there, f32 of shape [4,3] takes 48"),
        ({"offset": 0}, "the file's name is missing"),
    ],
)
def test_offsets_and_lengths(folder, entries, message):
    with pytest.raises(CorruptModel) as caught:
        load(folder, **entries)
    assert message in caught.value.problem


def test_a_file_that_is_not_there(folder):
    with pytest.raises(ModelError, match=r"'missing\.bin' cannot be opened: No such file"):
        load(folder, location="missing.bin")


def test_an_entry_given_twice(folder):
    model = model_with(location="weights.bin", offset=7)
    model.graph.initializer[0].external_data.add(key="location", value="below/weights.bin")
    (folder / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(CorruptModel, match="says 'location' twice"):
        OnnxLoader().load(folder / "m.onnx")


def test_keys_are_never_attributes(folder):
    array = load(folder, location="weights.bin", offset=7, __class__="x", __dict__="y").node_by_name("w").op.value.array
    np.testing.assert_array_equal(array, WEIGHTS)


def test_a_model_from_bytes_has_no_folder(folder):
    with pytest.raises(UnsafePath, match="came without a folder"):
        OnnxLoader().load_bytes(model_with(location="weights.bin", offset=7).SerializeToString())
