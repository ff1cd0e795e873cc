"""The networks are exported once per run; without the heavy dependencies the whole folder is left out."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch exports the networks: run `make test-networks`")
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory):
    """A function from a network and whether its sizes are symbolic to the path of its ONNX file."""
    folder = tmp_path_factory.mktemp("networks")
    paths: dict[tuple[str, bool], Path] = {}

    def export(network, symbolic: bool) -> Path:
        key = (network.name, symbolic)
        if key not in paths:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                paths[key] = network.export(folder, symbolic=symbolic)
        return paths[key]

    return export
