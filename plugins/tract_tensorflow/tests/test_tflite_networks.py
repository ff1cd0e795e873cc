"""Networks of Keras give what LiteRT gives, as TFLite files: in floats, with weights in bytes, in bytes altogether.

`making/make_tflite_networks.py` writes them. Where ``TRACT_TENSORFLOW_TABLE`` names a file, it gets a line for each.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import tract_core as tract

FOLDER = Path(os.environ.get("TRACT_TENSORFLOW_NETWORKS", ".tensorflow"))
TABLE = os.environ.get("TRACT_TENSORFLOW_TABLE")
FILES = sorted(path.relative_to(FOLDER) for path in FOLDER.glob("*/*.tflite"))

pytestmark = pytest.mark.networks

RELATIVE = {"float": 2e-5, "dynamic": 2e-2, "int8": 0.0}
"""Allowed difference, relative to the largest element. Where numbers are rounded to bytes in each run, one that differs
in its last digit may be a step further, and all behind it: LiteRT's two kinds of kernels differ by up to 0.007 so."""

UNORDERED = {"detector_of_one"}
"""Of equal scores, which bytes often are, TFLite takes one or the other first; here it is the first one."""


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize("file", FILES, ids=str)
def test_as_litert(file, runtime):
    name, form = file.parent.name, file.stem
    values = np.load((FOLDER / file).with_suffix(".npz"))
    model = tract.load(FOLDER / file)
    (found,) = tract.runtime_for_name(runtime).prepare(model).run([values["x"]])
    distances = [distance(name, one, values["reference"]) for one in (found.numpy(), values["fast"])]
    if TABLE:
        with Path(TABLE).open("a", encoding="utf-8") as table:
            table.write(f"{file} {runtime}: {distances[0]:.1e}, LiteRT's fast kernels {distances[1]:.1e}\n")
    assert distances[0] <= RELATIVE[form]


def distance(name: str, found: np.ndarray, wanted: np.ndarray) -> float:
    """How far apart they are at most, relative to the largest element."""
    assert found.shape == wanted.shape
    if name in UNORDERED:
        found, wanted = ordered(found), ordered(wanted)
    return float(np.abs(found.astype(np.float64) - wanted).max() / np.abs(wanted).max())


def ordered(boxes: np.ndarray) -> np.ndarray:
    """The boxes of an image, sorted by all that is said of them."""
    rows = boxes.reshape(-1, boxes.shape[-1])
    return rows[np.lexsort(rows.T)]


def test_there_are_networks():
    assert FILES, f"make_tflite_networks.py writes them to {FOLDER}"
