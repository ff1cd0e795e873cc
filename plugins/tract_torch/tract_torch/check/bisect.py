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
from torch.fx import Interpreter, Node
from torch.utils import _pytree as pytree

import tract_core as tract
from tract_core.dims import is_symbolic
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.runtime.binding import bind_inputs
from tract_core.runtime.parts import Part
from tract_core.runtime.protocol import ObservablePlan, Plan, running_model
from tract_torch.capture.exporting import exported_program
from tract_torch.check.eager import as_array, outputs_of
from tract_torch.check.report import CheckReport
from tract_torch.check.tolerance import Difference, TractCheckTolerance, difference
from tract_torch.example import Example
from tract_torch.loading import program_of
from tract_torch.naming import VariableNamingScheme, node_name, plain
from tract_torch.tensors import array_of
from tract_torch.wiring.graph import computing, module_of, source_of
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
    examples: tuple[Example, Example],
    report: CheckReport,
    inputs: Sequence[str],
    lowering: Lowering | None = None,
) -> Culprit | None:
    """The first node that gives something else than PyTorch.

    ``examples``: what the archive was made with, and the inputs at which it differs. ``report``: says which archive it
    is, the tolerance and the runtime. ``inputs``: which tensor of the example each input of the archive is.
    ``lowering``: how the archive was made; the names in it tell how tensors were called. ``None`` where every stage
    gives what the module does.
    """
    runtime, tolerance = report.runtime, report.tolerance
    loaded = tract.load(report.archive).typed
    facts = {name: loaded.outlet_fact(outlet) for name, outlet in zip(inputs, loaded.inputs, strict=True)}
    written = {loaded.outlet_name(outlet) for node in loaded.live_nodes() for outlet in node.outlets()}
    program = _program(model, examples, facts, lowering or Lowering(), written)
    tensors = examples[1].tensors()
    search = _Search(program, list(tensors.values()), tolerance)
    names = [loaded.outlet_name(outlet) for outlet in loaded.outputs]
    wanted = outputs_of(model, examples[1])
    found = search.differing(names, search.outputs(), wanted)
    if found is not None:
        return Culprit("exported by PyTorch", found)
    for stage, made, where in _stages(program, loaded, runtime):
        plan = tract.runtime_for_name(where).backend.prepare(made)
        arrays = [array_of(tensors[name]) for name in (inputs if made is loaded else tensors)]
        given = [np.array(one) for one in plan.spawn().run(arrays)]
        found = search.differing(names, given, wanted)
        if found is not None:
            title = f"{stage}, on {where}"
            return search.culprit(title, made, plan, arrays) or Culprit(title, found)
    return None


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
            found = [program.model.outlet_fact(outlet) for outlet in program.model.inputs]
            bind_inputs(other.names, found, [array_of(one) for one in other.tensors().values()])
            return program
    exported = exported_program(model, other.args, other.keywords, None)
    return program_of(exported, lowering=_like_the_archive(exported, lowering, written))


def _like_the_archive(exported: torch.export.ExportedProgram, lowering: Lowering, written: Collection[str]) -> Lowering:
    """The way that the program becomes a model, in which tensors are called as most of the names in the archive are."""

    def found(scheme: VariableNamingScheme) -> int:
        return len({plain(node_name(node, scheme)) for node in computing(exported.graph_module)}.intersection(written))

    schemes = sorted(VariableNamingScheme, key=lambda scheme: scheme is not lowering.naming)
    return replace(lowering, keep_parameters=False, naming=max(schemes, key=found))


class _Search:
    """A program with the inputs at which something differs."""

    def __init__(self, program: Program, tensors: Sequence[torch.Tensor], tolerance: TractCheckTolerance) -> None:
        self.program = program
        self.tensors = tensors
        self.tolerance = tolerance

    def outputs(self) -> list[Array]:
        """What the program gives by PyTorch's operators."""
        found = pytree.tree_leaves(_Run(self.program, self.tensors).result)
        return [as_array(one) for one in found if one is not None]

    def differing(self, names: Sequence[str], found: Sequence[Array], wanted: Sequence[Array]) -> Difference | None:
        """The first output that differs."""
        pairs = zip(names, found, wanted, strict=True)
        differences = (difference(name, one, other, self.tolerance) for name, one, other in pairs)
        return next((one for one in differences if one.problem), None)

    def culprit(self, stage: str, model: TypedModel, plan: Plan, arrays: Sequence[Array]) -> Culprit | None:
        """The first node whose tensor differs in a model: by itself, else where differences add up."""
        if not isinstance(plan, ObservablePlan):
            return None
        nodes = self._by_name(running_model(plan, model))
        for adds_up in (False, True):
            for piece in self._pieces({node for several in nodes.values() for node in several}):
                wanted = _Run(self.program, self.tensors, piece).kept
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

    def __init__(self, program: Program, tensors: Sequence[torch.Tensor], keep: Collection[Node] = ()) -> None:
        super().__init__(program.exported.graph_module)
        self._keep = frozenset(keep)
        self.kept: dict[Node, Array] = {}
        with torch.no_grad(), torch.random.fork_rng([]):
            self.result = self.run(*program.arguments(tensors))

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
    path, kind = module_of(node) or (None, None)
    return Culprit(stage, wrong, node.name, str(node.target), path, kind, source_of(node), adds_up)


def _bytes_of(node: Node) -> int:
    """Of its tensor, with the sizes of the example."""
    found = node.meta["val"]
    return (
        math.prod(int(size.node.hint if isinstance(size, torch.SymInt) else size) for size in found.shape)
        * found.itemsize
    )
