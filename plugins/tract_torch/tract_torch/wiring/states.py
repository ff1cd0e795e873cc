"""What a module changes while it is called: its buffers, and its arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch.export.graph_signature import OutputKind

from tract_core.data import DatumType
from tract_core.errors import InputError, Unsupported
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.scan import FullInput, InputMapping, OutputMapping, Scan, ScannedInput, StateInput
from tract_torch.tensors import array_of, datum_type
from tract_torch.wiring.call import Known
from tract_torch.wiring.lowering import StatesOption


def after(name: str) -> str:
    """The name of the output that gives what an input of this name is after a call."""
    return f"{name}_out"


class States:
    """What a program changes. ``held``: the buffers among that, by their names in the module."""

    def __init__(self, program: torch.export.ExportedProgram, model: TypedModel, option: StatesOption) -> None:
        """Raises Unsupported for changes that are not to be, InputError for an option that there is not."""
        if option not in ("refuse", "inputs", "inside"):
            raise InputError(f"states={option!r} is none of 'refuse', 'inputs' and 'inside'")
        self.model = model
        self.option = option
        self._specs = program.graph_signature.output_specs
        self._initial: dict[OutletId, np.ndarray] = {}
        self._inputs: dict[tuple[bool, str], OutletId] = {}
        """By whether the module holds it, or the user gives it, and what the program calls it."""
        self.held = self._changed(OutputKind.BUFFER_MUTATION)
        parameters = self._changed(OutputKind.PARAMETER_MUTATION)
        if parameters:
            raise Unsupported(
                f"the module changes its parameters: {', '.join(parameters)}",
                hint="what changes is a buffer: self.register_buffer(name, tensor)",
            )
        if self.held and option == "refuse":
            raise Unsupported(
                f"the module changes what it holds: {', '.join(self.held)}",
                hint="states='inputs' (of load, of export_model_to_nnef, and of the command) makes inputs and outputs "
                "of it, states='inside' lets a running model keep it",
            )
        arguments = self._changed(OutputKind.USER_INPUT_MUTATION)
        if arguments and option != "inputs":
            raise Unsupported(
                f"the module changes its arguments in place: {', '.join(arguments)}",
                hint="copy them first, as x = x.clone(); states='inputs' makes outputs of them",
            )

    def _changed(self, kind: OutputKind) -> list[str]:
        return [str(spec.target) for spec in self._specs if spec.kind is kind]

    def given(self, target: str, outlet: OutletId) -> None:
        """Note the input that the program knows as ``target``."""
        self._inputs[False, target] = outlet

    def source(self, target: str, held: torch.Tensor) -> OutletId:
        """An input for what the module holds under a name, and changes."""
        outlet = self.model.add_source(target, TypedFact.of(datum_type(held.dtype), held.shape))
        self._initial[outlet] = array_of(held.clone())
        self._inputs[True, target] = outlet
        return outlet

    def last(self, inputs: Sequence[OutletId]) -> list[OutletId]:
        """Inputs in the order in which a model has them: those of the user first, as outputs are."""
        return sorted(inputs, key=lambda outlet: outlet in self._initial)

    def changes(self) -> list[tuple[int, OutletId]]:
        """Places of what is changed among all that the program returns, in the order of the inputs, and these."""
        found = {
            (spec.kind is not OutputKind.USER_INPUT_MUTATION, str(spec.target)): place
            for place, spec in enumerate(self._specs)
            if spec.kind in (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)
        }
        return [(found[key], outlet) for key, outlet in self._inputs.items() if key in found]

    def results(self, values: Sequence[Known | None]) -> Iterator[tuple[Known, str]]:
        """What the program changed, in the order of its inputs, and how that is called as an output.

        ``values``: all that the program returns. Raises Unsupported for what does not fit the place that it is to be in
        at the next call.
        """
        for place, outlet in self.changes():
            value = values[place]
            self._check(str(self._specs[place].target), outlet, value)
            if value is not None:
                yield value, after(self.model.outlet_name(outlet))

    def _check(self, target: str, outlet: OutletId, value: Known | None) -> None:
        """Raises Unsupported."""
        before = self.model.outlet_fact(outlet)
        found = self.model.outlet_fact(value) if isinstance(value, OutletId) else None
        if found is None or (found.datum_type, found.shape) != (before.datum_type, before.shape):
            raise Unsupported(
                f"{target!r} is {before} before a call and {found or value} after it",
                hint="its element type and its shape have to stay: write into a buffer that is large enough",
            )

    def kept_inside(self, model: TypedModel) -> TypedModel:
        """A model that keeps its states itself; the model as it is where that was not asked for.

        It is a loop of one iteration, of which the model is the body: a loop hands its state from turn to turn.
        """
        if self.option != "inside" or not self._initial:
            return model
        outer = model.empty_like()
        given: list[OutletId] = []
        mappings: list[InputMapping] = []
        for outlet in model.inputs:
            name = model.outlet_name(outlet)
            if outlet in self._initial:
                given.append(outer.add_const(name, self._initial[outlet]))
                mappings.append(StateInput())
            else:
                given.append(outer.add_source(name, model.outlet_fact(outlet)))
                mappings.append(FullInput())
        model.add_source(model.unique_name("turn"), TypedFact.of(DatumType.I64, (1,)))
        given.append(outer.add_const(outer.unique_name("turn"), np.zeros(1, np.int64)))
        mappings.append(ScannedInput(0))
        count = len(model.outputs) - len(self._initial)
        results = [OutputMapping(last=slot) for slot in range(count)]
        results += [OutputMapping(state=True) for _ in self._initial]
        labels = [model.outlet_name(outlet) for outlet in model.outputs[:count]]
        outlets = outer.wire_node(outer.unique_name("turns"), Scan(model, tuple(mappings), tuple(results)), given)
        outer.set_outputs(outlets)
        for outlet, label in zip(outlets, labels, strict=True):
            outer.set_label(outlet, label)
        return outer
