"""The work of ``compare``: collect the reference's tensors by name, then look at each node of the model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.cli.assertions import AssertionFailed, Assertions, check_assertions, check_outputs
from tract_core.cli.compare_report import Reference, Verdict, print_verdicts
from tract_core.cli.inputs import inputs_for
from tract_core.cli.pipeline import wired
from tract_core.cli.values import of_type, read_bundle
from tract_core.errors import InputError, PluginError
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel
from tract_core.runtime.protocol import ObservablePlan
from tract_core.testing.tolerance import distances

if TYPE_CHECKING:
    from tract_core.cli.request import Request

Array = np.ndarray[Any, Any]
Flags = Mapping[str, Any]


def compare(request: Request, flags: dict[str, Any]) -> None:
    """Print a verdict per node. Raises AssertionFailed, naming the first one, when any differs."""
    if flags["runtime"]:
        request = replace(request, runtime=flags["runtime"])
    model = request.typed_model()
    check_assertions(model, flags)
    arrays = inputs_for(request, model, flags)
    reference = _reference(request, model, arrays, flags)
    assertions = Assertions.of(flags)
    with request.progress("comparing"):
        verdicts = judge(request, model, arrays, reference.tensors, assertions, cumulative=flags["cumulative"])
    print_verdicts(request, reference, verdicts, flags)
    _conclude(reference, verdicts, () if flags["allow_missing_outputs"] else _output_names(model))
    check_outputs(request, model, flags, arrays)


def _output_names(model: TypedModel) -> list[str]:
    return [model.outlet_name(outlet) for outlet in model.outputs]


def _conclude(reference: Reference, verdicts: Sequence[Verdict], outputs: Collection[str]) -> None:
    """Raises AssertionFailed where a tensor differs, and where nothing, or not every output, was compared."""
    wrong = [verdict for verdict in verdicts if verdict.problem is not None]
    if wrong:
        first = wrong[0]
        count = sum(verdict.compared for verdict in verdicts)
        raise AssertionFailed(
            f"{len(wrong)} of {count} tensors differ from {reference.title}\n"
            f"  the first is {first.name!r}, which {first.op} computes: {first.problem}"
        )
    if not any(verdict.compared for verdict in verdicts):
        raise AssertionFailed(
            f"nothing was compared: {reference.title} has no tensor of a name that the model has",
            hint="--pass type keeps more of the file's nodes than the decluttered model has",
        )
    compared = {verdict.name for verdict in verdicts if verdict.compared}
    missing = [name for name in outputs if name not in compared]
    if missing:
        names = f"output{'s' if len(missing) > 1 else ''} {', '.join(map(repr, missing))}"
        raise AssertionFailed(
            f"{names} could not be compared: {reference.title} has no tensor of that name",
            hint="--allow-missing-outputs lets what was compared be enough, --pass load keeps the file's names",
        )


# -- the reference -----------------------------------------------------------------------------------------------------


def _reference(request: Request, model: TypedModel, arrays: list[Array], flags: Flags) -> Reference:
    if flags["npz"]:
        return Reference(flags["npz"], read_bundle(flags["npz"]))
    if flags["partner"]:
        return _partner(request, model, arrays, flags)
    if flags["against"]:
        other = replace(request, runtime=flags["against"])
        if other.chosen_runtime.name == request.chosen_runtime.name:
            raise InputError(
                f"both sides are runtime {other.chosen_runtime.name!r}, which would be compared with itself",
                hint="--runtime NAME names the other one; --twice compares two runs of one",
            )
        return Reference(f"runtime {other.chosen_runtime.name!r}", every_tensor(other, model, arrays))
    reference = replace(request, runtime="reference")
    if flags["twice"]:
        return Reference("a second run", every_tensor(request, model, arrays))
    if flags["stage"] == request.final_stage:
        raise InputError(f"the model is at stage {flags['stage']!r} itself: it would be compared with itself")
    staged = wired(request.pipeline.at(flags["stage"]))
    return Reference(f"stage {flags['stage']!r}", every_tensor(reference, staged, _by_name(model, arrays, staged)))


def _partner(request: Request, model: TypedModel, arrays: list[Array], flags: Flags) -> Reference:
    """What another engine gives. Raises PluginError, naming those that are known, for one that is not."""
    from tract_core.plugins import default_registry
    from tract_core.plugins.keys import PARTNERS

    partners = default_registry()[PARTNERS]
    run = partners.find(flags["partner"])
    if run is None:
        known = ", ".join(partners.names()) or "none"
        raise PluginError(
            f"there is no engine {flags['partner']!r} to compare with; known are: {known}",
            hint="'onnxruntime' comes with tract-onnx" if not len(partners) else None,
        )
    path = Path(flags["original"]) if flags["original"] else request.pipeline.path
    given = {model.outlet_name(outlet): array for outlet, array in zip(model.inputs, arrays, strict=True)}
    given = {name: _with_context(array, *request.pipeline.context_of(name)) for name, array in given.items()}
    with request.progress(f"running {flags['partner']} on"):
        return Reference(flags["partner"], run(path, {**request.pipeline.constants, **given}))


def _with_context(array: Array, before: int, after: int) -> Array:
    """The frames that the file's model takes, of which ours makes the first and the last itself."""
    wanted = ((before, after), (0, 0))[: array.ndim]
    return np.pad(array, wanted, mode="edge") if before or after else array


def _by_name(model: TypedModel, arrays: list[Array], other: TypedModel) -> list[Array]:
    """The same input values in the order of the other model's inputs."""
    given = {model.outlet_name(outlet): array for outlet, array in zip(model.inputs, arrays, strict=True)}
    try:
        return [given[other.outlet_name(outlet)] for outlet in other.inputs]
    except KeyError as error:
        raise InputError(f"the reference has an input {error.args[0]!r} that the model has not") from None


def every_tensor(request: Request, model: TypedModel, arrays: list[Array]) -> dict[str, Array]:
    """What every node of a model computes on the runtime of ``-r``, by the name of the tensor."""
    plan = request.prepare(model)
    with request.progress(f"running on {request.chosen_runtime.name}:"):
        if not isinstance(plan, ObservablePlan):
            return _as_outputs(request, model, arrays)
        tensors: dict[str, Array] = {}

        def keep(node: int, outputs: tuple[Array, ...]) -> None:
            for slot, array in enumerate(outputs):
                tensors[model.outlet_name(OutletId(node, slot))] = array

        plan.observed_run(arrays, keep)
        return tensors


def _as_outputs(request: Request, model: TypedModel, arrays: list[Array]) -> dict[str, Array]:
    """The same from a runtime that does not show single nodes: every tensor is made an output of the model."""
    shown = model.clone()
    order = [shown.nodes[node] for node in shown.eval_order()]
    computed = [node for node in order if not isinstance(node.op, (Const, TypedSource))]
    shown.set_outputs(outlet for node in computed for outlet in node.outlets())
    outputs = request.prepare(shown).spawn().run(arrays)
    return {shown.outlet_name(outlet): array for outlet, array in zip(shown.outputs, outputs, strict=True)}


# -- the verdicts ------------------------------------------------------------------------------------------------------


def judge(
    request: Request,
    model: TypedModel,
    arrays: list[Array],
    reference: Mapping[str, Array],
    assertions: Assertions,
    *,
    cumulative: bool,
) -> list[Verdict]:
    """A verdict per tensor. Unless ``cumulative``, what the reference has replaces what was computed, once judged."""
    plan = request.prepare(model)
    verdicts: list[Verdict] = []
    names_of_outputs = {*_output_names(model)}

    def verdict(name: str, op: str, found: Array) -> None:
        wanted = reference.get(name)
        if wanted is None:
            verdicts.append(Verdict(name, op, compared=False, problem=None, output=name in names_of_outputs))
            return
        problem = assertions.difference(found, wanted)
        largest, mean = distances(np.asarray(found), of_type(wanted, found.dtype)) or (None, None)
        verdicts.append(Verdict(name, op, True, problem, largest, mean, name in names_of_outputs))

    def look(node: int, outputs: tuple[Array, ...]) -> tuple[Array, ...] | None:
        names = [model.outlet_name(OutletId(node, slot)) for slot in range(len(outputs))]
        for name, found in zip(names, outputs, strict=True):
            verdict(name, model.nodes[node].op.name, found)
        return None if cumulative else _corrected(names, outputs, reference)

    ops = {model.outlet_name(outlet): node.op.name for node in model.live_nodes() for outlet in node.outlets()}
    if isinstance(plan, ObservablePlan):
        outputs = plan.observed_run(arrays, look)
    else:
        for name, found in _as_outputs(request, model, arrays).items():
            verdict(name, ops[name], found)
        outputs = plan.spawn().run(arrays)
    judged = {one.name for one in verdicts}
    for name, found in zip(_output_names(model), outputs, strict=True):
        if name not in judged:  # no node computes it: it is a constant, or an input
            verdict(name, ops[name], found)
    return verdicts


def _corrected(names: list[str], outputs: tuple[Array, ...], reference: Mapping[str, Array]) -> tuple[Array, ...]:
    """The reference's values where it has them in the same type and shape."""
    wanted = [reference.get(name) for name in names]
    return tuple(
        found if good is None or good.dtype != found.dtype or good.shape != found.shape else good
        for found, good in zip(outputs, wanted, strict=True)
    )
