"""An environment with the example plugins beside our own distributions, and a file that one of them reads."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import onnx
from onnx import TensorProto, helper

EXAMPLES = Path(__file__).parents[1] / "examples" / "plugins"
WHOLE = ("example", "fuse", "lines", "palette", "q4")
BROKEN = ("import", "hook", "rows", "runtime")
DECAY = [0.5, 0.9, 0.25]


@dataclass(frozen=True)
class Environment:
    """A Python environment with the example and the broken plugins beside our own distributions."""

    python: Path
    folder: Path

    @staticmethod
    def made(python: Path, folder: Path) -> Environment:
        """The environment of an interpreter, in which all examples are installed."""
        names = [*(f"tract_{one}" for one in WHOLE), *(f"broken_{one}" for one in BROKEN)]
        pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "install", "--quiet"]
        ours = [EXAMPLES / name for name in names]
        subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--no-index", *ours], check=True, timeout=300)
        return Environment(python, folder)

    def run(self, *arguments: object, status: int = 0, **variables: str) -> subprocess.CompletedProcess[str]:
        found = subprocess.run(
            [str(self.python), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=300,
            cwd=self.folder,
            env={**{k: v for k, v in os.environ.items() if not k.startswith("TRACT_")}, **variables},
            check=False,
        )
        assert found.returncode == status, found.stdout + found.stderr
        return found

    def tract(self, *arguments: object, status: int = 0, **variables: str) -> str:
        found = self.run("-m", "tract_core", *arguments, status=status, **variables)
        assert "Traceback" not in found.stderr
        return found.stdout

    def code(self, text: str, *arguments: object) -> str:
        return self.run("-c", dedent(text), *arguments).stdout


def smooth_file(folder: Path) -> Path:
    """x: T,3,f32 -> the moving average of 2*x along T, as a file with an operator of the example's domain."""
    nodes = [
        helper.make_node("Add", ["x", "x"], ["twice"]),
        helper.make_node("Smooth", ["twice"], ["y"], domain="com.example", decay=DECAY, axis=0),
    ]
    value = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["T", 3]) for name in ("x", "y")]
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
    path = folder / "smooth.onnx"
    onnx.save(helper.make_model(helper.make_graph(nodes, "smooth", value[:1], value[1:]), opset_imports=domains), path)
    return path
