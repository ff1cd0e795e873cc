"""SavedModels that TensorFlow made (`making/make_saved_models.py`): variables, functions, branches and loops."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from tract_tensorflow.graphdef.loader import TensorflowLoader

import tract_core as tract
from tract_core.api.loading import handle_of


@cache
def held():
    with np.load(Path(__file__).with_name("saved_models.npz")) as found:
        return {name: found[name] for name in found.files}


def unpack(name, folder):
    for key, content in held().items():
        if key.startswith(f"{name}/file/"):
            path = folder / key[len(f"{name}/file/") :]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.tobytes())
    return folder


def runs():
    """Every run of every signature: ``(model, signature, number)``."""
    keys = [key.split("/") for key in held() if "/y/" in key]
    return list(dict.fromkeys((key[0], key[1], key[2]) for key in keys))


def values(name, signature, number):
    found = defaultdict(dict)
    for key, array in held().items():
        parts = key.split("/")
        if parts[:3] == [name, signature, number] and len(parts) == 5:
            found[parts[3]][parts[4]] = array.astype(object) if array.dtype.kind == "U" else array
    return found["x"], found["y"]


def run(model, given, runtime="reference"):
    inputs = [model.outlet_name(outlet) for outlet in model.inputs]
    outputs = [model.outlet_name(outlet) for outlet in model.outputs]
    runnable = tract.runtime_for_name(runtime).prepare(handle_of(model, "case").into_model())
    results = runnable.run([given[name] for name in inputs])
    return {name: result.numpy() for name, result in zip(outputs, results, strict=True)}


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize(("name", "signature", "number"), runs(), ids=["-".join(one) for one in runs()])
def test_as_tensorflow(name, signature, number, runtime, tmp_path):
    given, wanted = values(name, signature, number)
    model = TensorflowLoader(signature=signature).load(unpack(name, tmp_path))
    found = run(model, given, runtime)
    assert found.keys() == wanted.keys()
    for key, array in wanted.items():
        assert found[key].dtype == array.dtype
        assert found[key].shape == array.shape
        if array.dtype.kind == "f":
            np.testing.assert_allclose(found[key], array, rtol=0, atol=1e-5 * max(np.abs(array).max(initial=0), 1e-3))
        else:
            np.testing.assert_array_equal(found[key], array)
