"""Modules of WebAssembly beside onnxruntime-web, in node: ``python bench/bench_web.py [--only WORD ...] [--shipped]``

One process of node runs a model as we compile it for each ``--target`` and, on one thread, as onnxruntime-web does;
they take turns, a short round each, and so does an object of the same kernels for SSE2 in this process, which is as
fast as vectors of that width get here. Printed are the medians in milliseconds of a processor, as the machine may have
more to do, of the ratios within rounds, and the largest differences of results, relative to the largest number of an
output: of networks, from what they are in float64 (of those with few bits, from ONNX Runtime); of shipped files, from
ONNX Runtime.

onnxruntime-web is installed by npm where it is not yet, in ``bench/.models/web``, or another folder.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from math import inf
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "tests" / "shipped"), str(HERE.parent / "plugins" / "tract_onnx" / "tests")]

from tract_cpu.ahead.glue import function_names  # noqa: E402 - all are found by the path above
from tract_cpu.ahead.object_file import CompiledModel, compile_model  # noqa: E402
from tract_cpu.ahead.script import script_text  # noqa: E402
from tract_cpu.ahead.targets import target_named  # noqa: E402
from tract_cpu.ahead.wasm import module_of  # noqa: E402

import tract_core as tract  # noqa: E402

VERSION = "1.30.0"
THEIRS, FLOOR, PLAIN = "onnxruntime-web", "x86-64", "wasm32"
RELAXED_FLAG = "--experimental-wasm-relaxed-simd"

Arrays = dict[str, np.ndarray]


class Job(NamedTuple):
    """A model to run. ``wanted``: its outputs by name; ``allowed``: how far ours may be from these, and theirs."""

    name: str
    model: Path
    given: Arrays
    wanted: Arrays
    allowed: tuple[float, float]


class Native:
    """An object for this processor, as a shared library that a compiler links. ``first``: what its first run gave."""

    def __init__(self, found: CompiledModel, given: Arrays, folder: Path) -> None:
        (folder / "native.o").write_bytes(found.code)
        subprocess.run(["cc", "-shared", "-o", "native.so", "native.o"], cwd=folder, check=True)
        library = ctypes.CDLL(str(folder / "native.so"))
        names = function_names(found.name)
        self._memory = np.empty(found.memory + 64, np.uint8)
        place = ctypes.c_void_p(self._memory.ctypes.data + -self._memory.ctypes.data % 64)
        outputs = {name: _empty(fact) for name, fact in found.arrays[found.inputs :]}
        given = {name: np.ascontiguousarray(given[name]) for name, _ in found.arrays[: found.inputs]}
        self._held = [*given.values(), *outputs.values()]
        arrays = [ctypes.c_void_p(one.ctypes.data) for one in self._held]
        library[names["start"]](place)
        self.run: Callable[[], int] = lambda: library[names["run"]](place, *arrays)
        assert self.run() == 0
        self.first = {name: array.copy() for name, array in outputs.items()}

    def mean(self, seconds: float) -> float:
        """Of the milliseconds of a processor that runs take."""
        begin, count = process_time(), 0
        while (passed := process_time() - begin) < seconds or not count:
            self.run()
            count += 1
        return 1e3 * passed / count


def _empty(fact: Any) -> np.ndarray:
    return np.empty([int(size) for size in fact.shape], fact.datum_type.storage.numpy)


class Node:
    """What runs models in node. ``start``: how each began."""

    def __init__(self, folder: Path, node: str, flags: list[str]) -> None:
        command = [node, *flags, HERE / "bench_web.mjs", folder]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.start: dict[str, dict[str, Any]] = self._answer()

    def mean(self, name: str, seconds: float) -> float:
        """Of the milliseconds of a processor that runs of an engine take."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([name, seconds]) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"node ended with {self._process.wait()}")
        return json.loads(line)


def compiled(job: Job, target: str) -> CompiledModel:
    """The model for the sizes of what it is given."""
    inference: Any = tract.onnx().load(job.model)
    for slot in range(inference.input_count()):
        array = job.given[inference.input_name(slot)]
        inference.set_input_fact(slot, ",".join([*map(str, array.shape), _datum_type(array)]))
    return compile_model(inference.into_model().typed, target_named(target), "model")


def _datum_type(array: np.ndarray) -> str:
    return "bool" if array.dtype == bool else f"{array.dtype.kind}{8 * array.dtype.itemsize}"


def measured(job: Job, options: argparse.Namespace) -> dict[str, Any]:
    """Medians by engine, and how far its results are, or why there are none."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        floor = Native(compiled(job, FLOOR), job.given, folder)
        for target in options.target:
            found = compiled(job, target)
            code = module_of(found.code, [*function_names(found.name).values()])
            (folder / f"{target}.wasm").write_bytes(code)
            (folder / f"{target}.mjs").write_text(script_text(found, f"{target}.wasm"), encoding="utf-8")
        _write_plan(job, folder, options)
        node = Node(folder, options.node, options.flags)
        try:
            return _rounds(node, floor, options) | {
                "differ": {FLOOR: _difference(job.wanted, floor.first)}
                | {one: _difference(job.wanted, _outputs_of(floor.first, folder, one)) for one in node.start},
                "failed": {one: said["failed"] for one, said in node.start.items() if "failed" in said},
            }
        finally:
            node.end()


def _write_plan(job: Job, folder: Path, options: argparse.Namespace) -> None:
    inputs = list[dict[str, Any]]()
    for number, (name, array) in enumerate(job.given.items()):
        (folder / f"{number}.in").write_bytes(np.ascontiguousarray(array).tobytes())
        inputs.append({"name": name, "type": array.dtype.name, "shape": array.shape, "file": f"{number}.in"})
    engines = {target: f"{target}.mjs" for target in options.target}
    engines |= {} if options.alone else {THEIRS: str(job.model)}
    plan = {"engines": engines, "inputs": inputs, "onnxruntime": str(options.onnxruntime)}
    (folder / "engines.json").write_text(json.dumps(plan))


def _rounds(node: Node, floor: Native, options: argparse.Namespace) -> dict[str, Any]:
    running = [one for one, said in node.start.items() if "failed" not in said]
    times: dict[str, list[float]] = {one: [] for one in (*running, FLOOR)}
    for name in running:  # until what runs often is compiled again, better
        node.mean(name, options.warm)
    for number in range(options.rounds):
        for name in [*times] if number % 2 else [*times][::-1]:
            times[name].append((floor if name == FLOOR else _Asked(node, name)).mean(options.seconds))
    return {"times": times}


class _Asked(NamedTuple):
    node: Node
    name: str

    def mean(self, seconds: float) -> float:
        return self.node.mean(self.name, seconds)


def _outputs_of(shaped: Arrays, folder: Path, engine: str) -> Arrays:
    """What an engine in node has written."""
    files = {name: folder / f"{engine}.{name.replace('/', '_')}.out" for name in shaped}
    return {name: np.frombuffer(file.read_bytes(), shaped[name].dtype) for name, file in files.items() if file.exists()}


def _difference(wanted: Arrays, found: Arrays) -> float:
    """The largest one of all outputs; infinite where one is not there, or is no number where it should be one."""
    largest = 0.0
    for name, array in wanted.items():
        if name not in found:
            return inf
        one, other = (np.asarray(each, np.float64).reshape(-1) for each in (found[name], array))
        if one.shape != other.shape or not np.array_equal(np.isfinite(one), np.isfinite(other)):
            return inf
        finite = np.isfinite(other)
        scale = np.abs(other[finite]).max(initial=0.0) or 1.0
        largest = max(largest, float(np.abs(one - other)[finite].max(initial=0.0) / scale))
    return largest


def networks(options: argparse.Namespace) -> Iterator[Job]:
    """Those of `workloads.py` in f32, or quantised."""
    from peers import MODELS, chosen

    for workload in chosen(options.only):
        if workload.precision != "f32":
            continue
        model, data = workload.files(MODELS, small=options.short)
        with np.load(data) as held:
            arrays = {name: held[name] for name in held.files}
        given, wanted = (
            {name.removeprefix(word): array for name, array in arrays.items() if name.startswith(word)}
            for word in ("input ", "output ")
        )
        yield Job(workload.name, model, given, wanted, (workload.allowed(ours=True), workload.allowed(ours=False)))


def shipped(options: argparse.Namespace) -> Iterator[Job]:
    """Files that packages ship, each with the first inputs of the tests."""
    import fetch
    from shipped_inputs import session, two_cases

    for path in fetch.models():
        name = fetch.short_name(path)
        if options.only and not any(word.lower() in name.lower() for word in options.only):
            continue
        try:
            case = two_cases(path, fetch.known(path))[0]
        except AssertionError as error:
            print(f"{name:<38} {error}", flush=True)
            continue
        outputs = [one.name for one in session(str(path)).get_outputs()]
        yield Job(name, path, case.given, dict(zip(outputs, case.wanted, strict=True)), (1e-3, inf))


def line(job: Job, found: dict[str, Any], options: argparse.Namespace) -> tuple[str, dict[str, float]]:
    """What is printed, and the ratios by what they are of."""
    times, differ = found["times"], found["differ"]
    ratios = {
        f"{one}/{other}": statistics.median(a / b for a, b in zip(times[one], times[other], strict=True))
        for one in (*options.target, THEIRS)
        for other in (THEIRS, FLOOR, PLAIN)
        if one != other and one in times and other in times and (other != PLAIN or one not in {PLAIN, THEIRS})
    }
    texts = [f"{one} {statistics.median(many):.3f}" for one, many in times.items()]
    texts += [f"{what} {ratio:.2f}" for what, ratio in ratios.items()]
    texts += [f"{one} off by {differ[one]:.0e}" for one in differ if one not in found["failed"]]
    texts += [f"{one}: {why}" for one, why in found["failed"].items()]
    return f"{job.name:<28} " + "  ".join(texts), ratios


def _allowed(job: Job, found: dict[str, Any], engine: str) -> float:
    """How far its results may be; those of modules, twice as far as of the object, as some files amplify rounding."""
    ours, theirs = job.allowed
    return theirs if engine in {THEIRS, FLOOR} else max(ours, 2 * found["differ"][FLOOR])


def installed(folder: Path) -> Path:
    """The folder with onnxruntime-web, which npm is asked for where it is not there."""
    if not (folder / "node_modules" / THEIRS).exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}')
        subprocess.run(["npm", "install", "--silent", f"{THEIRS}@{VERSION}"], cwd=folder, check=True)
    return folder


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare modules of WebAssembly with onnxruntime-web.")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="models with a word in their name")
    parser.add_argument("--shipped", action="store_true", help="files that packages ship, fetched by tests/shipped")
    parser.add_argument("--target", nargs="+", default=[PLAIN], metavar="NAME")
    parser.add_argument("--alone", action="store_true", help="without onnxruntime-web")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.3, help="how long a round of one engine takes")
    parser.add_argument("--warm", type=float, default=1.0, help="how long each runs before that")
    parser.add_argument("--short", action="store_true", help="small sizes")
    parser.add_argument("--node", default="node", metavar="FILE", help="which one runs modules")
    parser.add_argument("--onnxruntime", type=Path, default=HERE / ".models" / "web", metavar="FOLDER")
    options = parser.parse_args()
    options.onnxruntime = installed(options.onnxruntime.resolve())
    said = subprocess.run([options.node, "--v8-options"], capture_output=True, text=True, check=True).stdout
    options.flags = [RELAXED_FLAG] if RELAXED_FLAG in said else []
    return options


def main() -> None:
    options = arguments()
    warnings.simplefilter("ignore")  # files are run as they are
    wrong, every = list[str](), dict[str, list[float]]()
    for job in (shipped if options.shipped else networks)(options):
        try:
            found = measured(job, options)
        except tract.TractError as error:
            print(f"{job.name:<28} {str(error).splitlines()[0]}", flush=True)
            continue
        text, ratios = line(job, found, options)
        print(text, flush=True)
        for what, ratio in ratios.items():
            every.setdefault(what, []).append(ratio)
        wrong += [f"{job.name}: {one}" for one, far in found["differ"].items() if not far <= _allowed(job, found, one)]
    for what, many in every.items():
        mean, most = statistics.geometric_mean(many), max(many)
        print(f"{what}: geometric mean of {len(many)}: {mean:.3f}, the most {most:.2f}, the least {min(many):.2f}")
    if wrong:
        raise SystemExit(f"too far off: {'; '.join(wrong)}")


if __name__ == "__main__":
    main()
