"""The work of ``run``: one turn, with every tensor looked at when that is asked for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

import click
import numpy as np

from tract_core.cli.assertions import AssertionFailed, Assertions, check_assertions
from tract_core.cli.commands.profile_report import write_trace
from tract_core.cli.commands.show import fact_of, holds_arrays_only, plain, save_npz, summary
from tract_core.cli.inputs import whole_inputs_for
from tract_core.cli.signals import first_turn, outputs_for
from tract_core.data import DatumType
from tract_core.data.boxes import tensors_in
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.runtime.parts import Part
from tract_core.runtime.protocol import running_model

if TYPE_CHECKING:
    from tract_core.cli.request import Request

Array = np.ndarray[Any, Any]

PRINTED: Final = 10_000
"""Elements up to which ``--dump`` prints a tensor whole."""


def run_once(request: Request, flags: dict[str, Any]) -> None:
    """Run, print, save, check; in that order, so that what was computed is seen even when an assertion fails."""
    model = request.typed_model()
    check_assertions(model, flags)
    arrays = whole_inputs_for(request, model, flags)
    plan = request.prepare(model)
    watch = Watch(running_model(plan, model), request, flags)
    with nullcontext() if watch.print else request.progress("running"):
        outputs = outputs_for(request, model, arrays, watch if watch.wanted else None, watch.begin)
    by_name = {model.outlet_name(outlet): array for outlet, array in zip(model.outputs, outputs, strict=True)}
    if not flags["quiet"]:
        _report(request, by_name, flags)
    if flags["save"]:
        save_npz(flags["save"], by_name)
    if flags["save_steps"]:
        save_npz(flags["save_steps"], {**watch.tensors, **_savable(by_name)})
    write_trace(request, model, flags, first_turn(model, arrays))
    watch.check(by_name)
    Assertions.of(flags).check_outputs(model, outputs)


class Watch:
    """Sees every tensor that a run computes: prints, keeps or checks it."""

    def __init__(self, model: TypedModel, request: Request, flags: Mapping[str, Any]) -> None:
        self.model = model
        self.request = request
        self.print = bool(flags["steps"]) and not flags["quiet"]
        self.keep = bool(flags["save_steps"])
        self.sane = bool(flags["assert_sane_floats"])
        self.tensors: dict[str, Array] = {}
        self.turn = ""
        self.insane: list[str] = []

    @property
    def wanted(self) -> bool:
        """Whether any flag needs single nodes."""
        return self.print or self.keep or self.sane

    def begin(self, turn: int) -> None:
        """A pulse of a signal goes in: what it gives is printed behind its number, and saved in a folder of it."""
        self.turn = f"turn_{turn}/"
        if self.print:
            self.request.console.line((f"turn {turn}", "bold"))

    def __call__(self, part: Part, outputs: Mapping[OutletId, Array]) -> None:
        """A node was computed, or a group of nodes that are fused."""
        ops = ", ".join(part.ops(self.model))
        for outlet, array in outputs.items():
            name = self.model.outlet_name(outlet)
            if self.print:
                self.request.console.line((ops, "green"), " ", (name, "bold"), f" {summary(array)}")
            if self.keep:
                self.tensors |= _savable({f"{self.turn}{name}": np.array(array)})
            if self.sane:
                self.look(name, array)

    def look(self, name: str, array: Array) -> None:
        """Note a tensor that holds an infinity or not-a-number, also inside a sequence or a map."""
        if name not in self.insane and not all(map(_is_finite, tensors_in(array))):
            self.insane.append(name)

    def check(self, outputs: Mapping[str, Array]) -> None:
        """Raise AssertionFailed when a tensor was not sane and should have been; no node computes some outputs."""
        if self.sane:
            for name, array in outputs.items():
                self.look(name, array)
        if self.insane:
            raise AssertionFailed(f"not finite: {', '.join(self.insane[:10])}")


def _is_finite(array: Array) -> bool:
    kind = DatumType.from_numpy(array.dtype)
    if not (kind.is_float() or kind.is_complex()):
        return True
    return bool(np.isfinite(array if array.dtype.kind in "fc" else array.astype(np.float32)).all())


def _savable(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Those that an .npz file can hold; the others are named on standard error."""
    for name in (name for name, array in arrays.items() if not holds_arrays_only(array)):
        click.echo(f"{name!r} is no tensor: it is not saved", err=True)
    return {name: array for name, array in arrays.items() if holds_arrays_only(array)}


def _report(request: Request, outputs: Mapping[str, Array], flags: Mapping[str, Any]) -> None:
    if flags["as_json"]:
        content = {name: {"fact": fact_of(array), "values": plain(array)} for name, array in outputs.items()}
        click.echo(json.dumps(content))
        return
    for name, array in outputs.items():
        request.console.line("output ", (name, "bold"), f" {summary(array)}")
        if flags["show"] and holds_arrays_only(array):
            request.console.line(np.array2string(array, threshold=PRINTED))
