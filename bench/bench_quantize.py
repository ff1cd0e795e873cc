"""Quantised networks, beside ONNX Runtime's own quantiser: ``python bench/bench_quantize.py [NAME ...] [--json]``

Small networks are trained on digits and tones (`networks/trained.py`; kept in ``--folder``), and the digits of the
examples. Each is quantised here and by `onnxruntime.quantization` on the same data, by each method of calibration,
with weights by channel; and here with weights alone. For each file: the accuracy on what was held out, the error of
the scores (the norm of the difference from the network in floats over its norm), in how many answers it agrees with
that, and milliseconds of a run of ``--batch`` examples on one thread, the least of several rounds in turn: in ONNX
Runtime, and on the runtime ``cpu``.

Needs what `make test-torch` and `make demo` install.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import tract_quantize
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from tract_quantize.samples import ListedSamples

import tract_core as tract

ROOT = Path(__file__).parents[1]
SAMPLES, OF_EACH = 16, 32
"""Turns of calibration, and examples in each."""
ROUNDS = 40
METHODS = {"minmax": "MinMax", "percentile": "Percentile", "entropy": "Entropy", "mse": None}
"""Of calibration, and what ONNX Runtime calls them."""


class Task:
    """A network in a file, what it is calibrated with, and what it is judged by."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.path, examples = _trained(name, folder)
        (shown, self.held) = examples
        self.turns = [shown[0][first * OF_EACH : (first + 1) * OF_EACH] for first in range(SAMPLES)]
        self.input = ort.InferenceSession(str(self.path)).get_inputs()[0].name
        self.wanted = _session(self.path).run(None, {self.input: self.held[0]})[0]


def _trained(name: str, folder: Path) -> tuple[Path, Any]:
    if name == "digits":
        sys.path.insert(0, str(ROOT / "examples" / "digits"))
        return ROOT / "examples" / "digits" / "digits.onnx", import_module("data").digits()
    from networks import trained

    (network,) = (one for one in trained.NETWORKS if one.name == name)
    path = folder / f"{name}.onnx"
    if not path.exists():
        trained.export(network, path)
    return path, network.examples().split()


class _Reader(CalibrationDataReader):  # pyright: ignore[reportUntypedBaseClass]: it has no types
    def __init__(self, task: Task) -> None:
        self._turns = iter([{task.input: turn} for turn in task.turns])

    def get_next(self) -> Any:
        return next(self._turns, None)


def files(task: Task, folder: Path) -> Iterator[tuple[str, Path]]:
    """Every way to quantise, and what came out."""
    model = tract.onnx().load(task.path).into_model()
    samples = ListedSamples([[turn] for turn in task.turns])
    ready = folder / f"{task.name}.ready.onnx"
    quant_pre_process(str(task.path), str(ready), skip_symbolic_shape=True)
    yield "float", task.path
    for method, theirs in METHODS.items():
        if theirs is not None:
            path = folder / f"{task.name}.{method}.theirs.onnx"
            begin = time.perf_counter()
            _theirs(task, ready, path, theirs)
            yield f"ONNX Runtime, {method} [{time.perf_counter() - begin:.1f} s]", path
        begin = time.perf_counter()
        path, copy = folder / f"{task.name}.{method}.onnx", model.clone()
        copy.transform(tract_quantize.QuantizeStatic(tract_quantize.calibrate(model, samples, method=method)))
        copy.save(path)
        yield f"here, {method} [{time.perf_counter() - begin:.1f} s]", path
    for bits in (8, 4):
        path, copy = folder / f"{task.name}.int{bits}.onnx", model.clone()
        copy.transform(tract_quantize.QuantizeWeights(bits))
        copy.save(path)
        yield f"here, weights int{bits}", path


def _theirs(task: Task, ready: Path, path: Path, method: str) -> None:
    with redirect_stdout(StringIO()):  # it prints what it does
        quantize_static(
            str(ready),
            str(path),
            _Reader(task),
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            calibrate_method=CalibrationMethod[method],
        )


def _session(path: Path) -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


Run = Callable[[np.ndarray[Any, Any]], Any]


def engines(task: Task, path: Path) -> dict[str, Run]:
    """A file, ready to run in both."""
    session = _session(path)
    runnable = tract.onnx().load(path).into_model().into_runnable("cpu", threads=1)
    return {
        "onnxruntime": lambda x: session.run(None, {task.input: x})[0],
        "cpu": lambda x: runnable.run([x])[0].to_numpy(),
    }


def judged(task: Task, several: Sequence[tuple[str, Path]], batch: int) -> Iterator[dict[str, Any]]:
    """The figures of the files of a network; all of them are timed in turn."""
    runs = {(label, name): run for label, path in several for name, run in engines(task, path).items()}
    times = _rounds(runs, np.ascontiguousarray(task.held[0][:batch]))
    for label, path in several:
        found: dict[str, Any] = {"network": task.name, "how": label, "bytes": path.stat().st_size}
        for name in ("onnxruntime", "cpu"):
            found[name] = _score(task, runs[label, name](task.held[0])) | {"ms": 1e3 * times[label, name]}
        yield found


def _score(task: Task, scores: np.ndarray[Any, Any]) -> dict[str, float]:
    answers = scores.argmax(1)
    return {
        "accuracy": float((answers == task.held[1]).mean()),
        "agreement": float((answers == task.wanted.argmax(1)).mean()),
        "error": float(np.linalg.norm(scores - task.wanted) / np.linalg.norm(task.wanted)),
    }


def _rounds(runs: Mapping[Any, Run], x: np.ndarray[Any, Any]) -> dict[Any, float]:
    """Seconds of a run, the least of several rounds in turn: others may use the machine meanwhile."""
    times: dict[Any, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run(x)
    for _ in range(ROUNDS):
        for name, run in runs.items():
            begin = time.perf_counter()
            run(x)
            times[name].append(time.perf_counter() - begin)
    return {name: min(several) for name, several in times.items()}


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    names = ["digits", "mlp", "cnn", "mobile", "encoder", "sound"]
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--folder", type=Path, default=ROOT / ".quantize", help="where networks are kept")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    arguments.folder.mkdir(exist_ok=True)
    for name in arguments.names or names:
        task = Task(name, arguments.folder)
        for found in judged(task, list(files(task, arguments.folder)), arguments.batch):
            print(json.dumps(found) if arguments.json else _line(found), flush=True)


def _line(found: dict[str, Any]) -> str:
    parts = [
        f"{name}: {one['accuracy']:7.2%} same {one['agreement']:7.2%} error {one['error']:.5f} {one['ms']:7.3f} ms"
        for name, one in ((name, found[name]) for name in ("onnxruntime", "cpu"))
    ]
    return f"{found['network']:8s} {found['how']:36s} {found['bytes'] / 1e3:8.1f} kB  {'  '.join(parts)}"


if __name__ == "__main__":
    main()
