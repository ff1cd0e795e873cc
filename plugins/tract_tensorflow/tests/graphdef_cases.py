"""Cases of graphs that TensorFlow made (`making/make_graphdef_cases.py`), read and run here."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
from tract_tensorflow.graphdef.loader import TensorflowLoader

import tract_core as tract
from tract_core.api.reading import handle_of
from tract_core.model.fact import InferenceFact

FOLDER = Path(__file__).with_name("graphdef")

RELATIVE = {"f2": 2e-3, "V2": 2e-2, "f4": 2e-5, "c8": 2e-5, "f8": 1e-9}
"""Allowed difference by type of the elements, relative to the largest one that is wanted."""


@cache
def file_of(family):
    with np.load(FOLDER / f"{family}.npz") as found:
        return {name: found[name] for name in found.files}


def names():
    """Every case, as ``(family, name)``."""
    found = []
    for path in sorted(FOLDER.glob("*.npz")):
        found += [(path.stem, name.rpartition("/")[0]) for name in file_of(path.stem) if name.endswith("/graph")]
    return found


def case(family, name):
    """The graph, what it is given, and the results."""
    prefix = f"{name}/"
    arrays = {key[len(prefix) :]: of_bits(array) for key, array in file_of(family).items() if key.startswith(prefix)}
    graph = arrays.pop("graph").tobytes()
    given = {key: array for key, array in arrays.items() if key.startswith("x")}
    return graph, given, [arrays[f"y{slot}"] for slot in range(len(arrays) - len(given))]


def of_bits(array):
    if array.dtype.kind == "U":
        return array.astype(object)
    return array.view(ml_dtypes.bfloat16) if array.dtype == np.uint16 else array


def load(graph, count):
    """The model of a graph whose outputs are ``y0``, ``y1`` ..."""
    return TensorflowLoader(outputs=",".join(f"y{slot}" for slot in range(count))).load_bytes(graph)


def run(model, given, runtime="reference"):
    """The results of a model, in order."""
    order = [model.outlet_name(outlet) for outlet in model.inputs]
    runnable = tract.runtime_for_name(runtime).prepare(handle_of(model, "case").into_model())
    return [result.numpy() for result in runnable.run([given[name] for name in order])]


def without_sizes(model):
    """The same model, in which no size of an input is known, but for lists of integers, which are parameters."""
    for outlet in model.inputs:
        fact = model.contract(outlet)
        if len(fact.shape) != 1 or not fact.datum_type.is_integer():
            model.set_outlet_fact(outlet, InferenceFact(fact.datum_type, (None,) * len(fact.shape)))
    return model


def assert_close(found, wanted, factor=1.0):
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        assert one.dtype == other.dtype
        relative = RELATIVE.get(other.dtype.str[1:])
        if relative is None:
            np.testing.assert_array_equal(one, other)
            continue
        wide = np.complex128 if other.dtype.kind == "c" else np.float64
        a, b = one.astype(wide), other.astype(wide)
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        scale = np.abs(b[np.isfinite(b)]).max(initial=1e-6)
        np.testing.assert_allclose(a, b, rtol=0, atol=relative * factor * scale)
