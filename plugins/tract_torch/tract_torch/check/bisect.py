"""Where an archive goes wrong: the first module of PyTorch whose output differs, and the stage of the way that did it.

The exported program is run node by node, by PyTorch's operators, and its model beside it: as it was wired, on the
`reference` and on the other runtime; simplified; and read back from the archive. The first of these whose outputs
differ is looked at tensor by tensor. Each node gets PyTorch's tensors as inputs, so that only what is wrong differs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import numpy as np
import torch
from torch.export.graph_signature import OutputKind
from torch.fx import Interpreter, Node

import tract_core as tract
from tract_core.dims import is_symbolic
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.runtime.misfits import bind_inputs
from tract_core.runtime.parts import Part
from tract_core.runtime.protocol import ObservablePlan, Plan, running_model
from tract_torch.capture.exporting import exported_program
from tract_torch.check.eager import Start, as_array, turn_of
from tract_torch.check.interface import Interface, held_tensors
from tract_torch.example import Example
from tract_torch.loading import program_of
from tract_torch.naming import VariableNamingScheme, node_name, plain
from tract_torch.report import CheckReport
from tract_torch.tensors import array_of
from tract_torch.tolerance import Difference, TractCheckTolerance, difference
from tract_torch.wiring.graph import computing, origin_of, source_of
from tract_torch.wiring.lowering import Lowering
from tract_torch.wiring.program import Program

Array = np.ndarray[Any, Any]

AT_ONCE: Final = 1 << 28
"""Bytes of tensors of PyTorch that are held at once, unless a single one takes more."""


@frozen
class Culprit:
    """What differs first. ``stage``: on the way from the module to the archive; ``tensor``: how it differs there.

    ``node``, ``operator``, ``module``, ``kind``, ``source``: that of the exported program which yields it, the path and
    the class of the module that it is from, and the line of source; ``None`` where that is not known. ``adds_up``: no
    node is wrong by itself, the differences of several become too large here.
    """

    stage: str
    tensor: Difference
    node: str | None = None
    operator: str | None = None
    module: str | None = None
    kind: str | None = None
    source: str | None = None
    adds_up: bool = False

    def __str__(self) -> str:
        if self.node is None:
            return f"{self.stage}: no node of the module could be told, {self.tensor.name!r} differs"
        module = f"in module {self.module!r} ({self.kind})" if self.module else "in the module itself"
        source = f", {self.source}" if self.source else ""
        how = "differences of several nodes become too large" if self.adds_up else "the first that differs is"
        what = f"{self.node!r} ({self.operator})"
        return f"{self.stage}: {how} {module}, node {what}{source}: {self.tensor.problem}"


def first_difference(
    model: torch.nn.Module,
    example: Example,
    starts: Sequence[Start],
    report: CheckReport,
    interface: Interface,
    *,
    lowering: Lowering | None = None,
) -> Culprit | None:
    """The first node that gives something else than PyTorch.

    ``example``: what the archive was made with. ``starts``: what the calls in a row start from, of which the last is
    the one where it differs. ``report``: says which archive it is, the tolerance and the runtime. ``interface``: what
    the inputs of the archive are. ``lowering``: how the archive was made; the names in it tell how tensors were called.
    ``None`` where every stage gives what the module does.
    """
    loaded = tract.load(report.archive).typed
    facts = {name: loaded.outlet_fact(outlet) for name, outlet in zip(interface.inputs, loaded.inputs, strict=True)}
    written = {loaded.outlet_name(outlet) for node in loaded.live_nodes() for outlet in node.outlets()}
    symbolic = {argument: facts[name] for name, argument in interface.arguments.items()}
    program = _program(model, (example, starts[-1].example), symbolic, lowering or Lowering(), written)
    turns = [_Turn.of(model, program, start, interface, report.tolerance) for start in starts]
    for turn in turns:
        found = turn.search.differing(turn.search.outputs(), turn.all)
        if found is not None:
            return Culprit("exported by PyTorch", found)
    for stage, made, where in _stages(program, loaded, report.runtime):
        plan = tract.runtime_for_name(where).backend.prepare(made)
        state = plan.spawn()
        for turn in turns:
            arrays, wanted = (turn.given, turn.wanted) if made is loaded else (turn.arrays, turn.all)
            found = turn.search.differing([np.array(one) for one in state.run(arrays)], wanted)
            if found is not None:
                title = f"{stage}, on {where}"
                return turn.search.culprit(title, made, plan, arrays) or Culprit(title, found)
    return None


@frozen
class _Turn:
    """One of some calls in a row.

    ``arrays``: what the program's model is called with, which takes buffers that change; ``all``: what it has to give,
    by name. ``given``, ``wanted``: the same for the archive, which may keep them itself.
    """

    search: _Search
    arrays: Sequence[Array]
    all: Mapping[str, Array]
    given: Sequence[Array]
    wanted: Mapping[str, Array]

    @staticmethod
    def of(
        model: torch.nn.Module, program: Program, start: Start, interface: Interface, level: TractCheckTolerance
    ) -> _Turn:
        whole = _interface(program, interface)
        start = replace(start, held=held_tensors(model, whole.held.values()) | dict(start.held))
        turn = turn_of(model, start)
        wanted = [dict(zip(one.outputs, one.wanted(start, turn), strict=True)) for one in (whole, interface)]
        return _Turn(_Search(program, start, level), whole.given(start), wanted[0], interface.given(start), wanted[1])


def _interface(program: Program, archive: Interface) -> Interface:
    """That of the model of a program, whose results are called as in an archive."""
    model = program.model
    names = [model.outlet_name(outlet) for outlet in model.inputs]
    count = len(archive.arguments)
    results = len(model.outputs) - len(program.states.changes())
    after = [model.outlet_name(outlet) for outlet in model.outputs[results:]]
    arguments = dict(zip(names, archive.arguments.values(), strict=False))
    return Interface.of(arguments, {name: name for name in names[count:]}, [*archive.outputs[:results], *after])


def _stages(program: Program, loaded: TypedModel, runtime: str) -> Iterator[tuple[str, TypedModel, str]]:
    """Each model on the way, with the runtime to run it on."""
    for where in dict.fromkeys(("reference", runtime)):
        yield "as it was imported", program.model, where
    yield "simplified", program.model.clone().declutter(), runtime
    yield "read back from the archive", loaded, runtime


def _program(
    model: torch.nn.Module,
    examples: tuple[Example, Example],
    facts: Mapping[str, TypedFact],
    lowering: Lowering,
    written: Collection[str],
) -> Program:
    """The program, exported with the sizes dynamic that are so in the archive; if that cannot be, with these sizes.

    Its tensors are called as in the archive, whose names are ``written``.
    """
    example, other = examples
    auto = torch.export.Dim.AUTO
    free = [
        {axis: auto for axis, dim in enumerate(facts[name].shape if name in facts else ()) if is_symbolic(dim)}
        for name in example.names
    ]
    if any(free):
        with suppress(Exception):  # whatever is against it, there is another way
            shapes = example.shaped([axes or None for axes in free])
            exported = exported_program(model, example.args, example.keywords, shapes)
            program = program_of(exported, lowering=_like_the_archive(exported, lowering, written))
            found = [program.model.outlet_fact(outlet) for outlet in program.model.inputs[: len(other.names)]]
            bind_inputs(other.names, found, [array_of(one) for one in other.tensors().values()])
            return program
    exported = exported_program(model, other.args, other.keywords, None)
    return program_of(exported, lowering=_like_the_archive(exported, lowering, written))


def _like_the_archive(exported: torch.export.ExportedProgram, lowering: Lowering, written: Collection[str]) -> Lowering:
    """The way that the program becomes a model, in which tensors are called as most of the names in the archive are."""

    def found(scheme: VariableNamingScheme) -> int:
        return len({plain(node_name(node, scheme)) for node in computing(exported.graph_module)}.intersection(written))

    schemes = sorted(VariableNamingScheme, key=lambda scheme: scheme is not lowering.naming)
    return replace(lowering, keep_parameters=False, states="inputs", naming=max(schemes, key=found))


class _Search:
    """A program with the inputs at which something differs."""

    def __init__(self, program: Program, start: Start, tolerance: TractCheckTolerance) -> None:
        self.program = program
        self.start = start
        self.tolerance = tolerance

    def outputs(self) -> list[Array]:
        """What the program gives by PyTorch's operators, in the order of the outputs of its model."""
        run = _Run(self.program, self.start)
        found: Sequence[Any] = run.result
        specs = self.program.exported.graph_signature.output_specs
        results = [one for one, spec in zip(found, specs, strict=True) if spec.kind is OutputKind.USER_OUTPUT]
        changes = [found[place] for place, _ in self.program.states.changes()]
        return [as_array(one) for one in (*results, *changes) if one is not None]

    def differing(self, found: Sequence[Array], wanted: Mapping[str, Array]) -> Difference | None:
        """The first output that differs. ``wanted``: by name."""
        pairs = zip(wanted.items(), found, strict=True)
        differences = (difference(name, one, other, self.tolerance) for (name, other), one in pairs)
        return next((one for one in differences if one.problem), None)

    def culprit(self, stage: str, model: TypedModel, plan: Plan, arrays: Sequence[Array]) -> Culprit | None:
        """The first node whose tensor differs in a model: by itself, else where differences add up."""
        if not isinstance(plan, ObservablePlan):
            return None
        nodes = self._by_name(running_model(plan, model))
        for adds_up in (False, True):
            for piece in self._pieces({node for several in nodes.values() for node in several}):
                wanted = _Run(self.program, self.start, piece).kept
                watch = _Watch(running_model(plan, model), nodes, wanted, self.tolerance, correct=not adds_up)
                plan.spawn_observed(watch).run(list(arrays))
                wrong = [node for node in piece if node in watch.wrong]
                if wrong:
                    return _culprit(stage, wrong[0], watch.wrong[wrong[0]], adds_up)
        return None

    def _by_name(self, model: TypedModel) -> dict[str, list[Node]]:
        """The nodes of the program, in order, by the name that their tensor has in a model made of it."""
        named: dict[str, list[Node]] = {}
        for node, outlet in self.program.outlets.items():
            named.setdefault(self.program.model.outlet_name(outlet), []).append(node)
        written = {plain(name): nodes for name, nodes in named.items()}
        there = {model.outlet_name(outlet) for node in model.live_nodes() for outlet in node.outlets()}
        return {name: nodes for name, nodes in (written | named).items() if name in there}

    def _pieces(self, nodes: Collection[Node]) -> Iterator[list[Node]]:
        """Nodes whose tensors are held at once, in order."""
        piece: list[Node] = []
        held = 0
        for node in (one for one in self.program.exported.graph.nodes if one in nodes):
            size = _bytes_of(node)
            if piece and held + size > AT_ONCE:
                yield piece
                piece, held = [], 0
            piece.append(node)
            held += size
        if piece:
            yield piece


class _Run(Interpreter):
    """A run of a program by PyTorch's operators: ``result``, and what the nodes gave that are to be ``kept``."""

    def __init__(self, program: Program, start: Start, keep: Collection[Node] = ()) -> None:
        super().__init__(program.exported.graph_module)
        self._keep = frozenset(keep)
        self.kept: dict[Node, Array] = {}
        with torch.no_grad(), torch.random.fork_rng([]):
            self.result = self.run(*program.arguments(list(start.example.tensors().values()), start.held))

    def run_node(self, n: Node) -> Any:
        """As PyTorch does."""
        found = super().run_node(n)
        if n in self._keep and isinstance(found, torch.Tensor):
            self.kept[n] = array_of(found.clone())
        return found


class _Watch:
    """Looks at what a model gives beside what was wanted. ``correct``: what is wrong does not go on being so."""

    def __init__(
        self,
        model: TypedModel,
        nodes: Mapping[str, Sequence[Node]],
        wanted: Mapping[Node, Array],
        tolerance: TractCheckTolerance,
        *,
        correct: bool,
    ) -> None:
        self.wrong: dict[Node, Difference] = {}
        self._model, self._nodes, self._wanted = model, nodes, wanted
        self._tolerance, self._correct = tolerance, correct

    def __call__(self, part: Part, outputs: Mapping[OutletId, Array]) -> Mapping[OutletId, Array]:
        """The tensors that take the places of these."""
        others: dict[OutletId, Array] = {}
        for outlet, found in outputs.items() if not part.body else ():
            for node in self._nodes.get(self._model.outlet_name(outlet), ()):
                wanted = self._wanted.get(node)
                if wanted is None or (found.dtype, found.shape) != (wanted.dtype, wanted.shape):
                    continue  # what was simplified may have another form
                one = difference(node.name, found, wanted, self._tolerance)
                if one.problem:
                    self.wrong[node] = one
                if self._correct:
                    others[outlet] = wanted
        return others


def _culprit(stage: str, node: Node, wrong: Difference, adds_up: bool) -> Culprit:
    path, kind = origin_of(node) or (None, None)
    return Culprit(stage, wrong, node.name, str(node.target), path, kind, source_of(node), adds_up)


def _bytes_of(node: Node) -> int:
    """Of its tensor, with the sizes of the example."""
    found = node.meta["val"]
    return (
        math.prod(int(size.node.hint if isinstance(size, torch.SymInt) else size) for size in found.shape)
        * found.itemsize
    )
