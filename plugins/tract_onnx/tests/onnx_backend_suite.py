"""The backend tests of the ``onnx`` package, run by its own runner: what is run, how, and what is refused.

As a script it prints how many pass, in each mode and for each operator:

    python plugins/tract_onnx/tests/onnx_backend_suite.py [--mode decluttered] [--show SOFTMAX]
"""

# ruff: noqa: T201 (a script prints)

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter, defaultdict
from functools import cache
from typing import Any, Final

import onnx
from onnx.backend.test import BackendTest
from onnx.backend.test.loader import load_model_tests
from tract_onnx.backend import Backend

from tract_core.errors import TractError, Unsupported

KINDS: Final = ("node", "simple", "pytorch-operator", "pytorch-converted")

MODES: Final = {
    "wired": {"declutter": False},
    "decluttered": {"declutter": True},
    "symbolic": {"declutter": True, "symbolic": True},
}
"""The options of `Cases.prepare` for each way of running a test."""

RUNTIMES: Final = ("reference", "cpu")
"""The runtimes that every test is run on."""

_TRAINING = (Unsupported, "it differentiates a part of the model, and models are only run here")

REFUSED: Final = {
    "test_gradient_of_add": _TRAINING,
    "test_gradient_of_add_and_mul": _TRAINING,
}
"""The tests whose model is refused: the error, and a part of its message. One that passes does not belong here."""

_CHANNELS = (TractError, "channels cannot be cut into 2 groups")

WITHOUT_BATCH: Final = {"test_convtranspose_group_2": _CHANNELS, "test_convtranspose_group_2_image_3": _CHANNELS}
"""The tests that are refused when the leading axes are symbols, as one of those is no batch, but must be known."""

_NUMBERS_DRAWN = {"atol": 1.0}
"""Random numbers, 0 or 1: types and shapes are compared."""

_ROUNDED_AT_EVERY_STEP = {"rtol": 2**-9}
"""The expected results were rounded to f16 after every step, and are 2 units in the last place off."""

_SUMMED_IN_F32 = {"atol": 1e-6}
"""Where numbers up to 450 cancel out, the expected results have what f32 left of them; ours are nearer to 0."""

TOLERANCES: Final = {
    "test_attention_4d_causal_fp16": _ROUNDED_AT_EVERY_STEP,
    "test_attention_4d_causal_fp16_expanded": _ROUNDED_AT_EVERY_STEP,
    "test_bernoulli": _NUMBERS_DRAWN,
    "test_bernoulli_double": _NUMBERS_DRAWN,
    "test_bernoulli_double_expanded": _NUMBERS_DRAWN,
    "test_bernoulli_expanded": _NUMBERS_DRAWN,
    "test_bernoulli_seed": _NUMBERS_DRAWN,
    "test_bernoulli_seed_expanded": _NUMBERS_DRAWN,
    "test_dft_inverse": _SUMMED_IN_F32,
    "test_dft_inverse_opset19": _SUMMED_IN_F32,
}
"""The tests that have tolerances other than their own."""


class Cases(Backend):
    """The backend under test.

    ``symbolic``: with a symbol for the leading axis of every input. ``runtime``: the one that runs the test, by name.
    ``backend``: another one in its place.
    """

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Whatever is refused must be seen, and not skipped."""
        return True

    @classmethod
    def prepare(
        cls,
        model: onnx.ModelProto,
        device: str = "CPU",
        *,
        symbolic: bool = False,
        runtime: str | None = None,
        backend: Any = None,
        **kwargs: Any,
    ) -> Any:
        prepare = super().prepare if backend is None else backend.prepare
        return prepare(with_symbols(model) if symbolic else model, runtime or device, **kwargs)


class Suite(BackendTest):
    """ONNX's runner. It takes the tensors in a list for lists of numbers, and fails at those without axes."""

    @classmethod
    def assert_similar_outputs(cls, ref_outputs, outputs, rtol, atol, model_dir=None):
        assert len(ref_outputs) == len(outputs)
        for wanted, found in zip(ref_outputs, outputs, strict=True):
            if isinstance(wanted, list):
                assert isinstance(found, list)
                cls.assert_similar_outputs(wanted, found, rtol, atol, model_dir)
            else:
                super().assert_similar_outputs([wanted], [found], rtol, atol, model_dir)


def with_symbols(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with a symbol for the leading axis of every input, and nothing said of the shape of other tensors.

    Lists of integers are parameters, whose length is that of something else.
    """
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    del changed.graph.value_info[:]
    for info in changed.graph.output:
        if info.type.HasField("tensor_type"):
            info.type.tensor_type.ClearField("shape")
    for info in changed.graph.input:
        tensor = info.type.tensor_type
        is_list = len(tensor.shape.dim) == 1 and tensor.elem_type in (onnx.TensorProto.INT32, onnx.TensorProto.INT64)
        if tensor.shape.dim and not is_list:
            tensor.shape.dim[0].dim_param = f"{info.name}_0"
    return changed


@cache
def all_cases() -> dict[str, Any]:
    """For each test of the suite, a function that runs it: ``run(None, **options of Cases.prepare)``.

    Made once for all modules of tests: ONNX computes the outputs that are wanted, and that takes seconds.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        suite = Suite(Cases, __name__)
    groups = [group for title, group in suite.test_cases.items() if "Real" not in title]
    return {
        name.removesuffix("_cpu"): getattr(group, name)
        for group in groups
        for name in sorted(vars(group))
        if name.endswith("_cpu")
    }


def refusal(name: str, mode: str) -> tuple[type[TractError], str] | None:
    """The error that a test must end in, and a part of its message."""
    return REFUSED.get(name) or (WITHOUT_BATCH.get(name) if mode == "symbolic" else None)


def outcome(run: Any, name: str, mode: str, runtime: str) -> tuple[str, str]:
    """``passed``, ``refused`` or ``failed``, and the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            run(None, runtime=runtime, **MODES[mode], **TOLERANCES.get(name, {}))
    except TractError as error:
        return ("refused" if refusal(name, mode) else "failed"), f"{type(error).__name__}: {error}"
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
    return "passed", ""


def operators() -> dict[str, list[str]]:
    """For each test, the operators in its model, as ``domain/OpType``."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tests = [test for kind in KINDS for test in load_model_tests(kind=kind)]
    found: dict[str, list[str]] = {}
    for test in tests:
        model = test.model or onnx.load(f"{test.model_dir}/model.onnx")
        found[test.name] = sorted({f"{node.domain or 'ai.onnx'}/{node.op_type}" for node in model.graph.node})
    return found


def main() -> int:
    """Print the tables. The exit code is 1 where a test fails."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=MODES, action="append")
    parser.add_argument("--runtime", default="default", help="the name of a runtime, 'cpu(isa=\"avx2\")' for one")
    parser.add_argument("--show", help="print the errors of the tests whose name or operators contain this")
    options = parser.parse_args()
    labels, cases = operators(), all_cases()
    failed = False
    for mode in options.mode or MODES:
        table: dict[str, Counter[str]] = defaultdict(Counter)
        for name, run in cases.items():
            result, error = outcome(run, name, mode, options.runtime)
            ops = labels[name]
            table[ops[0] if len(ops) == 1 else "(several)"][result] += 1
            if result != "passed" and options.show is not None and options.show.lower() in f"{name} {ops}".lower():
                print(f"{result} {name}: {' '.join(error.split())[:300]}")
        for op, counts in sorted(table.items()):
            if counts.keys() != {"passed"}:
                print(f"  {op:40} {dict(counts)}")
        total = sum(table.values(), Counter[str]())
        print(f"{mode}: {dict(total)}")
        failed = failed or total["failed"] > 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
