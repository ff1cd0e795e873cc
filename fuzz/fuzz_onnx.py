"""Feed damaged ONNX files to the loader: whatever they hold, only typed errors or right results may come of it.

    python fuzz/fuzz_onnx.py [--seconds 60] [--seed 0] [--replay FILE ...]

Seeds are the models of the ``onnx`` package's backend tests. Each is changed at random (`grafts`, `mutations`), loaded,
typed, simplified and run with small inputs and with difficult ones, in a process of its own whose memory is limited. A
*finding* is what `driver` says, and a result that simplifying changes.
"""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from driver import Finding, Target, look_for_mistake, main, place_of

LARGEST_SEED = 20_000
"""Bytes of a seed."""


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
    """What became of a file, as `examined` says it."""
    from tract_onnx.frontend import OnnxLoader

    return examined(OnnxLoader, content, chance)


def examined(loader, content, chance):
    """What became of a file: ``"ran"``, ``"refused"``, or ``"failed"`` in the run. Raises whatever is a finding."""
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
        model = loader(limits=limits).load_bytes(content)
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


def mutated_model(models, chance):
    from mutations import mutated

    return mutated(models, chance)


TARGET = Target(__file__, ".onnx", seeds, mutated_model, examine, parsed)

if __name__ == "__main__":
    sys.exit(main(TARGET, __doc__))
