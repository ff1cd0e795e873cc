"""PyTorch as a partner of ``tract MODEL compare --with torch``: it runs a file of `torch.export.save`, node by node."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.fx import Interpreter, Node

from tract_core.data import widened
from tract_core.errors import InputError, RunError
from tract_core.plugins import Rows
from tract_core.plugins.keys import PARTNERS, Array
from tract_torch.loading import program_of
from tract_torch.naming import plain
from tract_torch.pt2 import load_program
from tract_torch.tensors import array_of, datum_type, tensor_of
from tract_torch.wiring.program import Program

ROWS = Rows()


@ROWS.row(PARTNERS, "torch")
def run_in_torch(path: Path, inputs: Mapping[str, Array], options: object = None) -> Mapping[str, Array]:
    """Every tensor that the operators of PyTorch compute, by its name in the model, and as archives spell it.

    Raises InputError for a file that is no ``.pt2``, and for a missing input, ModelError, RunError.
    """
    if path.suffix != ".pt2":
        problem = "PyTorch runs files of torch.export.save, which are called *.pt2"
        raise InputError(problem, where=str(path), hint="name the one that MODEL was made from with --original")
    program = program_of(load_program(path))
    run = _Run(program, _given(program, inputs, path))
    named = {
        program.model.outlet_name(outlet): run.kept[node]
        for node, outlet in program.outlets.items()
        if node in run.kept
    }
    return {plain(name): array for name, array in named.items()} | named


def _given(program: Program, inputs: Mapping[str, Array], path: Path) -> list[Any]:
    """What the graph of the program takes: what the module holds, and the inputs in their places."""
    model, outlets = program.model, program.outlets
    wanted = {node: model.outlet_name(outlet) for node, outlet in outlets.items() if outlet in model.inputs}
    missing = [name for name in wanted.values() if name not in inputs]
    if missing:
        raise InputError(f"the program wants the inputs {', '.join(missing)}, which have no value", where=str(path))
    placeholders = [node for node in program.exported.graph.nodes if node.op == "placeholder"]
    held = program.arguments([torch.empty(0)] * len(placeholders), {})
    pairs = zip(placeholders, held, strict=True)
    return [_input(node, inputs[wanted[node]]) if node in wanted else value for node, value in pairs]


def _input(node: Node, array: Array) -> torch.Tensor:
    """An input in the type that the program wants, where that is a wider float."""
    return tensor_of(widened(np.asarray(array), datum_type(node.meta["val"].dtype).numpy))


class _Run(Interpreter):
    """A run of a program, and what its nodes gave. Raises RunError."""

    def __init__(self, program: Program, arguments: list[Any]) -> None:
        super().__init__(program.exported.graph_module)
        self.kept: dict[Node, Array] = {}
        try:
            with torch.no_grad(), torch.random.fork_rng([]):
                self.run(*arguments)
        except Exception as error:
            text = " ".join(str(error).split())[:300]
            raise RunError(f"PyTorch fails: {type(error).__name__}: {text}") from error

    def run_node(self, n: Node) -> Any:
        """As PyTorch does; a copy, as a later node may write into what it gave."""
        found = super().run_node(n)
        if isinstance(found, torch.Tensor):
            self.kept[n] = array_of(found.clone())
        return found
