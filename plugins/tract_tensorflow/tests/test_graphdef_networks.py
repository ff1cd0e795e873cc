"""Networks of Keras give what TensorFlow gives, as SavedModels and as frozen graphs.

`making/make_graphdef_networks.py` writes them.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import tract_core as tract

FOLDER = Path(os.environ.get("TRACT_TENSORFLOW_NETWORKS", ".tensorflow"))
NAMES = sorted(path.parent.name for path in FOLDER.glob("*/values.npz"))

pytestmark = pytest.mark.networks

RELATIVE = 2e-4
"""Allowed difference, relative to the largest element."""


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize("form", ["saved", "frozen.pb"])
@pytest.mark.parametrize("name", NAMES)
def test_as_tensorflow(name, form, runtime):
    values = np.load(FOLDER / name / "values.npz")
    model = tract.load(FOLDER / name / form, format_name="tensorflow")
    (found,) = tract.runtime_for_name(runtime).prepare(model).run([values["x"]])
    wanted = values["y"]
    assert found.numpy().shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, rtol=0, atol=RELATIVE * np.abs(wanted).max())


def test_there_are_networks():
    assert NAMES, f"make_graphdef_networks.py writes them to {FOLDER}"
