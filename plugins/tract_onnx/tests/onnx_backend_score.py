"""How many of the ``onnx`` package's own backend tests pass: run it as a script, for a table per operator.

    python plugins/tract_onnx/tests/onnx_backend_score.py [--kind node] [--show OP] [--no-declutter]

A test is *refused* when the model is turned down with a typed error, *failed* when the result is wrong or anything else
is raised.
"""

# ruff: noqa: T201 (a script prints)

from __future__ import annotations

import argparse
import warnings
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from tract_onnx.frontend import Onnx

from tract_core.data import Container
from tract_core.data.boxes import boxed, from_tensor
from tract_core.errors import TractError, Unsupported
from tract_core.runtime.plan import TypedSimplePlan

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")


READERS = {
    "tensor_type": (onnx.TensorProto, numpy_helper.to_array),
    "sequence_type": (onnx.SequenceProto, numpy_helper.to_list),
    "optional_type": (onnx.OptionalProto, numpy_helper.to_optional),
}


def value(path, info):
    """An array, a list of them, or an optional one, as the model says of that input or output."""
    kind, read = READERS[info.type.WhichOneof("value") or "tensor_type"]
    proto = kind()
    proto.ParseFromString(path.read_bytes())
    return read(proto)


def cases(kind):
    """Name, model, and data sets (input arrays, output arrays) of every test of a kind."""
    for test in load_model_tests(kind=kind):
        if test.model is not None:
            yield test.name, test.model, test.data_sets, test.rtol, test.atol
            continue
        folder = Path(test.model_dir)
        model, sets = onnx.load(folder / "model.onnx"), []
        for data in sorted(folder.glob("test_data_set_*")):
            sides = [(model.graph.input, data.glob("input_*.pb")), (model.graph.output, data.glob("output_*.pb"))]
            found = [sorted(files, key=lambda path: int(path.stem.split("_")[1])) for _, files in sides]
            infos = [side for side, _ in sides]
            sets.append(tuple(list(map(value, *side)) for side in zip(found, infos, strict=True)))
        yield test.name, model, sets, test.rtol, test.atol


def arrays(values):
    """Sequences stay lists, an empty optional stays ``None``."""
    return [as_array(one) for one in values]


def as_array(one):
    if one is None or isinstance(one, list):
        return None if one is None else arrays(one)
    array = numpy_helper.to_array(one) if isinstance(one, onnx.TensorProto) else np.asarray(one)
    return array.astype(object) if array.dtype.kind in "US" else array


def with_symbols(model):
    """The model with a symbol for every size of its inputs, and nothing said of any other tensor."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    del changed.graph.value_info[:]
    for info in changed.graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    for info in changed.graph.input:
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            dim.dim_param = f"{info.name}_{axis}"
    return changed


def run(model, data_sets, rtol, atol, declutter):
    """None when the outputs are right, else what is wrong.

    Where a parameter must be known early, all inputs but the first are made constants of the model.
    """
    try:
        return run_once(model, data_sets, rtol, atol, declutter)
    except Unsupported as error:
        if "must be known" not in error.problem or len(data_sets) != 1:
            raise
    inputs, outputs = data_sets[0]
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    names = [info.name for info in model.graph.input]
    for name, array in list(zip(names, arrays(inputs), strict=True))[1:]:
        fixed.graph.initializer.append(numpy_helper.from_array(array, name))
    return run_once(fixed, [(inputs[:1], outputs)], rtol, atol, declutter)


def run_once(model, data_sets, rtol, atol, declutter):
    typed = Onnx().load_bytes(model.SerializeToString()).into_typed()
    if declutter:
        typed.declutter()
    plan = TypedSimplePlan(typed)
    for inputs, outputs in data_sets:
        given = [
            boxed(one) if isinstance(fact.datum_type, Container) else one
            for one, fact in zip(arrays(inputs), plan.input_facts, strict=True)
        ]
        for found, wanted in zip(plan.run(given), arrays(outputs), strict=True):
            problem = compare(found, wanted, rtol, atol)
            if problem:
                return problem
    return None


def compare(found, wanted, rtol, atol):
    held = from_tensor(found)
    if wanted is None or held is None or isinstance(wanted, list) or isinstance(held, list):
        return compare_held(held, wanted, rtol, atol)
    found = held
    if found.shape != wanted.shape:
        return f"shape {found.shape}, wanted {wanted.shape}"
    if wanted.dtype.kind in "OUS":
        return None if (found.astype(str) == wanted.astype(str)).all() else "strings differ"
    if found.dtype != wanted.dtype:
        return f"type {found.dtype}, wanted {wanted.dtype}"
    rtol = max(rtol, 1e-3) if wanted.dtype.itemsize > 2 else 2e-2
    kind = np.complex128 if wanted.dtype.kind == "c" else np.float64
    try:
        np.testing.assert_allclose(found.astype(kind), wanted.astype(kind), rtol=rtol, atol=max(atol, 1e-5))
    except AssertionError as error:
        return " ".join(str(error).split())[:150]
    return None


def compare_held(found, wanted, rtol, atol):
    """Of a sequence, the first item that differs."""
    if not isinstance(found, list) or not isinstance(wanted, list):
        return None if found is wanted is None else f"{type(found).__name__}, wanted {type(wanted).__name__}"
    if len(found) != len(wanted):
        return f"{len(found)} items, wanted {len(wanted)}"
    problems = (compare(one, other, rtol, atol) for one, other in zip(found, wanted, strict=True))
    return next((f"item {place}: {problem}" for place, problem in enumerate(problems) if problem), None)


def score(kind, declutter, symbolic=False):
    """``(operators, name, result, detail)`` for every test."""
    for name, given, data_sets, rtol, atol in cases(kind):
        model = with_symbols(given) if symbolic else given
        ops = sorted({node.op_type for node in model.graph.node})
        label = ops[0] if len(ops) == 1 else name.removeprefix("test_").split("_expanded")[0]
        label = label if len(ops) == 1 else "(several)"
        try:
            problem = run(model, data_sets, rtol, atol, declutter)
            yield label, name, "failed" if problem else "passed", problem or ""
        except TractError as error:
            kind_name = type(error).__name__
            typed = kind_name in ("Unsupported", "VersionError", "InputError")
            yield label, name, "refused" if typed else "failed", f"{kind_name}: {str(error)[:300]}"
        except Exception as error:
            yield label, name, "failed", f"{type(error).__name__}: {str(error)[:200]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--show", default=None, help="print the details of tests whose name or operator contains this")
    parser.add_argument("--no-declutter", action="store_true")
    parser.add_argument("--symbolic", action="store_true", help="replace every size of the inputs by a symbol")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for kind in options.kind or KINDS:
        table = defaultdict(Counter)
        for op, name, result, detail in score(kind, not options.no_declutter, options.symbolic):
            table[op][result] += 1
            if options.show is not None and result != "passed" and (options.show.lower() in f"{op} {name}".lower()):
                print(f"{result} {name}: {detail}")
        total = sum(table.values(), Counter())
        for op, counts in sorted(table.items()):
            if counts["failed"] or counts["refused"]:
                print(
                    f"  {op:32} passed {counts['passed']:4} failed {counts['failed']:4} refused {counts['refused']:4}"
                )
        print(f"{kind}: {dict(total)}")


if __name__ == "__main__":
    main()
