"""What the tests of this distribution share."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

import tract_core as tract_api
from tract_core.cli.frame import app

sys.path.insert(0, str(Path(__file__).parent))  # for the helpers beside the tests

from quantize_models import BUILDERS, turns


@pytest.fixture
def network(tmp_path: Path) -> Callable[[str], tract_api.Model]:
    """A network of `BUILDERS`, loaded."""

    def load(name: str) -> tract_api.Model:
        return tract_api.onnx().load_bytes(BUILDERS[name]()).into_model()

    return load


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[str], tuple[Path, Path]]:
    """A network in a file, and a folder with data for it."""

    def write(name: str) -> tuple[Path, Path]:
        path, data = tmp_path / f"{name}.onnx", tmp_path / "data"
        path.write_bytes(BUILDERS[name]())
        data.mkdir(exist_ok=True)
        for number, turn in enumerate(turns(name)):
            np.savez(data / f"{number}.npz", **turn)
        return path, data

    return write


@pytest.fixture
def tract() -> Callable[..., Result]:
    """Call the command; whatever goes wrong, there is never a traceback."""

    def call(*arguments: object) -> Result:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "Traceback" not in result.output
        return result

    return call
