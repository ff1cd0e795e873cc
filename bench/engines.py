"""One inference engine in a process of its own, which answers questions: ``bench/peers.py`` starts and asks it.

    python bench/engines.py ENGINE MODEL.onnx DATA.npz THREADS CACHE PRECISION

The first answer, without being asked, says what loading cost and how far the results are from those in ``DATA``. Then
come questions, a line each, in JSON: ``["time", seconds]``, the median time of the runs that fit into so many seconds;
``["memory"]``, how many megabytes were needed at most so far; and of our own engine, ``["ceilings"]``, what the machine
can do at this moment, in operations and bytes a second, ``["bounds"]``, see `bounds.py`, and ``["hosted"]``, the
operators that have no native code. Answers are lines of JSON.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import astuple
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from bounds import bounds_of

Arrays = dict[str, np.ndarray]
Run = Callable[[], list[np.ndarray]]


class Loaded(NamedTuple):
    """What runs a model, and of our own engine what answers further questions."""

    run: Run
    more: Mapping[str, Callable[[], Any]] = {}


class Wish(NamedTuple):
    """How a model shall run. ``cache``: a folder for what is kept between processes; ``precision``: of its floats."""

    threads: int
    cache: Path
    precision: str


Load = Callable[[Path, Arrays, list[str], Wish], Loaded]
"""From a model, its inputs, the names of its outputs, and a wish, to what runs it."""


def load_ours(model: Path, inputs: Arrays, outputs: list[str], wish: Wish) -> Loaded:
    os.environ["TRACT_CACHE"] = str(wish.cache)
    import tract_core as tract

    loaded = tract.onnx().load(model).into_model()
    if wish.precision != "f32":
        loaded.transform(tract.FloatPrecision("f32", wish.precision))
    runnable = tract.runtime_for_name("cpu", threads=wish.threads).prepare(loaded)
    given = [inputs[runnable.input_name(slot)] for slot in range(runnable.input_count())]

    def hosted() -> list[str]:
        """The operators that have no native code. Of a plan that was kept, this compiles the model again."""
        placements = runnable.explain().placements
        return sorted({name for one in placements if one.how in ("numpy", "state") for name in one.ops})

    more = {
        "hosted": hosted,
        "ceilings": lambda: astuple(runnable.plan.ceilings()),
        "bounds": lambda: bounds_of(runnable, given),
    }
    # As the other engines are asked for results that they need not copy once more.
    return Loaded(lambda: [tensor.view() for tensor in runnable.run(given)], more)


def load_onnxruntime(model: Path, inputs: Arrays, outputs: list[str], wish: Wish) -> Loaded:
    _only_f32(wish)
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = wish.threads
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    return Loaded(lambda: session.run(None, inputs))


def _only_f32(wish: Wish) -> None:
    if wish.precision != "f32":
        raise NotImplementedError(f"it is compared in f32 only, and not in {wish.precision}")


def load_openvino(model: Path, inputs: Arrays, outputs: list[str], wish: Wish) -> Loaded:
    import openvino

    options = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": wish.precision,
        "INFERENCE_NUM_THREADS": wish.threads,
        "CACHE_DIR": str(wish.cache),
    }
    request = openvino.Core().compile_model(model, "CPU", options).create_infer_request()

    def run() -> list[np.ndarray]:
        found = request.infer(inputs, share_inputs=True, share_outputs=True)
        return [found[slot] for slot in range(len(outputs))]

    return Loaded(run)


def load_tract(model: Path, inputs: Arrays, outputs: list[str], wish: Wish) -> Loaded:
    _only_f32(wish)
    if wish.threads > 1:
        raise NotImplementedError("its Python package runs on one thread")
    import tract

    loaded = tract.onnx().load(str(model)).into_model()
    given = [inputs[loaded.input_name(slot)] for slot in range(loaded.input_count())]
    runnable = loaded.into_runnable()
    return Loaded(lambda: [tensor.to_numpy() for tensor in runnable.run(given)])


def load_mnn(model: Path, inputs: Arrays, outputs: list[str], wish: Wish) -> Loaded:
    """Converts the model first where the cache does not have it.

    What does the work is called directly: the command `mnnconvert` reports its use over the network.
    """
    _only_f32(wish)
    converted = wish.cache / f"{model.stem}.mnn"
    if not converted.exists():
        import _tools

        _tools.mnnconvert(
            ["mnnconvert", "-f", "ONNX", "--modelFile", str(model), "--MNNModel", str(converted), "--bizCode", "bench"]
        )
    import MNN.expr
    import MNN.nn

    manager = MNN.nn.create_runtime_manager(({"precision": "high", "backend": 0, "numThread": wish.threads},))
    module = MNN.nn.load_module_from_file(str(converted), list(inputs), outputs, runtime_manager=manager)
    given = []
    for array in inputs.values():
        narrow = array.astype(np.int32) if array.dtype == np.int64 else array
        kind = MNN.expr.int if narrow.dtype == np.int32 else MNN.expr.float
        given.append((MNN.expr.placeholder(list(array.shape), MNN.expr.NCHW, kind), narrow))

    def run() -> list[np.ndarray]:
        for variable, array in given:
            variable.write(array)
        return [result.read() for result in module.onForward([variable for variable, _ in given])]

    return Loaded(run)


ENGINES: dict[str, tuple[str, Load]] = {
    "ours": ("tract-core", load_ours),
    "onnxruntime": ("onnxruntime", load_onnxruntime),
    "openvino": ("openvino", load_openvino),
    "tract": ("tract", load_tract),
    "mnn": ("MNN", load_mnn),
}
"""By name, the distribution, and what loads a model."""


def worst_error(found: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """The largest difference, relative to the largest number of the output where it is.

    Axes of size 1 may be more or less: MNN gives the results of 1-D convolutions a fourth axis.
    """
    found, wanted = [array.squeeze() for array in found], [array.squeeze() for array in wanted]
    if [array.shape for array in found] != [array.shape for array in wanted]:
        shapes = [[array.shape for array in arrays] for arrays in (found, wanted)]
        raise ValueError(f"the outputs have the shapes {shapes[0]}, wanted {shapes[1]}")
    found = [array.astype(np.float64) for array in found]
    if not all(np.isfinite(array).all() for array in found):
        return float("inf")
    pairs = zip(found, wanted, strict=True)
    return max(float(np.abs(one - other).max() / max(np.abs(other).max(), 1e-30)) for one, other in pairs)


def measure(run: Run, seconds: float, least: int = 3) -> float:
    """The median time of one run, of as many as fit into ``seconds``, or ``least``; one before does not count."""
    run()
    times: list[float] = []
    end = perf_counter() + seconds
    while len(times) < least or perf_counter() < end:
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return statistics.median(times)


def peak_megabytes() -> float:
    """The most memory that this process has held at once."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def begin(arguments: list[str]) -> tuple[dict[str, Any], Loaded]:
    """Load a model. Returns what to answer, and what runs it."""
    engine, model, data, threads, cache, precision = arguments
    with np.load(data) as arrays:
        parts = {name: arrays[name] for name in arrays.files}
    inputs = {name.removeprefix("input "): array for name, array in parts.items() if name.startswith("input ")}
    wanted = {name.removeprefix("output "): array for name, array in parts.items() if name.startswith("output ")}
    distribution, load = ENGINES[engine]
    start = perf_counter()
    loaded = load(Path(model), inputs, list(wanted), Wish(int(threads), Path(cache), precision))
    loading = perf_counter() - start
    start = perf_counter()
    found = [np.array(array) for array in loaded.run()]
    answer = {
        "version": version(distribution),
        "load": loading,
        "first run": perf_counter() - start,
        "error": worst_error(found, list(wanted.values())),
    }
    return answer, loaded


def main() -> None:
    channel = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what engines print must not come between the answers
    try:
        answer, loaded = begin(sys.argv[1:])
    except Exception as error:  # whatever kind of error an engine raises is why it has no figures
        json.dump({"failed": f"{type(error).__name__}: {error}"}, channel)
        channel.write("\n")
        return
    print(json.dumps(answer), file=channel, flush=True)
    answers = {"time": partial(measure, loaded.run), "memory": peak_megabytes, **loaded.more}
    for line in sys.stdin:
        name, *details = json.loads(line)
        print(json.dumps(answers[name](*details)), file=channel, flush=True)


if __name__ == "__main__":
    main()
