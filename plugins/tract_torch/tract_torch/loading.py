"""From a module of PyTorch to a model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, cast

import torch
from torch.export.graph_signature import ConstantArgument, InputKind
from torch.utils import _pytree as pytree

from tract_core.api.model import Model
from tract_core.errors import InputError
from tract_core.limits import DEFAULT_LIMITS, LoadLimits
from tract_core.model.typed import TypedModel
from tract_core.plugins import default_registry
from tract_torch.capture.decomposing import decomposed
from tract_torch.capture.dynamic import symbol_names
from tract_torch.capture.exporting import FREE, READ, SYMBOLS, exported_program, quantised_in
from tract_torch.capture.refusals import check_module
from tract_torch.naming import check_count, key_text
from tract_torch.pt2 import load_program
from tract_torch.weights.held import Weights, weights_in_place
from tract_torch.wiring.lowering import Lowering, StatesOption
from tract_torch.wiring.program import Program, with_constants


def load(
    module: torch.nn.Module | torch.export.ExportedProgram | str | os.PathLike[str],
    args: Sequence[Any] | torch.Tensor = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    keep_parameters: bool = False,
    states: StatesOption = "refuse",
    weights: Weights | None = None,
) -> Model:
    """The model of a module, as it computes in evaluation mode, or of an exported program; in normal form.

    ``module``: one of these, or the path of a file that `torch.export.save` wrote.

    ``args``, ``kwargs``: what the module is called with in the example. ``dynamic_shapes``: which of their sizes may be
    others, as `torch.export.export` takes it; symbols have the names that are given there. ``input_names``,
    ``output_names``: those of the model; by default inputs have the names of the arguments, outputs those of the keys
    under which they are returned, or ``output_0`` and so on. Weights are shared with the module, which stays as it is.

    ``keep_parameters``: parameters, and buffers of floats, are constants of the names that they have in the module,
    with nothing folded into them, as batch normalisation is into convolutions, so others can take their place.

    ``weights``: those to load in the place of the module's own, as of one on the device ``meta``: a mapping of names to
    tensors, or a ``.safetensors`` or ``.pt`` file, which is mapped into memory, not read, and has to stay as it is.

    ``states``: what becomes of buffers that the module changes while it is called, as a counter or a cache. "refuse"
    names them. With "inputs" each of them is an input of the model, of its name, and an output ``NAME_out``: whoever
    runs the model hands it from turn to turn. With "inside" a running model keeps them, from the values in the module
    on. What the module changes of its arguments is an output ``NAME_out`` with "inputs", and refused else.

    Raises InputError for what is no module, and for arguments and shapes that do not fit it; MissingOperator, naming
    all that is missing; Unsupported for what `torch.export` refuses, and ModelError for what cannot be wired.
    """
    if isinstance(module, (str, os.PathLike)):
        module = load_program(module)
    lowering = Lowering(keep_parameters=keep_parameters, states=states)
    if isinstance(module, torch.export.ExportedProgram):
        if weights is not None:
            raise InputError("an ExportedProgram has its own weights", hint="export the module with them")
        return model_of(module, dynamic_shapes, input_names, output_names, lowering)
    if not isinstance(cast("object", module), torch.nn.Module | type):
        raise InputError(f"wanted a torch.nn.Module, an ExportedProgram or a path, got {type(module).__name__}")
    check_module(module)
    with weights_in_place(module, weights):
        program = exported_program(module, args, kwargs, dynamic_shapes)
        return model_of(program, dynamic_shapes, input_names, output_names, lowering)


def model_of(
    exported: torch.export.ExportedProgram,
    dynamic_shapes: Any = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    lowering: Lowering | None = None,
) -> Model:
    """The model of an exported program, in normal form.

    ``dynamic_shapes``: what it was exported with, where symbols have the names in it. ``input_names``,
    ``output_names``: one per tensor. Raises as `load` does.
    """
    program = program_of(exported, dynamic_shapes, input_names, output_names, lowering)
    return Model(with_constants(program.states.kept_inside(program.model).declutter(), program.kept))


def program_of(
    exported: torch.export.ExportedProgram,
    dynamic_shapes: Any = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    lowering: Lowering | None = None,
) -> Program:
    """An exported program with its model as it was wired, not simplified yet. Arguments are those of `model_of`."""
    registry, held = default_registry(), quantised_in(exported)
    names = exported.graph_module.meta.get(SYMBOLS) or _symbol_names(exported, dynamic_shapes)
    free, read = (exported.graph_module.meta.get(key, ()) for key in (FREE, READ))
    exported = decomposed(exported, registry)
    if input_names is not None:
        check_count(input_names, _input_count(exported), "input")
    if output_names is not None:
        check_count(output_names, len(exported.graph_signature.user_outputs), "output")
    program = Program(exported, names, registry, lowering or Lowering(), held, free=free, read=read)
    program.typed(input_names, output_names or _output_names(exported))
    return program


def _input_count(program: torch.export.ExportedProgram) -> int:
    """How many tensors a program is called with."""
    given = (spec for spec in program.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT)
    return sum(not isinstance(spec.arg, ConstantArgument) for spec in given)


def _symbol_names(program: torch.export.ExportedProgram, dynamic_shapes: Any) -> dict[str, str]:
    """What the symbols of the program are called, where whoever exported it gave them names."""
    named: dict[str, str] = {}
    leaves = pytree.tree_leaves(dynamic_shapes, is_leaf=_is_spec)
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    inputs = [nodes[name] for name in program.graph_signature.user_inputs if isinstance(name, str) and name in nodes]
    for node, spec in zip(inputs, leaves, strict=False):
        axes = spec.items() if isinstance(spec, dict) else enumerate(spec or ())
        for axis, dim in axes:
            size = node.meta["val"].shape[axis]
            expression: Any = size.node.expr if isinstance(size, torch.SymInt) else None
            if expression is not None and expression.is_Symbol and isinstance(dim, torch.export.Dim):
                named[expression.name] = dim.__name__
    return {**symbol_names(program, []), **named}


def _is_spec(value: Any) -> bool:
    """Whether this says which axes of one tensor are dynamic."""
    if isinstance(value, dict):
        return all(isinstance(key, int) for key in cast("dict[Any, Any]", value))
    if isinstance(value, (list, tuple)):
        items = cast("Sequence[Any]", value)
        return bool(items) and not any(isinstance(one, (dict, list, tuple)) for one in items)
    return True


def _output_names(program: torch.export.ExportedProgram) -> list[str]:
    """Outputs by the keys under which they are returned, ``output_0`` and so on where there are none."""
    spec = program.module_call_graph[0].signature
    count = len(program.graph_signature.user_outputs)
    places = pytree.tree_unflatten(range(count), spec.out_spec) if spec is not None else list(range(count))
    named: dict[int, str] = {}
    for path, place in pytree.tree_flatten_with_path(places)[0]:
        keys = [key_text(key) for key in path]
        named[place] = "_".join(keys) if keys and not keys[0].isdigit() else "_".join(["output", *(keys or ["0"])])
    return [named[place] for place in range(count)]


class Pt2:
    """The format of ``.pt2`` files. ``limits``: what a file may ask for."""

    def __init__(self, *, limits: LoadLimits = DEFAULT_LIMITS) -> None:
        self._limits = limits

    def load(self, path: str | os.PathLike[str]) -> TypedModel:
        """The model in a file, not simplified yet. Raises ModelError, with the file's name."""
        return program_of(load_program(path, self._limits)).model

    def load_object(self, given: Any) -> TypedModel:
        """The model of an exported program, not simplified yet. Raises InputError for a module, which needs more."""
        if isinstance(given, torch.export.ExportedProgram):
            return program_of(given).model
        hint = "tract_torch.load(module, args) makes a model of it, where args are what it is called with in an example"
        raise InputError("a module of PyTorch does not say what it is called with", hint=hint)
