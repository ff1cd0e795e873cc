"""What the tests of the command share: a small model in a file, and a way to call the command."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper, numpy_helper
from tract_cpu.ceilings import Meter
from tract_llvm.isa import Isa

from tract_core.cli.frame import app
from tract_core.runtime.work import Ceilings

sys.path.insert(0, str(Path(__file__).parent))

WEIGHTS = np.arange(12, dtype=np.float32).reshape(4, 3) / 10


_MEASURES = Meter.ceilings


@cache
def _measured(isa: Isa, seconds: float, threads: int) -> Ceilings:
    return _MEASURES(Meter(isa, seconds), threads)


@pytest.fixture(autouse=True)
def _the_machine_is_measured_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each ``--profile`` asks twice what the machine can do at most, which takes a second of both cores."""
    monkeypatch.setattr(Meter, "ceilings", lambda meter, threads: _measured(meter.isa, meter.seconds, threads))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """y = relu(x @ WEIGHTS + 1), x: B,4,f32; with an identity in between, which declutter removes."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"]),
        helper.make_node("Identity", ["product"], ["same"]),
        helper.make_node("Add", ["same", "one"], ["sum"]),
        helper.make_node("Relu", ["sum"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["B", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["B", 3])],
        [numpy_helper.from_array(WEIGHTS, "w"), numpy_helper.from_array(np.array([1], np.float32), "one")],
    )
    path = tmp_path / "small.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], producer_name="test"), path)
    return path


@pytest.fixture
def tract() -> Callable[..., Result]:
    """Call the command; whatever goes wrong, there is never a traceback."""

    def call(*arguments: object) -> Result:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        assert "Traceback" not in result.output
        return result

    return call
