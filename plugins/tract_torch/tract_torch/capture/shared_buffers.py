"""Buffers of a program that change, share memory, or change their shapes: what PyTorch cannot decompose of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import torch
from torch.export.graph_signature import InputKind
from torch.fx import Node
from torch.utils import _pytree as pytree


def let_be_one(program: torch.export.ExportedProgram) -> None:
    """Let buffers that are the same tensor under several names be one input of a program, which is changed in place.

    PyTorch cannot decompose a program that writes into one of them while they are several.
    """
    first: dict[object, Node] = {}
    for name, node, held in list(_buffers(program)):
        place = held.data_ptr(), held.dtype, held.shape, held.stride()
        other = first.setdefault(place, node)
        if other is not node:
            node.replace_all_uses_with(other)
            program.graph.erase_node(node)
            specs = program.graph_signature.input_specs
            specs[:] = [spec for spec in specs if spec.target != name]
    program.graph_module.recompile()


def changed(program: torch.export.ExportedProgram) -> dict[str, torch.Tensor]:
    """The buffers and other tensors that a program writes into, itself or by a view, by name; not decomposed yet."""
    written: set[Node] = set()
    for node in reversed(program.graph.nodes):
        schema = getattr(node.target, "_schema", None)
        for place, argument in enumerate(schema.arguments if schema is not None else ()):
            shared = argument.alias_info
            given = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
            if shared is not None and (shared.is_write or node in written):
                written |= {one for one in pytree.tree_leaves(given) if isinstance(one, Node)}
    return {name: held for name, node, held in _held(program) if node in written}


def obstacle(program: torch.export.ExportedProgram, reason: str) -> tuple[str, str] | None:
    """What keeps PyTorch from decomposing a program that changes what it holds, and what to do; None where it is else.

    ``reason``: what PyTorch says.
    """
    attribute = re.search(r"Constant (\S+) is mutated in the forward", reason)
    if attribute is not None:
        hint = f"register it as a buffer: self.register_buffer({attribute[1].rpartition('.')[2]!r}, tensor)"
        return f"the module changes the tensor {attribute[1]!r}, which is no buffer", hint
    nodes = {node: name for name, node, _ in _buffers(program)}
    for node in program.graph.find_nodes(op="call_function", target=torch.ops.aten.copy_.default):
        into, value = node.args[:2]
        if into in nodes and isinstance(value, Node) and _larger(value.meta["val"], into.meta["val"]):
            before, after = (list(one.meta["val"].shape) for one in (into, value))
            problem = f"the buffer {nodes[into]!r} is of the shape {before} before a call and of {after} after it"
            return problem, "its shape has to stay: write into a buffer that is large enough"
    owners: dict[int, str] = {}
    for name, _, held in _buffers(program):
        other = owners.setdefault(held.untyped_storage().data_ptr(), name)
        if other != name:
            hint = "let one buffer be what is held, and compute the others of it in forward"
            return f"the buffers {other!r} and {name!r} share memory, and one of them changes", hint
    return None


def _larger(value: torch.Tensor, into: torch.Tensor) -> bool:
    """Whether a value does not fit, even where it is stretched."""
    pairs = zip(reversed(value.shape), reversed(into.shape), strict=False)
    other = (isinstance(size, torch.SymInt) or size not in (1, own) for size, own in pairs)
    return value.dim() > into.dim() or any(other)


def _buffers(program: torch.export.ExportedProgram) -> Iterator[tuple[str, Node, torch.Tensor]]:
    """The buffers that a program takes and that have memory: names, nodes and tensors."""
    buffers = {str(spec.target) for spec in program.graph_signature.input_specs if spec.kind is InputKind.BUFFER}
    return (one for one in list(_held(program)) if one[0] in buffers and one[2].data_ptr())


def _held(program: torch.export.ExportedProgram) -> Iterator[tuple[str, Node, torch.Tensor]]:
    """What a program takes of the module's own: names, nodes and tensors."""
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    state: Mapping[str, torch.Tensor] = program.state_dict
    for spec in program.graph_signature.input_specs:
        name = str(spec.target)
        held = state.get(name, program.constants.get(name))
        if spec.kind is not InputKind.USER_INPUT and isinstance(held, torch.Tensor):
            yield name, nodes[spec.arg.name], held
