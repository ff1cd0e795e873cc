"""What is to be said of a file: does it load and compute what ONNX Runtime computes, and does an archive keep it?"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import onnx
from shipped_inputs import Array, Case, Known, session, two_cases
from shipped_nodes import MEANINGS, distance, partings
from tract_nnef.transforms.cycle import NnefCycle
from tract_onnx.frontend import OnnxLoader
from tract_onnx.writing.saver import OnnxWriter

from tract_core.data.datum_type import DatumType
from tract_core.errors import Unwritable
from tract_core.model.fact_text import parse_inference_fact
from tract_core.model.same import same_model
from tract_core.model.typed import TypedModel
from tract_core.runtime.lookup import find_runtime
from tract_core.testing.sizes import longest_size
from tract_core.transforms.float_precision import FloatPrecision

TOLERANCE: Final = 1e-4
"""What an output may differ by, relative to its largest magnitude, without float64 being asked."""

LONGEST: Final = 200
"""Characters of a symbolic size."""

TIPPED: Final = 0.05
"""What an output of a file that is written again may differ by, where it rounds its state in each step."""

LAST_DIGIT: Final = float(np.finfo(np.float32).eps)
"""What the distance of an output from float64 may be off by, as the output was rounded to f32."""


RunFn = Callable[[Case], list[Array]]
"""The outputs that one of the ways to run a file gives."""


@dataclass
class Findings:
    """What is known of one file; ``failures`` is empty where all is well. Differences are those of `distance`.

    ``wired``, ``decluttered``: on the reference runtime; ``cpu``: decluttered, on the CPU runtime; ``written``:
    decluttered, written to ONNX again, in ONNX Runtime.
    ``seconds``: of the processor, for loading and simplifying it. ``blamed``: operators of ONNX Runtime that float64 is
    against. ``tipped``: operators that are right in both engines, but round a state that fell on two sides. ``ours``,
    ``theirs``: distances of the two engines from float64, where that was asked. ``kept``: shapes here and there, where
    an axis stays here because its size is a symbol.
    """

    megabytes: float
    nodes: int
    seconds: float = 0.0
    wired: float = 0.0
    decluttered: float = 0.0
    cpu: float = 0.0
    written: float = 0.0
    blamed: dict[str, None] = field(default_factory=dict)
    tipped: dict[str, None] = field(default_factory=dict)
    kept: str = ""
    ours: float | None = None
    theirs: float | None = None
    failures: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """One line."""
        if self.failures:
            return "; ".join(dict.fromkeys(self.failures))
        if self.kept:
            return f"agrees, but for a symbolic axis that is 1: {self.kept}"
        if self.ours is None:
            return "agrees"
        if self.tipped:
            return f"each step of {', '.join(self.tipped)} is right in both, a state fell on two sides of a rounding"
        who = f"float64 is against ONNX Runtime's {', '.join(self.blamed)}" if self.blamed else "rounding"
        return f"{who}: {self.ours:.0e} from it here, {self.theirs:.0e} there"


def examine(path: Path, known: Sequence[Known] = ({}, {})) -> Findings:
    """Load a file as it is, and run it at two sizes."""
    findings = Findings(path.stat().st_size / 1e6, len(onnx.load(path, load_external_data=False).graph.node))
    try:
        wired = OnnxLoader().load(path).into_typed()
        start = time.process_time()
        decluttered = OnnxLoader().load(path).into_typed().declutter()
        findings.seconds = time.process_time() - start
    except Exception as error:
        findings.failures.append(f"does not load: {error}")
        return findings
    for given in (wired, decluttered):
        if len(size := longest_size(given)) > LONGEST:
            findings.failures.append(f"has a size of {len(size)} characters: {size:.80}...")
        if not same_model(NnefCycle().apply(given).declutter(), decluttered):
            findings.failures.append("comes back from an archive as another model")
    try:
        ways = _ways(wired, decluttered)
    except Unwritable as error:
        findings.failures.append(f"cannot be written: {error}")
        return findings
    for case in two_cases(path, known):
        try:
            found = [run(case) for run in ways]
        except Exception as error:
            findings.failures.append(f"does not run with {case.sizes}: {error}")
            return findings
        shapes = [[array.shape for array in outputs] for outputs in (*found, case.wanted)]
        if shapes[:-1] == shapes[:1] * len(found) and shapes[0] != shapes[-1]:
            findings.kept = f"{shapes[0]} here, {shapes[-1]} there"
            fixed = _with_sizes(path, case)
            found = [run(case) for run in _ways(fixed, fixed.clone().declutter())]
        worst = [_worst(outputs, case.wanted) for outputs in found]
        findings.wired = max(findings.wired, worst[0])
        findings.decluttered = max(findings.decluttered, worst[1])
        findings.cpu = max(findings.cpu, worst[2])
        findings.written = max(findings.written, worst[3])
        if max(worst) > TOLERANCE:
            _judge(path, wired, case, found, findings)
    return findings


def _ways(wired: TypedModel, decluttered: TypedModel) -> list[RunFn]:
    return [_on("reference", wired), _on("reference", decluttered), _on("cpu", decluttered), _written(decluttered)]


def _written(model: TypedModel) -> RunFn:
    """The model as a file that ONNX's own checks take, in ONNX Runtime."""
    content = OnnxWriter().to_bytes(model)
    onnx.checker.check_model(content, full_check=True)
    engine = session(content)
    return lambda case: engine.run(None, case.given)


def _on(runtime: str, model: TypedModel) -> RunFn:
    plan = find_runtime(runtime).prepare(model)
    return lambda case: plan.spawn().run([case.given[model.outlet_name(outlet)] for outlet in model.inputs])


def _with_sizes(path: Path, case: Case) -> TypedModel:
    """The model, told the shapes of its inputs before it is wired."""
    model = OnnxLoader().load(path)
    for outlet in model.inputs:
        array = case.given[model.outlet_name(outlet)]
        text = ",".join(map(str, (*array.shape, DatumType.from_numpy(array.dtype))))
        model.set_outlet_fact(outlet, parse_inference_fact(text, model.symbols))
    return model.into_typed()


def _judge(path: Path, model: TypedModel, case: Case, found: list[list[Array]], findings: Findings) -> None:
    """Ask float64: first about every node that differs on the same inputs, then about the outputs."""
    for parting in partings(path, case.given):
        if not parting.is_right_here:
            findings.failures.append(f"{parting.op_type} {parting.node!r} differs, {parting.ours} here from float64")
            return
        if parting.is_tipped:
            findings.tipped[parting.op_type] = None
        elif not parting.is_right_there:
            findings.blamed[parting.op_type] = None
    exact = _on("reference", FloatPrecision("f32", "f64", keep_io_types=True).apply(model))(case)
    *here, written = (_worst(outputs, exact) for outputs in found)
    ours, theirs = max(here), _worst(case.wanted, exact)
    most = TIPPED if _rounds_its_state(path) else max(2 * theirs, TOLERANCE)  # ONNX Runtime's own distance is in it
    if written > most + LAST_DIGIT:
        findings.failures.append(f"written again, {written:.1e} from float64, ONNX Runtime {theirs:.1e}")
    if not findings.tipped and ours > max(theirs, TOLERANCE) + LAST_DIGIT:
        findings.failures.append(f"{ours:.1e} from float64, ONNX Runtime {theirs:.1e}")
    findings.ours, findings.theirs = max(findings.ours or 0.0, ours), max(findings.theirs or 0.0, theirs)


def _rounds_its_state(path: Path) -> bool:
    """Whether a state is quantised in each step: it may fall on two sides of a rounding, and all behind it differs."""
    return any(node.op_type in MEANINGS for node in onnx.load(path, load_external_data=False).graph.node)


def _worst(found: Sequence[Array], wanted: Sequence[Array]) -> float:
    return max(map(distance, found, wanted))
