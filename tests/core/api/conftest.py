"""Models built by hand, and a plugin with an operator that keeps state."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tract_core import Model
from tract_core.model import TypedModel
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.binary import Add, Mul
from tract_core.ops.elementwise import Tanh

_RUNNING_SUM = '''
"""A plugin with one operator, the sum of everything it was ever given."""

from dataclasses import dataclass

from tract_core.model.op import TypedOp
from tract_core.plugins import Rows, hookimpl
from tract_core.plugins.keys import STATE

DISTRIBUTION = "running-sum"
ROWS = Rows()


@dataclass(frozen=True, slots=True)
class RunningSum(TypedOp):
    start: float = 0.0

    def output_facts(self, inputs):
        return (inputs[0].without_value(),)


class Total:
    def __init__(self, start):
        self.total = start

    def run(self, session, inputs):
        self.total = self.total + inputs[0]
        return (self.total,)

    def freeze(self):
        return self.total

    def thaw(self, frozen):
        self.total = frozen


@ROWS.row(STATE, RunningSum)
def state(op, session):
    return Total(op.start)


@hookimpl
def tract_api_version():
    return "1.0"


@hookimpl
def tract_rows():
    return {"state": ["running_sum"]}
'''


@pytest.fixture
def affine() -> Callable[[], Model]:
    """A maker of models: ``y = x * scale + offset``, ``x: B,3,f32``, with ``scale = [1, 2, 3]`` and ``offset = 10``."""

    def make() -> Model:
        model = TypedModel()
        x = model.add_source("x", parse_typed_fact("B,3,f32", model.symbols))
        scale = model.add_const("scale", np.array([[1, 2, 3]], np.float32))
        offset = model.add_const("offset", np.array([[10]], np.float32))
        (scaled,) = model.wire_node("scaled", Mul(), [x, scale])
        model.set_outputs(model.wire_node("y", Add(), [scaled, offset]))
        model.properties["maker"] = np.array("by hand", dtype=object)
        return Model.from_typed(model)

    return make


@pytest.fixture
def two_inputs() -> Callable[[], Model]:
    """A maker of models: ``total = a + b`` and ``squashed = tanh(total)``, ``a: N,2,f32`` and ``b: N,2,f32``."""

    def make() -> Model:
        model = TypedModel()
        a = model.add_source("a", parse_typed_fact("N,2,f32", model.symbols))
        b = model.add_source("b", parse_typed_fact("N,2,f32", model.symbols))
        total = model.wire_node("total", Add(), [a, b])
        model.set_outputs([*total, *model.wire_node("squashed", Tanh(), total)])
        return Model.from_typed(model)

    return make


@pytest.fixture(scope="session")
def plugin_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that, on Python's path, is an installed distribution with the operator ``RunningSum``."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "running_sum.py").write_text(_RUNNING_SUM)
    info = folder / "running_sum-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: running-sum\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tract]\nrunning_sum = running_sum\n")
    return folder


@pytest.fixture
def running_sum(plugin_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The plugin's module, installed for the time of one test."""
    from tract_core.plugins import refresh

    monkeypatch.syspath_prepend(str(plugin_folder))
    refresh()
    import running_sum as module  # pyright: ignore[reportMissingImports]: made by `plugin_folder`

    yield module
    refresh()


@pytest.fixture
def run_script(plugin_folder: Path) -> Callable[[str], str]:
    """Runs a script in another process, where the plugin is installed too; gives what it printed."""

    def run(script: str) -> str:
        environment = {**os.environ, "PYTHONPATH": str(plugin_folder)}
        done = subprocess.run(
            [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
