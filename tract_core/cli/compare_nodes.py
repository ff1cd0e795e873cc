"""The work of ``compare``: collect the reference's tensors by name, then look at each node of the model."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from tract_core.cli.assertions import AssertionFailed, Assertions
from tract_core.cli.dump import check_assertions
from tract_core.cli.inputs import inputs_for
from tract_core.cli.values import read_bundle
from tract_core.data import DatumType
from tract_core.errors import InputError
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.runtime.plan import Step, TypedSimplePlan
from tract_core.testing.tolerance import mismatch

if TYPE_CHECKING:
    from tract_core.cli.request import Request

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One tensor of the model: whether the reference has it, and how they differ, if they do."""

    name: str
    op: str
    compared: bool
    problem: str | None


def compare(request: Request, flags: dict[str, Any]) -> None:
    """Print a verdict per node. Raises AssertionFailed, naming the first one, when any differs."""
    model = request.typed_model()
    check_assertions(model, flags)
    arrays = inputs_for(model, flags)
    reference = _reference(request, model, arrays, flags)
    assertions = Assertions(**{name: flags[name] for name in Assertions.__dataclass_fields__})
    with request.progress("comparing"):
        verdicts = judge(request, model, arrays, reference, assertions, cumulative=flags["cumulative"])
    _print(request, verdicts, flags)
    wrong = [verdict for verdict in verdicts if verdict.problem is not None]
    if wrong:
        raise AssertionFailed(
            f"{len(wrong)} of {len(verdicts)} tensors differ, first {wrong[0].name!r}: {wrong[0].problem}"
        )
    if not any(verdict.compared for verdict in verdicts):
        raise AssertionFailed("nothing was compared: the reference has no tensor of a name that the model has")


def _reference(request: Request, model: TypedModel, arrays: list[Array], flags: dict[str, Any]) -> dict[str, Array]:
    if flags["npz"]:
        return read_bundle(flags["npz"])
    other = model
    if flags["against"]:
        with request.progress("loading the reference"):
            staged = request.pipeline.at(flags["against"])
        if not isinstance(staged, TypedModel):
            raise InputError(f"at stage {flags['against']!r} the model cannot run")
        other = staged
    return every_tensor(other, _by_name(model, arrays, other))


def _by_name(model: TypedModel, arrays: list[Array], other: TypedModel) -> list[Array]:
    """The same input values in the order of the other model's inputs."""
    given = {model.outlet_name(outlet): array for outlet, array in zip(model.inputs, arrays, strict=True)}
    try:
        return [given[other.outlet_name(outlet)] for outlet in other.inputs]
    except KeyError as error:
        raise InputError(f"the reference has an input {error.args[0]!r} that the model has not") from None


def every_tensor(model: TypedModel, arrays: list[Array]) -> dict[str, Array]:
    """What every node of a model computes, by the name of the tensor."""
    tensors: dict[str, Array] = {}

    def keep(step: Step, outputs: tuple[Array, ...]) -> None:
        for slot, array in enumerate(outputs):
            tensors[model.outlet_name(OutletId(step.node, slot))] = array

    TypedSimplePlan(model).spawn().run(arrays, observe=keep)
    return tensors


def judge(
    request: Request,
    model: TypedModel,
    arrays: list[Array],
    reference: dict[str, Array],
    assertions: Assertions,
    *,
    cumulative: bool,
) -> list[Verdict]:
    """A verdict per tensor. Unless ``cumulative``, what the reference has replaces what was computed, once judged."""
    plan = request.chosen_runtime.prepare(model)
    verdicts: list[Verdict] = []

    def verdict(name: str, op: str, found: Array) -> None:
        wanted = reference.get(name)
        problem = None if wanted is None else _difference(found, wanted, assertions)
        verdicts.append(Verdict(name, op, wanted is not None, problem))

    def look(step: Step, outputs: tuple[Array, ...]) -> tuple[Array, ...] | None:
        names = [model.outlet_name(OutletId(step.node, slot)) for slot in range(len(outputs))]
        for name, found in zip(names, outputs, strict=True):
            verdict(name, step.op.name, found)
        return None if cumulative else _corrected(names, outputs, reference)

    if isinstance(plan, TypedSimplePlan):
        plan.spawn().run(arrays, observe=look)
    else:
        click.echo(f"runtime {request.runtime!r} does not show single nodes: only outputs are compared", err=True)
        for outlet, found in zip(model.outputs, plan.spawn().run(arrays), strict=True):
            verdict(model.outlet_name(outlet), model.nodes[outlet.node].op.name, found)
    return verdicts


def _corrected(names: list[str], outputs: tuple[Array, ...], reference: dict[str, Array]) -> tuple[Array, ...]:
    """The reference's values where it has them in the same type and shape."""
    wanted = [reference.get(name) for name in names]
    return tuple(
        found if good is None or good.dtype != found.dtype or good.shape != found.shape else good
        for found, good in zip(outputs, wanted, strict=True)
    )


def _difference(found: Array, wanted: Array, assertions: Assertions) -> str | None:
    if found.dtype != wanted.dtype:
        return f"element type is {found.dtype}, wanted {wanted.dtype}"
    return mismatch(np.asarray(found), wanted, assertions.tolerance(DatumType.from_numpy(found.dtype)))


def _print(request: Request, verdicts: list[Verdict], flags: dict[str, Any]) -> None:
    if flags["as_json"]:
        click.echo(json.dumps([asdict(verdict) for verdict in verdicts]))
        return
    for verdict in verdicts:
        if verdict.problem is not None:
            request.console.print(f"[red]differs[/red] {verdict.op} [bold]{verdict.name}[/bold]: {verdict.problem}")
        elif not flags["quiet"] and verdict.compared:
            request.console.print(f"[green]agrees[/green]  {verdict.op} [bold]{verdict.name}[/bold]")
    compared = sum(verdict.compared for verdict in verdicts)
    request.console.print(f"{compared} of {len(verdicts)} tensors were compared (names that both sides have)")
