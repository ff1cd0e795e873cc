"""The work of ``run``: one turn, with every tensor looked at when that is asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from tract_core.cli.assertions import AssertionFailed, Assertions
from tract_core.cli.dump import check_assertions
from tract_core.cli.inputs import inputs_for
from tract_core.data import DatumType
from tract_core.errors import InputError
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.runtime.plan import Step, TypedSimplePlan

if TYPE_CHECKING:
    from tract_core.cli.request import Request

Array = np.ndarray[Any, Any]


def run_once(request: Request, flags: dict[str, Any]) -> None:
    """Run, print, save, check; in that order, so that what was computed is seen even when an assertion fails."""
    model = request.typed_model()
    check_assertions(model, flags)
    arrays = inputs_for(model, flags)
    watch = Watch(model, request, flags)
    plan = request.chosen_runtime.prepare(model)
    with request.progress("running"):
        if watch.wanted:
            if not isinstance(plan, TypedSimplePlan):
                raise InputError(f"runtime {request.runtime!r} does not show single nodes", hint="use -r reference")
            outputs = plan.spawn().run(arrays, observe=watch)
        else:
            outputs = plan.spawn().run(arrays)
    by_name = {model.outlet_name(outlet): array for outlet, array in zip(model.outputs, outputs, strict=True)}
    _report(request, by_name, flags)
    if flags["save"]:
        save_npz(flags["save"], by_name)
    if flags["save_steps"]:
        save_npz(flags["save_steps"], {**watch.tensors, **by_name})
    watch.check()
    names = Assertions.__dataclass_fields__
    Assertions(**{name: flags[name] for name in names}).check_outputs(model, outputs)


class Watch:
    """Sees every tensor that a run computes: prints, keeps or checks it."""

    def __init__(self, model: TypedModel, request: Request, flags: Mapping[str, Any]) -> None:
        self.model = model
        self.request = request
        self.print = bool(flags["steps"])
        self.keep = bool(flags["save_steps"])
        self.sane = bool(flags["assert_sane_floats"])
        self.tensors: dict[str, Array] = {}
        self.insane: list[str] = []

    @property
    def wanted(self) -> bool:
        """Whether any flag needs single nodes."""
        return self.print or self.keep or self.sane

    def __call__(self, step: Step, outputs: tuple[Array, ...]) -> None:
        """One node was computed."""
        for slot, array in enumerate(outputs):
            name = self.model.outlet_name(OutletId(step.node, slot))
            if self.print:
                self.request.console.print(f"[green]{step.op.name}[/green] [bold]{name}[/bold] {summary(array)}")
            if self.keep:
                self.tensors[name] = np.array(array)
            if self.sane and array.dtype.kind == "f" and not np.isfinite(array).all():
                self.insane.append(name)

    def check(self) -> None:
        """Raise AssertionFailed when a tensor was not sane and should have been."""
        if self.insane:
            raise AssertionFailed(f"not finite: {', '.join(self.insane[:10])}")


def summary(array: Array) -> str:
    """Type, shape and the first elements."""
    kind = DatumType.from_numpy(array.dtype).short
    shape = ",".join([*map(str, array.shape), kind])
    flat = array.reshape(-1)[:8]
    values = " ".join(f"{value:.6g}" if array.dtype.kind == "f" else str(value) for value in flat.tolist())
    return f"{shape}  {values}{' ...' if array.size > 8 else ''}"


def _report(request: Request, outputs: Mapping[str, Array], flags: Mapping[str, Any]) -> None:
    if flags["as_json"]:
        content = {
            name: {"fact": summary(array).split("  ")[0], "values": np.asarray(array).tolist()}
            for name, array in outputs.items()
        }
        click.echo(json.dumps(content, default=str))
        return
    for name, array in outputs.items():
        request.console.print(f"output [bold]{name}[/bold] {summary(array)}")
        if flags["show"]:
            request.console.print(np.array2string(array, threshold=10_000), markup=False)


def save_npz(path: str, arrays: Mapping[str, Array]) -> None:
    """Write an .npz file whole or not at all."""
    target = Path(path)
    try:
        with NamedTemporaryFile(dir=target.parent, suffix=".npz", delete=False) as file:
            np.savez(file, **dict(arrays))  # pyright: ignore[reportArgumentType]: keywords are arrays
        os.replace(file.name, target)
    except OSError as error:
        raise InputError(f"cannot write: {error}", where=path) from None
