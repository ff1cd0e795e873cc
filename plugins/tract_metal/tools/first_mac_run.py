"""What nobody could try without a Mac: conformance, results and speed on a GPU of Apple, as a report for an issue.

``python plugins/tract_metal/tools/first_mac_run.py [--out report.md]``, from a checkout, after ``make setup`` and
``pip install -r requirements/test.txt``. Beside the runtime ``metal``: Core ML through ONNX Runtime, where that has it,
and PyTorch's ``mps``, where PyTorch is installed. A part that fails is in the report, and the others go on.

``--device cpu --small`` tries the script itself, on MLX's CPU build and with small networks: no figure counts then.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import mlx.core as mx
import numpy as np

import tract_core as tract

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "bench"))

from workloads import WORKLOADS, Workload  # noqa: E402 (the bench is no package)

ROUNDS = 20
NETWORKS = ("ResNet-50", "MobileNetV2", "BERT-base", "ViT", "LSTM", "Llama step")


def machine(given: argparse.Namespace) -> Iterator[str]:
    """What this was run on."""
    yield f"- {platform.platform()}, {platform.machine()}, Python {platform.python_version()}, MLX {mx.__version__}"
    if given.device == "gpu":
        yield f"- {json.dumps(mx.metal.device_info())}"
    yield f"- {given.device}" + (", small networks: **no figure counts**" if given.small else "")


def conformance(given: argparse.Namespace) -> Iterator[str]:
    """The conformance kit."""
    runtime = f'metal(device="{given.device}")'
    command = [sys.executable, "-m", "pytest", "-q", "--pyargs", "tract_core.testing", "--tract-runtime", runtime]
    selected = ["-k", "Softmax and fixed"] if given.small else []
    done = subprocess.run([*command, *selected], cwd=ROOT, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    yield f"    {lines[-1] if lines else done.stderr[-500:]}"
    yield from (f"    {line}" for line in lines if line.startswith("FAILED"))


def networks(given: argparse.Namespace) -> Iterator[str]:
    """Networks of the bench: how far results are from those in f64, and milliseconds of a turn beside others."""
    yield "| network | difference | metal | Core ML | PyTorch mps |"
    yield "|---|---|---|---|---|"
    for workload in (one for one in WORKLOADS if one.name in NETWORKS):
        try:
            yield _network(workload, given)
        except Exception as error:  # whatever goes wrong belongs into the report
            yield f"| {workload.name} | {type(error).__name__}: {str(error)[:200]} | | | |"


def _network(workload: Workload, given: argparse.Namespace) -> str:
    file, data = workload.files(ROOT / "bench" / ".models", small=given.small)
    with np.load(data) as stored:
        inputs = [stored[name] for name in stored.files if name.startswith("input ")]
        wanted = [stored[name] for name in stored.files if name.startswith("output ")]
    runtime = tract.runtime_for_name("metal", device=given.device)
    state = runtime.prepare(tract.onnx().load(file).into_model()).spawn_state()
    found = [np.asarray(one) for one in state.run(inputs)]
    error = max(np.abs(a - b).max() / max(np.abs(b).max(), 1e-6) for a, b in zip(found, wanted, strict=True))
    ours = f"{1e3 * _seconds(lambda: state.run(inputs)):.2f} ms"
    return f"| {workload.name} | {error:.1e} | {ours} | {_core_ml(file, inputs)} | {_mps(workload.name)} |"


def _core_ml(file: Path, inputs: list[np.ndarray]) -> str:
    import onnxruntime

    if "CoreMLExecutionProvider" not in onnxruntime.get_available_providers():
        return "not there"
    session = onnxruntime.InferenceSession(str(file), providers=["CoreMLExecutionProvider", "CPUExecutionProvider"])
    given = {one.name: array for one, array in zip(session.get_inputs(), inputs, strict=True)}
    return f"{1e3 * _seconds(lambda: session.run(None, given)):.2f} ms"


def _mps(name: str) -> str:
    """Networks of torchvision with the same layers, where PyTorch is there."""
    try:
        import torch
        import torchvision
    except ImportError:
        return "not there"
    builders = {"ResNet-50": torchvision.models.resnet50, "MobileNetV2": torchvision.models.mobilenet_v2}
    if name not in builders or not torch.backends.mps.is_available():
        return "not there"
    network, image = builders[name]().eval().to("mps"), torch.zeros(1, 3, 224, 224, device="mps")
    with torch.no_grad():
        return f"{1e3 * _seconds(lambda: network(image).cpu()):.2f} ms"


def by_hand(given: argparse.Namespace) -> Iterator[str]:
    """The same networks written by hand with `mlx.nn`."""
    small = ["--small", "--rounds", "3"] if given.small else []
    command = [sys.executable, "bench/bench_mlx.py", "--device", given.device, *small]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    yield from (f"    {line}" for line in (done.stdout or done.stderr).splitlines())


def _seconds(work: Callable[[], Any]) -> float:
    took = list[float]()
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        work()
        took.append(time.perf_counter() - begin)
    return median(took[ROUNDS // 4 :])


PARTS: dict[str, Callable[[argparse.Namespace], Iterator[str]]] = {
    "machine": machine,
    "conformance": conformance,
    "networks": networks,
    "by hand": by_hand,
}


def main() -> int:
    """Write the report. Returns 1 where a part failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("gpu", "cpu"), default="gpu")
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("first_mac_run.md"))
    given = parser.parse_args()
    if given.device == "gpu" and not mx.metal.is_available():
        parser.error("MLX finds no GPU of Apple here; --device cpu --small tries the script itself")
    lines, failed = ["# tract-metal on a GPU of Apple"], False
    for name, part in PARTS.items():
        print(f"{name} ...", file=sys.stderr, flush=True)
        lines += ["", f"## {name}", ""]
        try:
            lines += part(given)
        except Exception:  # whatever goes wrong belongs into the report
            lines += [f"    {line}" for line in traceback.format_exc().splitlines()]
            failed = True
        given.out.write_text("\n".join([*lines, ""]), encoding="utf-8")
    print(f"the report is in {os.fspath(given.out)}: attach it to an issue")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
