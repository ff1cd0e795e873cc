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
import zipfile

import numpy as np
import pytest

from tract_core.lookalikes import HEAD, recognise


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
    "image": b"\x89PNG\r\n\x1a\n" + bytes(20),
    "a text that begins with 'Entry not found'": b"Entry not found",
}


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
