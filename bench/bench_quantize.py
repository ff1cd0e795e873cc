"""Quantised networks, beside ONNX Runtime's own quantiser: ``python bench/bench_quantize.py [NAME ...] [--json]``

Small networks are trained on digits and tones (`networks/trained.py`; kept in ``--folder``), and the digits of the
examples; those of `networks/shipped.py` are trained files of packages, which `make test-shipped` fetches. Each is
quantised here and by `onnxruntime.quantization` on the same data, by each method of calibration, with weights by
channel; and here with weights alone. Shipped ones are quantised by minmax alone.

For each file: the error of each output on what was held out (the norm of the difference from the network in floats over
its norm); where there are classes, the accuracy, and in how many answers it agrees with that network; and milliseconds
of a run on one thread of ``--batch`` examples, or of one turn of shipped ones, the median of several rounds in turn and
the least: in ONNX Runtime, and on the runtime ``cpu``.

Needs what `make test-torch` and `make demo` install, and scikit-image for shipped ones.
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
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import tract_quantize
from onnxruntime.quantization import CalibrationDataReader, CalibrationMethod, QuantType, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process
from tract_quantize.samples import ListedSamples

import tract_core as tract

ROOT = Path(__file__).parents[1]
SAMPLES, OF_EACH = 16, 32
"""Turns of calibration, and examples in each."""
SHOWN, HELD = 16, 14
"""The same of shipped ones, whose turns are one example each, and how many are held out."""
ROUNDS = 40
TRAINED = ("digits", "mlp", "cnn", "mobile", "encoder", "sound")
SHIPPED = ("320n", "common_det", "centerface", "embedding_model")
METHODS = {"minmax": "MinMax", "percentile": "Percentile", "entropy": "Entropy", "mse": None}
"""Of calibration, and what ONNX Runtime calls them."""


Array = np.ndarray[Any, Any]


class Task:
    """A network in a file, what it is calibrated with, and what it is judged by.

    ``turns``: what it is calibrated with; ``held``: what it is judged by, and ``labels`` of that where there are any;
    ``timed``: what it is timed with; ``methods``: of calibration. ``wanted``: what it makes of ``held`` in floats.
    """

    def __init__(self, name: str, path: Path, turns: Sequence[Array], held: Sequence[Array], batch: int | None) -> None:
        self.name, self.path, self.turns, self.held = name, path, turns, held
        self.timed = np.ascontiguousarray(held[0][:batch])
        self.labels: Array | None = None
        self.methods: Mapping[str, str | None] = METHODS
        session = _session(path)
        self.input = session.get_inputs()[0].name
        self.wanted = [session.run(None, {self.input: one}) for one in held]


def task_of(name: str, folder: Path, batch: int) -> Task:
    """One of the networks, by its name."""
    return _trained_task(name, folder, batch) if name in TRAINED else _shipped_task(name, folder)


def _trained_task(name: str, folder: Path, batch: int) -> Task:
    path, (shown, held) = _trained(name, folder)
    turns = [shown[0][first * OF_EACH : (first + 1) * OF_EACH] for first in range(SAMPLES)]
    task = Task(name, path, turns, [held[0]], batch)
    task.labels = held[1]
    return task


def _shipped_task(name: str, folder: Path) -> Task:
    shipped = import_module("networks.shipped")
    (network,) = (one for one in shipped.NETWORKS if one.name == name)
    turns, held = ([*islice(network.examples(first), count)] for first, count in enumerate((SHOWN, HELD)))
    path = folder / f"{name}.onnx"
    onnx.save(shipped.in_new_words(shipped.file_of(name), turns[0]), path)
    task = Task(name, path, turns, held, None)
    task.methods = {"minmax": METHODS["minmax"]}
    return task


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
    for method, theirs in task.methods.items():
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
    for bits in (8, 4) if task.methods is METHODS else ():
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


Run = Callable[[Array], Sequence[Array]]


def engines(task: Task, path: Path) -> dict[str, Run]:
    """A file, ready to run in both."""
    session = _session(path)
    runnable = tract.onnx().load(path).into_model().into_runnable("cpu", threads=1)
    return {
        "onnxruntime": lambda x: session.run(None, {task.input: x}),
        "cpu": lambda x: [one.to_numpy() for one in runnable.run([x])],
    }


def judged(task: Task, several: Sequence[tuple[str, Path]]) -> Iterator[dict[str, Any]]:
    """The figures of the files of a network; all of them are timed in turn."""
    runs = {(label, name): run for label, path in several for name, run in engines(task, path).items()}
    times = _rounds(runs, task.timed)
    for label, path in several:
        found: dict[str, Any] = {"network": task.name, "how": label, "bytes": path.stat().st_size}
        for name in ("onnxruntime", "cpu"):
            took = times[label, name]
            timed = {"ms": 1e3 * median(took), "least": 1e3 * min(took)}
            found[name] = _score(task, [runs[label, name](one) for one in task.held]) | timed
        yield found


def _score(task: Task, made: Sequence[Sequence[Array]]) -> dict[str, Any]:
    pairs = [list(zip(found, wanted, strict=True)) for found, wanted in zip(made, task.wanted, strict=True)]
    errors = [_error(list(output)) for output in zip(*pairs, strict=True)]
    if task.labels is None:
        return {"errors": errors}
    answers, wanted = (one[0][0].argmax(1) for one in (made, task.wanted))
    shares = {"accuracy": answers == task.labels, "agreement": answers == wanted}
    return {"errors": errors, **{name: float(share.mean()) for name, share in shares.items()}}


def _error(pairs: Sequence[tuple[Array, Array]]) -> float:
    """Of one output, over all that was held out."""
    lost, whole = (
        sum(float(np.square(one, dtype=np.float64).sum()) for one in several)
        for several in ([found - wanted for found, wanted in pairs], [wanted for _, wanted in pairs])
    )
    return float(np.sqrt(lost / whole))


def _rounds(runs: Mapping[Any, Run], x: Array) -> dict[Any, list[float]]:
    """Seconds of each run, of several rounds in turn: others may use the machine meanwhile."""
    times: dict[Any, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run(x)
    for _ in range(ROUNDS):
        for name, run in runs.items():
            begin = time.perf_counter()
            run(x)
            times[name].append(time.perf_counter() - begin)
    return times


def main() -> None:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join((*TRAINED, *SHIPPED)))
    parser.add_argument("--folder", type=Path, default=ROOT / ".quantize", help="where networks are kept")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    arguments.folder.mkdir(exist_ok=True)
    for name in arguments.names or TRAINED:
        task = task_of(name, arguments.folder, arguments.batch)
        for found in judged(task, list(files(task, arguments.folder))):
            print(json.dumps(found) if arguments.json else _line(found), flush=True)


def _line(found: dict[str, Any]) -> str:
    parts = [f"{name}: {_judgement(found[name])} {found[name]['ms']:7.3f} ms" for name in ("onnxruntime", "cpu")]
    return f"{found['network']:8s} {found['how']:36s} {found['bytes'] / 1e3:8.1f} kB  {'  '.join(parts)}"


def _judgement(score: dict[str, Any]) -> str:
    shares = f"{score['accuracy']:7.2%} same {score['agreement']:7.2%} " if "accuracy" in score else ""
    return f"{shares}error {' '.join(f'{one:.5f}' for one in score['errors'])}"


if __name__ == "__main__":
    main()
