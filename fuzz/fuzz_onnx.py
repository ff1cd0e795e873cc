"""Feed damaged ONNX files to the loader: whatever they hold, only typed errors or right results may come of it.

    python fuzz/fuzz_onnx.py [--seconds 60] [--seed 0] [--replay FILE ...]

Seeds are the models of the ``onnx`` package's backend tests. Each is changed at random (`grafts`, `mutations`), loaded,
typed, simplified and run with small inputs and with difficult ones, in a process of its own whose memory is limited. A
*finding* is an error that is not a `TractError`, one that only wraps a mistake of ours, a result that simplifying
changes, a process that dies, or one that takes too long. Its file is kept in ``fuzz/findings``, together with a text
that says what happened. The time begins when the seeds are made.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import random
import resource
import select
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

FINDINGS = HERE / "findings"
TOO_LONG = 10.0
"""Seconds that one file may take."""
MEMORY = 1 << 30
"""Bytes of address space that one file may take, beyond what the process has to begin with."""
LARGEST_SEED = 20_000
"""Bytes of a seed."""
MISTAKES = (AttributeError, TypeError, AssertionError, KeyError, NameError, RecursionError, NotImplementedError)
"""Errors that no input should lead to: they are findings even where they are wrapped in a typed one."""


class Finding(Exception):
    """Something that should not have happened."""


def seeds():
    """The contents of small models of all kinds, always in the same order."""
    import onnx
    from onnx.backend.test.loader import load_model_tests

    kinds = ("node", "simple", "pytorch-operator", "pytorch-converted")
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # the package computes what it expects of NaN and infinity, too
        tests = [test for kind in kinds for test in load_model_tests(kind=kind)]
    models = [test.model or onnx.load(Path(test.model_dir) / "model.onnx") for test in tests]
    contents = {model.SerializeToString(deterministic=True) for model in models}
    return sorted(content for content in contents if len(content) <= LARGEST_SEED)


def parsed(contents):
    import onnx

    return [onnx.load_from_string(content) for content in contents]


def look_for_mistake(error):
    """Raise a finding where a typed error wraps what can only be a mistake of ours."""
    cause, seen = error, set()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        if isinstance(cause, MISTAKES) or "it cannot be wired: " in getattr(cause, "problem", ""):
            raise Finding(f"wrapped {place_of(cause)}") from error
        if isinstance(cause, BaseExceptionGroup):
            for part in cause.exceptions:
                look_for_mistake(part)
        cause = cause.__cause__


def place_of(error):
    """The kind of an error, and the last line of the project that it came through."""
    inner = error.__cause__ or error
    frames = traceback.extract_tb(inner.__traceback__)
    ours = [frame for frame in frames if "tract_" in frame.filename]
    last = ours[-1] if ours else frames[-1] if frames else None
    return f"{type(inner).__name__} at {Path(last.filename).name}:{last.lineno}" if last else type(inner).__name__


def arrays_for(plan, chance, draw):
    """Small inputs whose elements are drawn, or ``None`` where a model wants large ones, or none that we can make."""
    import numpy as np

    from tract_core.data import Container
    from tract_core.dims import evaluate, symbols_of

    arrays = []
    names = {name for fact in plan.input_facts for dim in fact.shape for name in symbols_of(dim)}
    values = {name: chance.choice((2, 2, 2, 1, 3, 0)) for name in sorted(names)}
    for fact in plan.input_facts:
        shape = [evaluate(dim, values) for dim in fact.shape]
        count = np.prod([max(size, 1) for size in shape], dtype=object)
        if isinstance(fact.datum_type, Container) or min(shape, default=0) < 0 or count > 1e5:
            return None
        arrays.append(draw(fact.datum_type.numpy, tuple(shape), chance))
    return arrays


def small(kind, shape, chance):
    import numpy as np

    draw = np.random.default_rng(chance.randrange(1 << 30))
    numbers = np.asarray(draw.integers(-3, 10, shape))
    return numbers.astype(str).astype(object) if kind.kind == "O" else numbers.astype(kind)


def difficult(kind, shape, chance):
    """Elements that programs stumble over, some of them alone among small ones."""
    import numpy as np
    from mutations import FLOATS, INTEGERS, TEXTS

    array = small(kind, shape, chance)
    if not array.size:
        return array
    flat = array.reshape(-1)
    choices = TEXTS if kind.kind == "O" else INTEGERS if kind.kind in "iub" else FLOATS
    for place in chance.sample(range(flat.size), chance.choice((1, flat.size)) if flat.size < 1000 else 1):
        element = chance.choice(choices)
        flat[place] = element if kind.kind == "O" else np.asarray(element).astype(kind)
    return array


def examine(content, chance):
    """What became of a file: ``"ran"``, ``"refused"``, or ``"failed"`` in the run. Raises whatever is a finding."""
    from tract_onnx.frontend import Onnx

    from tract_core.errors import TractError
    from tract_core.limits import LoadLimits
    from tract_core.runtime.plan import TypedSimplePlan

    limits = LoadLimits(
        max_nodes=50_000,
        deadline_s=6,
        run_deadline_s=1,
        max_fold_bytes=64 << 20,
        max_tensor_bytes=128 << 20,
        max_fold_ops=1 << 24,
    )
    try:
        model = Onnx(limits=limits).load_bytes(content)
        model.analyse()
        typed = model.into_typed()
        plans = [TypedSimplePlan(typed.clone()), TypedSimplePlan(typed.declutter())]
        arrays = arrays_for(plans[0], chance, small)
        odd = arrays_for(plans[0], chance, difficult)
    except TractError as error:
        look_for_mistake(error)
        if not (error.where and error.hint):
            missing = "hint" if error.where else "where"
            raise Finding(f"no {missing}: {place_of(error)}: {str(error)[:100]}".partition("\n")[0]) from error
        return "refused"
    if arrays is None:
        return "not run"
    for plan in plans:
        run(plan, odd)
    results = [run(plan, arrays) for plan in plans]
    if None in results:
        return "failed"
    if all(node.op.pure for node in typed.live_nodes()):
        compare(*results)
    return "ran"


def run(plan, arrays):
    from tract_core.errors import TractError

    try:
        return plan.run(arrays)
    except TractError as error:
        look_for_mistake(error)
        return None


def compare(found, wanted):
    import numpy as np

    for one, other in zip(found, wanted, strict=True):
        if one.shape != other.shape or one.dtype != other.dtype:
            raise Finding(f"simplifying changes {one.dtype}{one.shape} to {other.dtype}{other.shape}")
        if one.dtype.kind not in "fiub" or not one.size:
            continue
        a, b = one.astype(np.float64), other.astype(np.float64)
        scale = np.abs(a[np.isfinite(a)]).max(initial=1e-3)
        finite = np.isfinite(a) & np.isfinite(b)
        if scale < 1e6 and not np.allclose(a[finite], b[finite], rtol=2e-2, atol=2e-2 * scale):
            raise Finding("simplifying changes the result")


def content_of(models, seed, number):
    from mutations import mutated

    chance = random.Random(f"{seed}/{number}")
    return mutated(models, chance), chance


def work(seed, first, path):
    """Examine one file after the other, from a number on, and say so on the standard output. ``path``: the seeds."""
    import numpy as np

    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    models = parsed(read_all(path))
    examine(models[0].SerializeToString(), random.Random(0))  # imports everything
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    if pages:
        limit = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    say({"ready": True})
    number = first
    while True:
        content, chance = content_of(models, seed, number)
        say({"number": number})
        try:
            say({"result": examine(content, chance)})
        except Exception as error:
            key = str(error) if isinstance(error, Finding) else place_of(error)
            say({"finding": key[:300], "text": traceback.format_exc()[-6000:]})
        number += 1


def read_all(path):
    """The contents of the seeds, as one JSON list of texts in hexadecimal digits."""
    return [bytes.fromhex(text) for text in json.loads(Path(path).read_text())]


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


class Worker:
    """A process that works, and the number of the file that it is at."""

    def __init__(self, seed, first, path):
        command = [sys.executable, __file__, "--work", str(seed), str(first), str(path)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.number = first
        self.patience = 120.0  # for the imports

    def next(self):
        """The next message; ``None`` when it took too long, ``{}`` when the process died."""
        ready, _, _ = select.select([self.process.stdout], [], [], self.patience)
        if not ready:
            return None
        line = self.process.stdout.readline()
        message = json.loads(line) if line else {}
        self.patience = 2 * TOO_LONG if message.get("ready") else TOO_LONG
        self.number = message.get("number", self.number)
        return message

    def stop(self):
        self.process.kill()
        return self.process.wait()


def fuzz(seed, seconds):
    """Returns the number of different findings."""
    contents = seeds()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seeds.json"
        path.write_text(json.dumps([content.hex() for content in contents]))
        counts, found = _fuzz(seed, seconds, path, parsed(contents))
    total = sum(counts.values())
    listed = ", ".join(f"{count} {result}" for result, count in sorted(counts.items()))
    sys.stdout.write(f"{total} files in {seconds:g} s: {listed}; {len(found)} different findings\n")
    return len(found)


def _fuzz(seed, seconds, path, models):
    counts, found = Counter(), set()
    worker = Worker(seed, 0, path)
    worker.next()  # it is ready
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        message = worker.next()
        key, text = None, ""
        if message:
            counts.update(message["result"] for _ in range("result" in message))
            key, text = message.get("finding"), message.get("text", "")
        else:
            key = "takes too long" if message is None else f"died with status {worker.stop()}"
            key = f"{key} ({worker.number})"
            worker.stop()
        if key is not None:
            counts["found"] += 1
        if key is not None and key not in found:
            found.add(key)
            keep(key, text, models, (seed, worker.number))
        if not message:
            worker = Worker(seed, worker.number + 1, path)
    worker.stop()
    return counts, found


def keep(key, text, models, place):
    """Write down a finding. ``place``: the seed and the number of its file."""
    FINDINGS.mkdir(exist_ok=True)
    content, _ = content_of(models, *place)
    path = FINDINGS / "{}-{}.onnx".format(*place)
    path.write_bytes(content)
    path.with_suffix(".txt").write_text(f"{key}\n\n{text}")
    sys.stdout.write(f"finding: {key}\n  {path}\n")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replay", nargs="+", type=Path, default=[], metavar="FILE")
    parser.add_argument("--work", nargs=3, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        seed, first, path = options.work
        work(int(seed), int(first), path)
    for path in options.replay:
        sys.stdout.write(f"{path}: {examine(path.read_bytes(), random.Random(0))}\n")
    if options.replay:
        return 0
    return 1 if fuzz(options.seed, options.seconds) else 0


if __name__ == "__main__":
    sys.exit(main())
