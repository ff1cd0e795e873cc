"""Buffers of a program that share memory, or that change their shapes: what PyTorch cannot decompose of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import torch
from torch.export.graph_signature import InputKind
from torch.fx import Node


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
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    state: Mapping[str, torch.Tensor] = program.state_dict
    for spec in list(program.graph_signature.input_specs):
        name = str(spec.target)
        held = state.get(name, program.constants.get(name))
        if spec.kind is InputKind.BUFFER and isinstance(held, torch.Tensor) and held.data_ptr():
            yield name, nodes[spec.arg.name], held
