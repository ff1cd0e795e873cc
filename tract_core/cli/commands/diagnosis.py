"""The work of ``doctor``: take a model as far as it goes, and collect what is found on the way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import TYPE_CHECKING, Any, Final

from tract_core.analysis import look_at_all, typed_from
from tract_core.analysis.findings import Finding, Sheet, finding_of, findings_of, merged
from tract_core.analysis.inference import InferenceModel, KnownTensor, Source
from tract_core.cli.wording import on_the_line
from tract_core.data import Constant
from tract_core.dims import bind, evaluate, symbols_of
from tract_core.dims.names import write_name
from tract_core.errors import DimError, TractError
from tract_core.model.const import Const
from tract_core.model.graph import Graph
from tract_core.model.source import TypedSource
from tract_core.model.substitute import symbols_needed, symbols_told
from tract_core.model.typed import TypedModel
from tract_core.plugins import default_registry
from tract_core.runtime.streams import Streams
from tract_core.transforms.transform import ExaminingTransform

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_core.transforms.transform import Transform

LARGEST: Final = 3
"""How many constants are named."""


@dataclass(slots=True)
class Diagnosis:
    """What the doctor found.

    ``about``: what the file is. ``operators``: how many nodes of each. ``constants``: what they take, in bytes, by
    name. ``inputs``, ``outputs``: facts by name, as far as they are known. ``symbols``: where each gets its value.
    ``sheets``: tables of what transforms have to say.
    """

    model: str
    runtime: str
    about: Mapping[str, str] = field(default_factory=dict[str, str])
    findings: list[Finding] = field(default_factory=list[Finding])
    loads: bool = False
    operators: Counter[str] = field(default_factory=Counter[str])
    constants: Counter[str] = field(default_factory=Counter[str])
    inputs: dict[str, str] = field(default_factory=dict[str, str])
    outputs: dict[str, str] = field(default_factory=dict[str, str])
    symbols: dict[str, str] = field(default_factory=dict[str, str])
    sheets: list[Sheet] = field(default_factory=list[Sheet])

    @property
    def problems(self) -> list[Finding]:
        """What keeps the model from loading or running."""
        return [finding for finding in self.findings if finding.severity == "problem"]


def diagnose(request: Request) -> Diagnosis:
    """Load, wire, simplify and prepare the model, and note all that goes wrong. Raises TractError for wrong flags."""
    examination = request.pipeline.examine()
    findings = [finding for error in examination.problems for finding in finding_of(error)]
    findings += [replace(found, severity="remark") for error in examination.remarks for found in finding_of(error)]
    model = examination.model
    typed: TypedModel | None = None
    if isinstance(model, InferenceModel):
        typed = _type(model, findings)
    elif model is not None:
        typed = model
    diagnosis = Diagnosis(request.model or "", _runtime_name(request, findings), examination.about)
    if model is not None:
        _describe(diagnosis, model)
    if typed is not None:
        diagnosis.loads = not any(finding.severity == "problem" and finding.kind != "runtime" for finding in findings)
        diagnosis.inputs = {typed.outlet_name(outlet): str(typed.outlet_fact(outlet)) for outlet in typed.inputs}
        diagnosis.outputs = {typed.outlet_name(outlet): str(typed.outlet_fact(outlet)) for outlet in typed.outputs}
        if diagnosis.loads:
            _prepare(request, typed, diagnosis, findings)
    diagnosis.findings = merged(_worded(request, finding) for finding in _without_echoes(findings))
    return diagnosis


def _runtime_name(request: Request, findings: list[Finding]) -> str:
    """The name of the runtime that ``-r`` leads to; one that does not work here is a finding."""
    try:
        return request.chosen_runtime.name
    except TractError as error:
        findings += finding_of(error, "runtime")
        return request.runtime


def _type(model: InferenceModel, findings: list[Finding]) -> TypedModel | None:
    """Wire the model; ``None`` when that does not succeed."""
    try:
        analysis = look_at_all(model)
        findings += findings_of(model, analysis)
        if not any(finding.severity == "problem" for finding in findings):
            return typed_from(model, analysis)
    except TractError as error:
        findings += finding_of(error)
    return None


def _prepare(request: Request, typed: TypedModel, diagnosis: Diagnosis, findings: list[Finding]) -> None:
    """Go on to what the runtime prepares; transforms may have something to say on the way."""

    def ask(transform: Transform, model: TypedModel) -> None:
        if isinstance(transform, ExaminingTransform):
            with default_registry().blaming("tract_transforms", transform.name, "a report"):
                for told in transform.examine(model):
                    diagnosis.sheets.append(told) if isinstance(told, Sheet) else findings.append(told)

    request.pipeline.before_transform = ask
    try:
        ready = request.pipeline.onwards(typed, "before-optimize", after="type")
        assert isinstance(ready, TypedModel)  # a typed model stays one
        findings += _symbols(ready, diagnosis.symbols)
        if not diagnosis.sheets:
            diagnosis.sheets += _lateness(ready)
        if not any(finding.kind == "runtime" for finding in findings):
            request.pipeline.onwards(ready, "optimize", after="before-optimize")
    except TractError as error:
        findings += finding_of(error)


def _describe(diagnosis: Diagnosis, model: Graph[Any, Any]) -> None:
    """Count nodes and constants; note what is known of inputs and outputs."""
    for node in model.live_nodes():
        if isinstance(node.op, (KnownTensor, Const)) and isinstance(node.op.value, Constant):
            diagnosis.constants[node.name] = node.op.value.array.nbytes
        elif not isinstance(node.op, (Source, TypedSource)):
            diagnosis.operators[node.op.name] += 1
    diagnosis.inputs = {model.outlet_name(outlet): str(model.outlet_fact(outlet)) for outlet in model.inputs}
    diagnosis.outputs = {model.outlet_name(outlet): str(model.outlet_fact(outlet)) for outlet in model.outputs}


def _symbols(model: TypedModel, origins: dict[str, str]) -> Iterator[Finding]:
    """Where each symbol gets its value when the model runs, noted in ``origins``; a finding for one that has none."""
    origins.update(_from_inputs(model))
    definitions = model.symbols.definitions
    streams = Streams.of(model)
    if streams is not None:
        origins.setdefault(streams.symbol, "the end of the signal, which `State.end_of_stream` tells")
    nodes = [model.nodes[node_id] for node_id in model.eval_order([*model.inputs, *model.outputs])]
    for node in nodes:
        for symbol in sorted(symbols_told(node.op)):
            origins.setdefault(symbol, f"what node {node.name!r} ({node.op.name}) keeps from the turns before")
    for node in nodes:
        if isinstance(node.op, TypedSource):
            continue
        place = f"node {node.name!r} ({node.op.name})"
        for symbol in sorted(definitions.roots(symbols_needed(node.op)) - origins.keys()):
            yield Finding(
                "symbol",
                f"no input has a size from which {symbol} could be told",
                (place,),
                f"give it a value with --set {quote(write_name(symbol))}=1, or an input whose size it is with -i",
            )
        for symbol in sorted(frozenset[str]().union(*(out.fact.shape.symbols() for out in node.outputs))):
            if symbol not in definitions:
                origins.setdefault(symbol, f"what {place} computes")


def _lateness(model: TypedModel) -> Iterator[Sheet]:
    """How late the outputs of a model come that takes its signal in pulses, as its properties say."""
    streams = Streams.of(model)
    if streams is not None:
        ends = [(model.outlet_name(outlet), end) for outlet, end in zip(model.outputs, streams.outputs, strict=True)]
        rows = tuple(
            (name, end.axis, end.delay, None if end.length is None else str(end.length))
            for name, end in ends
            if end is not None
        )
        yield Sheet("outputs", ("output", "axis", "delay", "length"), rows)


def _from_inputs(model: TypedModel) -> dict[str, str]:
    """The symbols that the shapes of the inputs determine, each with the first input that has it."""
    facts = {model.outlet_name(outlet): model.outlet_fact(outlet) for outlet in model.inputs}
    names = sorted(frozenset[str]().union(*(fact.shape.symbols() for fact in facts.values())))
    # Any values will do, so that they are divisible by what sizes are divided by.
    example = {name: 5040 * (number + 1) for number, name in enumerate(names)}
    bound: dict[str, int] = {}
    for fact in facts.values():
        try:
            bound = bind(fact.shape, [evaluate(dim, example) for dim in fact.shape], bound)
        except DimError:
            continue  # sizes that are no solvable expressions determine nothing
    origins: dict[str, str] = {}
    for name, fact in facts.items():
        for axis, dim in enumerate(fact.shape):
            for symbol in symbols_of(dim) & bound.keys():
                origins.setdefault(symbol, f"input {name!r}, axis {axis}")
    return origins


def _without_echoes(findings: list[Finding]) -> list[Finding]:
    """Leave out facts that are not known because of another problem with the same tensor."""
    named = {place for finding in findings if finding.kind != "unknown" for place in finding.places}
    return [finding for finding in findings if finding.kind != "unknown" or not set(finding.places) <= named]


def _worded(request: Request, finding: Finding) -> Finding:
    """What to do about a finding, as the command line spells it."""
    return replace(finding, hint=finding.hint and on_the_line(finding.hint, request))
