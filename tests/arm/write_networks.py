"""Write the networks of the bench, and objects of them for 64-bit ARM: ``write_networks.py FOLDER [NAME ...]``.

They are for `test_networks.py`, which runs where they cannot be built: some are quantised with ONNX Runtime, which QEMU
does not run.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "plugins/tract_cpu/tests"))

from bench_networks import WORKLOADS, small_network
from tract_cpu.ahead.object_file import compile_model
from tract_cpu.ahead.targets import TARGETS, target_named

WRITTEN_FOR = [name for name in TARGETS if name.startswith("aarch64") and not name.endswith(("-windows", "-macos"))]


def write(folder: Path, names: Sequence[str]) -> None:
    """Of each network the file, what goes in and must come out, and its objects, all of it in one file.

    ``names``: of those that are wanted, none for all.
    """
    for workload in (one for one in WORKLOADS if not names or one.name in names):
        model, data = workload.files(folder / "files", small=True)
        typed, _ = small_network(workload)
        objects = {name: compile_model(typed, target_named(name), "model") for name in WRITTEN_FOR}
        found: dict[str, Any] = {"model": model.read_bytes(), "data": data.read_bytes(), "objects": objects}
        found |= {"precision": workload.precision, "allowed": workload.allowed(ours=True)}
        (folder / f"{workload.name}.pickle").write_bytes(pickle.dumps(found))


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2:])
