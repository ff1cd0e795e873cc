"""What the tests of this distribution share."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the helpers beside the tests

from row_models import BUILDERS


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Paths of small models, by name."""
    folder = tmp_path_factory.mktemp("models")
    paths = {name: folder / f"{name}.onnx" for name in BUILDERS}
    for name, path in paths.items():
        path.write_bytes(BUILDERS[name]())
    return {name: str(path) for name, path in paths.items()}


@pytest.fixture
def rows() -> np.ndarray:
    """A hundred rows of eight numbers."""
    return np.random.default_rng(0).standard_normal((100, 8)).astype(np.float32)
