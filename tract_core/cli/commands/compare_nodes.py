"""The work of ``compare``: collect the reference's tensors by name, then look at each node of the model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.cli.assertions import AssertionFailed, Assertions, check_assertions, check_outputs
from tract_core.cli.commands.compare_report import Reference, Verdict, print_verdicts
from tract_core.cli.commands.halves import halves_in
from tract_core.cli.inputs import whole_inputs_for
from tract_core.cli.pipeline import wired
from tract_core.cli.signals import first_turn
from tract_core.cli.values import holds_floats, of_type, read_bundle
from tract_core.errors import InputError
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel
from tract_core.runtime.parts import Part
from tract_core.runtime.protocol import ObservablePlan, running_model

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
    whole = whole_inputs_for(request, model, flags)
    arrays = first_turn(model, whole)
    reference = _reference(request, model, arrays, flags)
    other_floats = bool(flags["float_casts"] or flags["original"] or request.transforms)
    assertions = Assertions.of({**flags, "float_casts": other_floats})
    with request.progress("comparing"):
        verdicts = judge(request, model, arrays, reference.tensors, assertions, cumulative=flags["cumulative"])
    print_verdicts(request, reference, verdicts, flags)
    conclude(reference, verdicts, () if flags["allow_missing_outputs"] else output_names(model))
    check_outputs(request, model, flags, whole)


def output_names(model: TypedModel) -> list[str]:
    """The names of the outputs, in order."""
    return [model.outlet_name(outlet) for outlet in model.outputs]


def conclude(reference: Reference, verdicts: Sequence[Verdict], outputs: Collection[str]) -> None:
    """Raises AssertionFailed where a tensor differs, and where nothing, or not every output, was compared."""
    wrong = [verdict for verdict in verdicts if verdict.problem is not None]
    if wrong:
        first = wrong[0]
        count = sum(verdict.compared for verdict in verdicts)
        normal = all(verdict.half is not None and verdict.half.is_normal for verdict in wrong)
        raise AssertionFailed(
            f"{len(wrong)} of {count} tensors differ from {reference.title}\n"
            f"  the first is {first.name!r}, which {first.op} computes: {first.problem}",
            hint="by no more than is normal in half precision: --approx very allows that" if normal else None,
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
    return Reference(f"stage {flags['stage']!r}", every_tensor(reference, staged, by_name(model, arrays, staged)))


def _partner(request: Request, model: TypedModel, arrays: list[Array], flags: Flags) -> Reference:
    """What another engine gives. Raises PluginError, naming those that are known, for one that is not."""
    from tract_core.plugins import default_registry
    from tract_core.plugins.keys import PARTNERS
    from tract_core.plugins.missing import not_installed

    partners = default_registry()[PARTNERS]
    run = partners.find(flags["partner"])
    if run is None:
        raise not_installed("partner", flags["partner"], partners.names())
    path = Path(flags["original"]) if flags["original"] else request.pipeline.path
    given = {model.outlet_name(outlet): array for outlet, array in zip(model.inputs, arrays, strict=True)}
    given = {name: _with_context(array, *request.pipeline.context_of(name)) for name, array in given.items()}
    options = {flag.keyword: value for flag, value in request.pipeline.flags.of_format.items()}
    with request.progress(f"running {flags['partner']} on"):
        return Reference(flags["partner"], run(path, {**request.pipeline.constants, **given}, options))


def _with_context(array: Array, before: int, after: int) -> Array:
    """The frames that the file's model takes, of which ours makes the first and the last itself."""
    wanted = ((before, after), (0, 0))[: array.ndim]
    return np.pad(array, wanted, mode="edge") if before or after else array


def by_name(model: TypedModel, arrays: list[Array], other: TypedModel) -> list[Array]:
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
        running = running_model(plan, model)
        tensors: dict[str, Array] = {}

        def keep(part: Part, outputs: Mapping[OutletId, Array]) -> None:
            tensors.update({running.outlet_name(outlet): array for outlet, array in outputs.items()})

        plan.spawn_observed(keep).run(arrays)
        return tensors


def _as_outputs(request: Request, model: TypedModel, arrays: list[Array]) -> dict[str, Array]:
    """What every node computes where every tensor is made an output of the model, so that none is fused with others."""
    shown = as_all_outputs(model)
    outputs = request.prepare(shown).spawn().run(arrays)
    return {shown.outlet_name(outlet): array for outlet, array in zip(shown.outputs, outputs, strict=True)}


def as_all_outputs(model: TypedModel) -> TypedModel:
    """A copy of a model of which every tensor that is computed is an output."""
    shown = model.clone()
    order = [shown.nodes[node] for node in shown.eval_order()]
    computed = [node for node in order if not isinstance(node.op, (Const, TypedSource))]
    shown.set_outputs(outlet for node in computed for outlet in node.outlets())
    return shown


def judge(
    request: Request,
    model: TypedModel,
    arrays: list[Array],
    reference: Mapping[str, Array],
    assertions: Assertions,
    *,
    cumulative: bool,
) -> list[Verdict]:
    """A verdict per tensor of the program that runs; then, where it hides what went wrong, per node.

    A runtime that fuses nodes shows what leaves a group, one that shows no nodes the outputs alone. Inside a group that
    differs, and inside such a program, nodes are looked at in a model of which every tensor is an output, which is
    another program. Unless ``cumulative``, what the reference has replaces what was computed, once judged.
    """
    plan = request.prepare(model)
    judged = _Judge(running_model(plan, model), reference, assertions, [*output_names(model)])
    if isinstance(plan, ObservablePlan):
        outputs = plan.spawn_observed(judged.watch if cumulative else judged.correct).run(arrays)
        hidden = judged.inside_wrong_groups()
    else:
        outputs = plan.spawn().run(arrays)
        hidden = None
    ops = {model.outlet_name(outlet): node.op.name for node in model.live_nodes() for outlet in node.outlets()}
    for name, found in zip(judged.outputs, outputs, strict=True):
        judged.look_at(name, ops[name], found)  # unless it was, as no node computes it: it is a constant, or an input
    if hidden is None or hidden:
        for name, found in _as_outputs(request, model, arrays).items():
            if hidden is None or name in hidden:
                judged.look_at(name, ops[name], found, unfused=hidden is not None)
    return judged.in_order()


class _Judge:
    """Looks at tensors, each once."""

    def __init__(
        self, model: TypedModel, reference: Mapping[str, Array], assertions: Assertions, outputs: list[str]
    ) -> None:
        self.outputs = outputs
        self._verdicts: dict[str, Verdict] = {}
        self._model = model
        self._reference = reference
        self._assertions = assertions
        self._groups: list[tuple[Part, bool]] = []
        self._halves = halves_in(model)

    def in_order(self) -> list[Verdict]:
        """The verdicts in order of execution, so that the first one that is wrong comes first."""
        nodes = (self._model.nodes[node] for node in self._model.eval_order())
        order = [self._model.outlet_name(outlet) for node in nodes for outlet in node.outlets()]
        place = {name: number for number, name in enumerate(order)}
        return sorted(self._verdicts.values(), key=lambda verdict: place.get(verdict.name, len(place)))

    def look_at(self, name: str, op: str, found: Array, *, unfused: bool = False) -> bool:
        """Whether a tensor is not wrong, as far as is known."""
        if name in self._verdicts:
            return True
        wanted, is_output = self._reference.get(name), name in self.outputs
        if wanted is None:
            self._verdicts[name] = Verdict(name, op, compared=False, problem=None, output=is_output, unfused=unfused)
            return True
        problem = self._assertions.difference(found, wanted)
        found, wanted = np.asarray(found), of_type(wanted, found.dtype)
        self._verdicts[name] = Verdict.of(
            name, op, found, wanted, problem=problem, halves=self._halves, output=is_output, unfused=unfused
        )
        return problem is None

    def watch(self, part: Part, outputs: Mapping[OutletId, Array]) -> None:
        """Look at what a node gives, or a group."""
        op, name_of = ", ".join(part.ops(self._model)), self._model.outlet_name
        fine = [self.look_at(name_of(outlet), op, found) for outlet, found in outputs.items()]
        if len(part.nodes) > 1:
            self._groups.append((part, all(fine)))

    def correct(self, part: Part, outputs: Mapping[OutletId, Array]) -> Mapping[OutletId, Array]:
        """`watch`, and the reference's values where it has them in the same type and shape."""
        self.watch(part, outputs)
        wanted = {outlet: self._reference.get(self._model.outlet_name(outlet)) for outlet in outputs}
        good = {outlet: self._in_place_of(outputs[outlet], one) for outlet, one in wanted.items() if one is not None}
        return {outlet: one for outlet, one in good.items() if one is not None}

    def _in_place_of(self, found: Array, good: Array) -> Array | None:
        """The reference's tensor where it can be used for ours, in our type where floats may be of others."""
        if good.shape != found.shape:
            return None
        if good.dtype == found.dtype:
            return good
        casts = self._assertions.float_casts and holds_floats(good) and holds_floats(found)
        return good.astype(found.dtype) if casts else None

    def inside_wrong_groups(self) -> frozenset[str]:
        """The names of the tensors that groups whose results differ do not show."""
        wrong = [part for part, fine in self._groups if not fine]
        nodes = [node for part in wrong for node in part.within(self._model)]
        return frozenset(self._model.outlet_name(outlet) for node in nodes for outlet in node.outlets())
