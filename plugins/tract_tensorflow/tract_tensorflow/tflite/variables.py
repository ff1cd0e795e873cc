"""Variables, which hold a tensor from run to run: a graph that assigns some is the body of a loop that keeps them."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.analysis import into_body
from tract_core.analysis.inference import InferenceModel, InferenceOp
from tract_core.errors import CorruptModel
from tract_core.frozen import frozen
from tract_core.model.fact import InferenceFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_tensorflow.tflite.file import TfliteFile
from tract_tensorflow.tflite.kept import wire_turn


class Variables:
    """What variables hold at one place of a graph.

    ``held``: by name, where that is in the model; ``assigned``: those that the graph assigned, in order; ``called``:
    the graphs that were called once.
    """

    def __init__(self) -> None:
        self.held: dict[str, OutletId] = {}
        self.assigned: dict[str, None] = {}
        self.called: set[int] = set()

    def value(self, name: str) -> OutletId:
        """What a variable holds. Raises CorruptModel where nothing was assigned to it."""
        if name not in self.held:
            raise CorruptModel(f"variable {name[:200]!r} is read before anything is assigned to it")
        return self.held[name]

    def assign(self, name: str, value: OutletId) -> None:
        """Let a variable hold something else from here on."""
        self.held[name] = value
        self.assigned[name] = None


@frozen
class KeepingGraph(InferenceOp):
    """A graph that assigns variables. Inputs: its own, and what its variables hold at first, by their names."""

    file: TfliteFile
    variables: tuple[str, ...]

    __eq__ = object.__eq__  # a file is itself alone
    __hash__ = object.__hash__

    def wire(self, model: TypedModel, name: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        """A loop of one iteration, which keeps what was assigned. Raises TractError."""
        from tract_tensorflow.tflite.graph import GraphReader

        untyped = InferenceModel(model.symbols, model.registry)
        untyped.limits = model.limits
        variables = Variables()
        reader = GraphReader(self.file, untyped, variables)
        facts = [InferenceFact.from_typed(model.outlet_fact(outlet).without_value()) for outlet in inputs]
        count = len(reader.inputs)
        reader.add_inputs(facts[:count])
        for variable, fact in zip(self.variables, facts[count:], strict=True):
            variables.held[variable] = untyped.add_source(f"variable {variable}", fact)
        variables.called = set(range(len(self.file.graphs)))
        reader.add_nodes()
        results = reader.results()
        kept = [variable for variable in self.variables if variable in variables.assigned]
        untyped.set_outputs([*results, *(variables.held[variable] for variable in kept)])
        body = into_body(untyped, model, f"node {name[:200]!r}")
        states = [count + self.variables.index(variable) for variable in kept]
        return wire_turn(model, name, body, inputs, states)
