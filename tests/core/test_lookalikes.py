"""Files that are taken for models, written by the libraries that write them."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import random
import tarfile
import wave
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tract_core
from tract_core.errors import InputError
from tract_core.lookalikes import HEAD, recognise, recognise_folder


def zipped(name: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, b"content")
    return file.getvalue()


def tarred() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("model.onnx"))
    return file.getvalue()


def saved() -> bytes:
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n"
SAFETENSORS = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()

FILES = {
    "Git LFS pointer": POINTER,
    "zeros": bytes(4096),
    "HTML page": b'\n<!DOCTYPE html>\n<html lang="en"><title>Not Found</title>',
    "written as text": b"<ir_version: 8>\nagraph (float[N] x) => (float[N] y) { y = Relu(x) }",
    "ONNX model written as text": b'ir_version: 8\nproducer_name: "pytorch"\ngraph {\n}\n',
    "written as JSON": b'{\n  "irVersion": "8",\n  "graph": {}\n}',
    "XML text": b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>",
    "JSON text": json.dumps({"error": "Repository not found"}).encode(),
    "an empty JSON text": b"{}",
    "PyTorch file": zipped("archive/data.pkl"),
    "ZIP archive": zipped("folder/model.onnx"),
    "packed file": gzip.compress(b"model"),
    "packed by bzip2": bz2.compress(b"model"),
    "packed by xz": lzma.compress(b"model"),
    "tar archive": tarred(),
    "Python pickle": pickle.dumps({"weight": [1.0]}, protocol=4),
    "TensorFlow Lite model": b"\x1c\0\0\0TFL3" + bytes(100),
    "HDF5 file": b"\x89HDF\r\n\x1a\n" + bytes(100),
    "ORT format": b"\x28\0\0\0ORTM" + bytes(100),
    "GGUF file": b"GGUF\x03\0\0\0",
    "policy as an asset": b"CRVO\0\0\0\x01" + bytes(20),
    "safetensors file": len(SAFETENSORS).to_bytes(8, "little") + SAFETENSORS + bytes(4),
    "array of NumPy": saved(),
    "a text that begins with 'Entry not found'": b"Entry not found",
}


OF_OTHERS = {
    "model of OpenVINO": b'<?xml version="1.0"?>\n<net name="onnx_Frontend_IR" version="11">\n\t<layer',
    "model of LightGBM": b"tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\n",
    "model of XGBoost": b'{"learner":{"attributes":{"scikit_learn":"{\\"_estimator_type',
    "of XGBoost": b"{L\0\0\0\0\0\0\0\x07learner{L\0\0\0\0\0\0\0\nattributes{}",
    "model of CatBoost": b"CBM1\x08 \0\0\x10\0\0\0\0\0\n\0",
    "frozen graph of TensorFlow": b"\n;\n\x01x\x12\x0bPlaceholder*\x0b\n\x05dtype\x12\x020\x01*\x1c\n\x05shape",
    "graph of TensorFlow": b'node {\n  name: "x"\n  op: "Placeholder"\n  attr {',
    "model of Core ML": b"\x08\x04\x12\xc7\x01\n\x0f\n\x01x\x1a\n*\x08\n\x02\x01\x04\x10\xa0\x80\x04R\x10\n\x06relu_0",
    "SavedModel of TensorFlow": b"\x08\x01\x12\xd9\xaa\x01\n\xd6\x0e\x12\xa6\x0e\n^\n\x10AssignVariableOp",
    "model of Keras": b"PK\x03\x04\x14\0\0\0\0\0\0\0!\0\x9a|\xc4\xaf@\0\0\0@\0\0\0\r\0\0\0metadata.json{}",
    "Python pickle": b"x^}SKk\x14A\x10\xdegf\xb3\xc4\x90\xe8A\xd4$\x8a",
    "checkpoint of TensorFlow": b'model_checkpoint_path: "model-1"\n',
    "configuration of a model of transformers": b'{\n  "architectures": [\n    "BertModel"\n  ],',
    "model of TensorFlow.js": b'{"format": "graph-model", "generatedBy": "2.11.0"',
    "notebook": b'{\n "cells": [\n  {',
    "network of Caffe": b'name: "LeNet"\nlayer {\n  name: "data"',
    "network of Darknet": b"# yolo\n[net]\nbatch=64",
    "model of ncnn": b"7767517\n75 83\n",
    "model of ExecuTorch": b"\x1c\0\0\0ET12" + bytes(20),
    "TensorRT engine": b"ftrt" + bytes(20),
    "PDF document": b"%PDF-1.7\n",
    "program or a library": b"\x7fELF\x02\x01\x01",
}
"""How files begin that other projects wrote, or say that they write."""


@pytest.mark.parametrize("what", OF_OTHERS)
def test_models_of_others_are_answered_with_the_way_in(what: str) -> None:
    found = recognise(OF_OTHERS[what][:HEAD], "model.onnx")
    assert found is not None
    assert what in found.what
    assert len(found.advice) > 10


def test_no_model_of_onnx_is_taken_for_one_of_others() -> None:
    """Whatever names its producer and its graph have: messages of protobuf look alike."""
    from onnx import TensorProto, helper

    for name in ("", "x", "pytorch", "Model", "a" * 200):
        fact = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["B", 3])
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], name or "g", [fact], [fact])
        for ir in range(3, 14):
            content = helper.make_model(graph, producer_name=name, ir_version=ir).SerializeToString()
            found = recognise(content[:HEAD], "model.onnx")
            assert found is None, (name, ir, found)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("model-1.index", "checkpoint of TensorFlow"),
        ("inference.pdmodel", "PaddlePaddle"),
        ("net.mnn", "a model of MNN"),
        ("net.engine", "a TensorRT engine"),
        ("net.pth", "a PyTorch file"),
        ("net.hef", "compiled for a device"),
    ],
)
def test_what_has_no_beginning_of_its_own_is_told_by_its_name(name: str, what: str) -> None:
    content = random.Random(0).randbytes(HEAD)
    found = recognise(content, name)
    assert found is not None
    assert what in found.what


FOLDERS = {
    "Core ML": ["Manifest.json", "Data"],
    "model of Core ML": ["coremldata.bin", "model.espresso.net"],
    "checkpoint": ["checkpoint", "model-1.index", "model-1.data-00000-of-00001"],
    "transformers": ["config.json", "model-00001-of-00002.safetensors", "tokenizer.json"],
    "of transformers": ["config.json", "pytorch_model-00001-of-00002.bin"],
    "adapter": ["adapter_config.json", "adapter_model.safetensors"],
    "diffusers": ["model_index.json", "unet", "vae"],
    "OpenVINO": ["openvino_model.xml", "openvino_model.bin"],
    "PaddlePaddle": ["inference.pdmodel", "inference.pdiparams"],
    "PyTorch": ["data.pkl", "version", "data"],
}


@pytest.mark.parametrize("what", FOLDERS)
def test_folders_that_are_models_of_others(what: str, tmp_path: Path) -> None:
    found = recognise_folder(FOLDERS[what])
    assert found is not None
    assert what in found.what
    for name in FOLDERS[what]:
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=f"it is .*{what}") as caught:
        tract_core.load(tmp_path)
    assert caught.value.hint == found.advice


def test_the_folder_of_a_saved_model_is_known_where_nothing_reads_it() -> None:
    found = recognise_folder(["saved_model.pb", "variables", "assets", "fingerprint.pb"])
    assert found is not None
    assert "SavedModel" in found.what
    assert "tract-tensorflow" in found.advice


def test_folders_of_which_nothing_is_known() -> None:
    assert recognise_folder([]) is None
    assert recognise_folder(["notes.txt", "model.py"]) is None


def image_of(kind: str) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.new("RGB", (4, 4)).save(file, kind)
    return file.getvalue()


def wave_file() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(16000)
        sound.writeframes(bytes(64))
    return file.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP"])
def test_images(kind: str) -> None:
    found = recognise(image_of(kind)[:HEAD], "cat")
    assert found is not None
    assert found.what == "an image"
    assert "--input NAME=FILE" in found.advice
    assert "--input NAME=FILE takes it" in found.as_values


@pytest.mark.parametrize("content", [wave_file(), b"fLaC\0\0\0\x22", b"OggS\0\x02", b"ID3\x03\0", b"\xff\xfb\x90\0"])
def test_sounds(content: bytes) -> None:
    found = recognise(content[:HEAD], "hello")
    assert found is not None
    assert found.what == "a sound"
    assert "--input NAME=FILE.wav takes one in PCM" in found.as_values


def test_arrays_are_values() -> None:
    file = io.BytesIO()
    np.savez(file, image=np.zeros(3))
    for content, flag in ((saved(), "--input NAME=FILE.npy"), (file.getvalue(), "--input-from-npz")):
        found = recognise(content[:HEAD])
        assert found is not None
        assert flag in found.as_values


@pytest.mark.parametrize("what", FILES)
def test_what_it_is_and_what_to_do(what: str) -> None:
    found = recognise(FILES[what][:HEAD])
    assert found is not None
    known = {"an empty JSON text": "JSON text", "packed by bzip2": "packed file", "packed by xz": "packed file"}
    assert known.get(what, what) in found.what
    assert len(found.advice) > 10


def test_a_text_is_quoted_in_part_and_harmlessly() -> None:
    found = recognise(b"a" * 500)
    assert found is not None
    assert len(found.what) < 100
    assert recognise(b"\x1b[31mred\x1b[0m and so on") is None


@pytest.mark.parametrize("name", ["model.onnx.data", "model.onnx_data"])
def test_external_data_is_told_by_its_name(name: str) -> None:
    content = random.Random(0).randbytes(HEAD)
    found = recognise(content, name)
    assert found is not None
    assert "'model.onnx'" in found.advice
    assert recognise(content, "model.onnx") is None


def test_what_is_not_known_is_not_guessed() -> None:
    draw = random.Random(1)
    assert all(recognise(draw.randbytes(size)) is None for size in range(40, 400))
    assert recognise(b"") is None
