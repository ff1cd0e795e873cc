"""Write the networks of the bench, and objects of them for 64-bit ARM: ``write_networks.py FOLDER``.

They are for `test_networks.py`, which runs where they cannot be built: some are quantised with ONNX Runtime, which QEMU
does not run.
"""

from __future__ import annotations

import pickle
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "plugins/tract_cpu/tests"))

from bench_networks import WORKLOADS, small_network
from tract_cpu.ahead.object_file import compile_model
from tract_cpu.ahead.targets import TARGETS, target_named

WRITTEN_FOR = [name for name in TARGETS if name.startswith("aarch64") and not name.endswith(("-windows", "-macos"))]


def write(folder: Path) -> None:
    """Of each network the file, what goes in and must come out, and its objects, all of it in one file."""
    for workload in WORKLOADS:
        model, data = workload.files(folder / "files", small=True)
        typed, _ = small_network(workload)
        objects = {name: compile_model(typed, target_named(name), "model") for name in WRITTEN_FOR}
        found: dict[str, Any] = {"model": model.read_bytes(), "data": data.read_bytes(), "objects": objects}
        found |= {"precision": workload.precision, "allowed": workload.allowed(ours=True)}
        (folder / f"{workload.name}.pickle").write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
