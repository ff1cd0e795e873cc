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


class States:
    """What a program changes. ``buffers``: the names of those that it changes."""

    def __init__(self, program: torch.export.ExportedProgram, model: TypedModel, option: StatesOption) -> None:
        """Raises Unsupported for changes that are not to be, InputError for an option that there is not."""
        self.model = model
        self.option = option
        self._specs = program.graph_signature.output_specs
        self._initial: dict[OutletId, np.ndarray] = {}
        changes = {kind: self._changed(kind) for kind in (OutputKind.BUFFER_MUTATION, OutputKind.USER_INPUT_MUTATION)}
        self.buffers, arguments = changes.values()
        if option not in ("refuse", "inputs", "inside"):
            raise InputError(f"states={option!r} is none of 'refuse', 'inputs' and 'inside'")
        if self.buffers and option == "refuse":
            raise Unsupported(
                f"the module changes what it holds: {', '.join(self.buffers)}",
                hint="tract_torch.load(..., states='inputs') makes inputs and outputs of it, states='inside' lets a "
                "running model keep it; tract.nnef() writes what it gives",
            )
        if arguments and option != "inputs":
            raise Unsupported(
                f"the module changes its arguments in place: {', '.join(arguments)}",
                hint="copy them first, as x = x.clone(); tract_torch.load(..., states='inputs') makes outputs of them",
            )

    def _changed(self, kind: OutputKind) -> list[str]:
        return [str(spec.target) for spec in self._specs if spec.kind is kind]

    def source(self, name: str, held: torch.Tensor) -> OutletId:
        """An input for a buffer that is changed."""
        outlet = self.model.add_source(name, TypedFact.of(datum_type(held.dtype), held.shape))
        self._initial[outlet] = array_of(held.clone())
        return outlet

    def results(self, values: Sequence[Known | None]) -> Iterator[tuple[Known, str]]:
        """What the program changed, and how that is called as an output; ``values``: all that the program returns."""
        for value, spec in zip(values, self._specs, strict=True):
            if spec.kind is not OutputKind.USER_OUTPUT and value is not None:
                yield value, f"{spec.target}_out"

    def kept_inside(self, model: TypedModel) -> TypedModel:
        """A model that keeps its states itself; the model as it is where that was not asked for.

        It is a loop of one iteration, of which the model is the body: a loop hands its state from turn to turn.
        """
        if self.option != "inside" or not self._initial:
            return model
        outer = model.empty_like()
        turn = model.add_source(model.unique_name("turn"), TypedFact.of(DatumType.I64, (1,)))
        given: list[OutletId] = [outer.add_const("turn", np.zeros(1, np.int64))]
        mappings: list[InputMapping] = [ScannedInput(0)]
        model.inputs = [turn, *(outlet for outlet in model.inputs if outlet != turn)]
        for outlet in model.inputs[1:]:
            name = model.outlet_name(outlet)
            if outlet in self._initial:
                given.append(outer.add_const(name, self._initial[outlet]))
                mappings.append(StateInput())
            else:
                given.append(outer.add_source(name, model.outlet_fact(outlet)))
                mappings.append(FullInput())
        count = len(model.outputs) - len(self._initial)
        results = [OutputMapping(last=slot) for slot in range(count)]
        results += [OutputMapping(state=True) for _ in self._initial]
        labels = [model.outlet_name(outlet) for outlet in model.outputs[:count]]
        outlets = outer.wire_node("turns", Scan(model, tuple(mappings), tuple(results)), given)
        outer.set_outputs(outlets)
        for outlet, label in zip(outlets, labels, strict=True):
            outer.set_label(outlet, label)
        return outer
