"""SavedModels that TensorFlow made (`making/make_saved_models.py`): variables, functions, branches and loops."""

from __future__ import annotations

import numpy as np
import pytest
from saved_model_cases import runs, unpack, values
from tract_tensorflow.graphdef.loader import TensorflowLoader

import tract_core as tract
from tract_core.api.reading import handle_of


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
