"""What stands in the way of loading and running a model: all of it, not only the first.

A frontend may have a method ``examine(path)``, which reads a file as far as it can be read and gives an `Examination`.
`findings_of` puts what it found, and what wiring the model finds, into one list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from itertools import chain, count
from shlex import quote
from typing import TYPE_CHECKING, Any, Final, Literal, cast

from tract_core.analysis.inference import InferenceModel, Source, place_of
from tract_core.dims import is_symbolic
from tract_core.errors import (
    ContradictoryFacts,
    CorruptModel,
    FactError,
    LimitExceeded,
    MissingOperator,
    TractError,
    UnsafePath,
    Unsupported,
    VersionError,
)
from tract_core.frozen import frozen
from tract_core.model.bodies import bodies_of
from tract_core.model.fact import InferenceFact
from tract_core.ops.check import Refuse

if TYPE_CHECKING:
    from tract_core.analysis.result import Analysis
    from tract_core.model.typed import TypedModel

Severity = Literal["problem", "remark"]


@frozen
class Examination:
    """What a frontend made of a file. ``model``: as far as it could be read, ``None`` when nothing could.

    ``problems`` keep it from loading, ``remarks`` do not. ``about``: what the file is, for people, as
    ``{"producer": "pytorch 2.1"}``.
    """

    model: InferenceModel | TypedModel | None
    problems: tuple[TractError, ...] = ()
    remarks: tuple[TractError, ...] = ()
    about: Mapping[str, str] = field(default_factory=dict[str, str])


@frozen
class Finding:
    """One thing that the reader of a report should know. ``places``: the nodes, tensors or files concerned.

    A *problem* keeps the model from loading or running; a *remark* does not. ``kind`` is for machines: ``operator``,
    ``unsupported``, ``contradiction``, ``shape``, ``unknown``, ``branch``, ``path``, ``limit``, ``version``,
    ``corrupt``, ``symbol`` or ``error``.

    ``hint``: what to do about it.
    """

    kind: str
    problem: str
    places: tuple[str, ...] = ()
    hint: str | None = None
    severity: Severity = "problem"


@frozen
class Sheet:
    """A table that goes with a report: figures that are neither problem nor remark, as what each node adds to a delay.

    ``rows``: as many texts and numbers each as there are ``columns``; ``None`` for what is not known. ``title``:
    what stands above it.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str | int | float | None, ...], ...]


_KINDS: Final[Sequence[tuple[type[TractError], str]]] = (
    (ContradictoryFacts, "contradiction"),
    (UnsafePath, "path"),
    (LimitExceeded, "limit"),
    (VersionError, "version"),
    (CorruptModel, "corrupt"),
    (MissingOperator, "operator"),
    (Unsupported, "unsupported"),
    (FactError, "shape"),
)
"""What to call an error: the first that fits."""

_CHECK_FACTS: Final = "check the facts of the inputs; -i NAME:1,3,S,f32 overrides what the file says of one"
"""What to do about facts that do not fit, which errors of wiring do not say."""


def finding_of(error: TractError, kind: str | None = None) -> Iterator[Finding]:
    """An error as a finding; one that stands for several, as one for each."""
    if isinstance(error.__cause__, ExceptionGroup):
        parts = cast("ExceptionGroup[Exception]", error.__cause__).exceptions
        for finding in (found for part in parts if isinstance(part, TractError) for found in finding_of(part)):
            places = finding.places or ("",)
            yield replace(finding, places=tuple(": ".join(filter(None, (error.where, place))) for place in places))
        return
    kind = kind or next((name for fitting, name in _KINDS if isinstance(error, fitting)), "error")
    hint = error.hint or (_CHECK_FACTS if kind == "shape" else None)
    yield Finding(kind, error.problem, (error.where,) if error.where else (), hint)


def findings_of(model: InferenceModel, analysis: Analysis) -> list[Finding]:
    """What wiring a model found: nodes that cannot be wired, facts that are missing, and nodes never reached."""
    found: list[Finding] = []
    for error in analysis.problems.values():
        found += finding_of(error)
    for error in analysis.model.remarks:
        found += (replace(finding, severity="remark") for finding in finding_of(error))
    found += _unknown_inputs(model, analysis)
    found += _refused_branches(analysis.model)
    nodes = [model.nodes[node] for node in model.eval_order([*model.inputs, *model.outputs])]
    unreached = [n for n in nodes if not analysis.outlets.keys() & set(n.outlets()) and n.name not in analysis.problems]
    if unreached := [node for node in unreached if not isinstance(node.op, Source)]:
        found.append(
            Finding(
                "unknown",
                "what these nodes read; they were not checked",
                tuple(map(place_of, unreached)),
                "look again when the problems are settled",
                "remark",
            )
        )
    return merged(found)


def _unknown_inputs(model: InferenceModel, analysis: Analysis) -> Iterator[Finding]:
    taken = {*model.symbols.names}
    for outlet in model.inputs:
        name, fact = model.outlet_name(outlet), model.outlet_fact(outlet)
        if outlet not in analysis.outlets:
            missing = "element type" if fact.shape is not None else "rank" if fact.datum_type else "rank and type"
            yield Finding(
                "unknown", f"the {missing} of an input: {fact}", (f"input {name!r}",), _flag(name, fact, taken)
            )
        elif fact.shape is not None and None in fact.shape:
            wired = analysis.model.outlet_fact(analysis.outlets[outlet])
            told = any(dim is None and not is_symbolic(size) for dim, size in zip(fact.shape, wired.shape, strict=True))
            became = "became symbols, or what is said of tensors behind them" if told else "became symbols"
            yield Finding(
                "unknown",
                f"sizes without a name, which {became}: {wired}",
                (f"input {name!r}",),
                _flag(name, fact, taken),
                "remark",
            )


def _refused_branches(model: TypedModel, around: str = "") -> Iterator[Finding]:
    """The branches, at any depth, that a run must not take."""
    for node in model.live_nodes():
        if isinstance(node.op, Refuse):
            hint = f"{node.op.hint}; a run that takes the branch is refused"
            yield Finding("branch", node.op.reason, (around,), hint, "remark")
        place = f"node {node.name!r} ({node.op.name})"
        for body in bodies_of(node.op):
            yield from _refused_branches(body, f"{around}: {place}" if around else place)


def _flag(name: str, fact: InferenceFact, taken: set[str]) -> str:
    """How to say what is missing of an input's fact, with a symbol of its own for each size: none that is ``taken``."""
    sizes: Sequence[Any] = (1, 3, 224, 224) if fact.shape is None else fact.shape
    sizes = [_free("S" if axis else "B", taken) if dim is None else dim for axis, dim in enumerate(sizes)]
    kind = "f32" if fact.datum_type is None else fact.datum_type.short
    example = ",".join(map(str, (*sizes, kind)))
    return f"give its fact, as with -i {quote(f'{name}:{example}')} on the command line, or with set_input_fact"


def _free(name: str, taken: set[str]) -> str:
    """The name, or one that begins with it, which is taken from now on."""
    free = next(one for one in chain([name], (f"{name}{number}" for number in count(2))) if one not in taken)
    taken.add(free)
    return free


def merged(findings: Iterable[Finding]) -> list[Finding]:
    """Findings that say the same of different places, put together; problems first, else in the order given."""
    places: dict[Finding, dict[str, None]] = {}
    for finding in findings:
        places.setdefault(replace(finding, places=()), {}).update(dict.fromkeys(finding.places))
    one_each = [replace(finding, places=tuple(where)) for finding, where in places.items()]
    return sorted(one_each, key=lambda finding: finding.severity != "problem")
