"""Changes to a model that keep it together: names, types and shapes are changed wherever they stand, parts of one model
grow into another, and graphs move into branches, loops and functions.

What comes out is a model that could be meant, so that it gets far into the loader, where single changes rarely do.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator

import onnx
from onnx import AttributeProto, TensorProto, helper, numpy_helper

ODD_NAMES = ("a b", "a/b:0", "é", "[bold]x[/x]", "..", "{x}", "%s", "0", "None", "x" * 200, "i", "cond", "self")
TYPES = (1, 2, 3, 5, 6, 7, 9, 10, 11, 12, 13, 16, 8, 14, 17, 21, 22, 23)


def inner_graphs(node: onnx.NodeProto) -> Iterator[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def all_graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for inner in inner_graphs(node):
            yield from all_graphs(inner)


def rename(graph: onnx.GraphProto, names: dict[str, str]) -> None:
    """Give tensors other names wherever they stand."""
    for one in all_graphs(graph):
        for node in one.node:
            for slots in (node.input, node.output):
                slots[:] = [names.get(name, name) for name in slots]
        for named in (*one.input, *one.output, *one.value_info, *one.initializer):
            named.name = names.get(named.name, named.name)


def tensors(graph: onnx.GraphProto) -> list[str]:
    """The names of all tensors of the outermost graph."""
    found = [info.name for info in (*graph.input, *graph.initializer)]
    return [*dict.fromkeys([*found, *(name for node in graph.node for name in node.output if name)])]


def rename_tensor(model: onnx.ModelProto, chance: random.Random, others: list[onnx.ModelProto]) -> None:
    """One tensor gets an odd name."""
    names = tensors(model.graph)
    if names:
        rename(model.graph, {chance.choice(names): chance.choice(ODD_NAMES)})


def change_type(model: onnx.ModelProto, chance: random.Random, others: list[onnx.ModelProto]) -> None:
    """Every tensor of one element type has another one, in inputs, outputs, constants, and what casts to it."""
    kinds = {info.type.tensor_type.elem_type for info in model.graph.input} | {
        one.data_type for one in model.graph.initializer
    }
    if not kinds - {0}:
        return
    old, new = chance.choice(sorted(kinds - {0})), chance.choice(TYPES)
    for graph in all_graphs(model.graph):
        for info in (*graph.input, *graph.output, *graph.value_info):
            if info.type.tensor_type.elem_type == old:
                info.type.tensor_type.elem_type = new
        for tensor in graph.initializer:
            _retype(tensor, old, new)
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == AttributeProto.TENSOR:
                    _retype(attribute.t, old, new)
                elif attribute.name in ("to", "dtype") and attribute.i == old:
                    attribute.i = new


def _retype(tensor: TensorProto, old: int, new: int) -> None:
    if tensor.data_type != old or TensorProto.STRING in (old, new):
        return
    array = numpy_helper.to_array(tensor).astype(helper.tensor_dtype_to_np_dtype(new))
    changed = numpy_helper.from_array(array, tensor.name)
    changed.data_type = new
    tensor.CopyFrom(changed)


def change_sizes(model: onnx.ModelProto, chance: random.Random, others: list[onnx.ModelProto]) -> None:
    """One size becomes another one in every declaration, and in constants of integers that mention it."""
    sizes = sorted({dim.dim_value for info in model.graph.input for dim in info.type.tensor_type.shape.dim} - {0})
    if not sizes:
        return
    old, new = chance.choice(sizes), chance.choice((0, 1, 2, 3, 5, 17))
    for graph in all_graphs(model.graph):
        for info in (*graph.input, *graph.output, *graph.value_info):
            for dim in info.type.tensor_type.shape.dim:
                if dim.dim_value == old:
                    dim.dim_value = new
        for tensor in graph.initializer:
            if tensor.data_type == TensorProto.INT64 and tensor.int64_data:
                tensor.int64_data[:] = [new if value == old else value for value in tensor.int64_data]


def constants_become_inputs(model: onnx.ModelProto, chance: random.Random, others: list[onnx.ModelProto]) -> None:
    """A constant is given at run time instead."""
    if model.graph.initializer:
        place = chance.randrange(len(model.graph.initializer))
        tensor = model.graph.initializer[place]
        info = helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
        if all(one.name != tensor.name for one in model.graph.input):
            model.graph.input.append(info)
        del model.graph.initializer[place]


def graft(model: onnx.ModelProto, chance: random.Random, others: list[onnx.ModelProto]) -> None:
    """Another model grows behind this one: some of its inputs read tensors of it, its outputs are outputs too."""
    other = onnx.ModelProto()
    other.CopyFrom(chance.choice(others))
    here = tensors(model.graph)
    rename(other.graph, {name: f"graft.{name}" for name in tensors(other.graph)})
    joined = {info.name: chance.choice(here) for info in other.graph.input if here and chance.random() < 0.7}
    rename(other.graph, joined)
    known = {info.name for info in model.graph.input}
    model.graph.input.extend(info for info in other.graph.input if info.name not in joined.values() | known)
    model.graph.node.extend(other.graph.node)
    model.graph.initializer.extend(one for one in other.graph.initializer if one.name not in joined.values())
    model.graph.output.extend(other.graph.output)
    _add_versions(model, other.opset_import)


def _add_versions(model: onnx.ModelProto, more: Iterable[onnx.OperatorSetIdProto]) -> None:
    known = {opset.domain for opset in model.opset_import}
    model.opset_import.extend(opset for opset in more if opset.domain not in known)


def _taken_out(model: onnx.ModelProto, name: str) -> onnx.GraphProto:
    """All nodes of a model as a graph without inputs, whose outputs have names of their own."""
    inner = helper.make_graph(list(model.graph.node), name, [], list(model.graph.output))
    rename(inner, {info.name: f"{name}.{info.name}" for info in model.graph.output})
    del model.graph.node[:]
    return inner


def into_branch(model: onnx.ModelProto, chance: random.Random, others: list[onnx.ModelProto]) -> None:
    """The whole graph is computed in both branches of an If, whose condition is an input."""
    inner = _taken_out(model, "branch")
    names = [info.name for info in model.graph.output]
    model.graph.input.append(helper.make_tensor_value_info("branch.if", TensorProto.BOOL, []))
    model.graph.node.append(helper.make_node("If", ["branch.if"], names, then_branch=inner, else_branch=inner))


def into_loop(model: onnx.ModelProto, chance: random.Random, others: list[onnx.ModelProto]) -> None:
    """The whole graph is computed in a Loop; its outputs are collected, or the first of them is handed on."""
    inner = _taken_out(model, "loop")
    declared = [
        helper.make_tensor_value_info("loop.number", TensorProto.INT64, []),
        helper.make_tensor_value_info("loop.go", TensorProto.BOOL, []),
    ]
    inputs = ["loop.count", chance.choice(("", "loop.begin"))]
    if model.graph.input and chance.random() < 0.5:
        carried = chance.choice(model.graph.input)
        declared.append(onnx.ValueInfoProto(name=f"loop.in.{carried.name}"))
        rename(inner, {carried.name: f"loop.in.{carried.name}"})
        inputs.append(carried.name)
    inner.input.extend(declared)
    inner.node.append(helper.make_node("Identity", ["loop.go"], ["loop.on"]))
    inner.output.insert(0, helper.make_tensor_value_info("loop.on", TensorProto.BOOL, []))
    names = [info.name for info in model.graph.output]
    for info in model.graph.output:
        info.ClearField("type")
    model.graph.input.append(helper.make_tensor_value_info("loop.count", TensorProto.INT64, []))
    if inputs[1]:
        model.graph.input.append(helper.make_tensor_value_info("loop.begin", TensorProto.BOOL, []))
    model.graph.node.append(helper.make_node("Loop", inputs, names, body=inner))


def into_function(model: onnx.ModelProto, chance: random.Random, others: list[onnx.ModelProto]) -> None:
    """The whole graph is a function of the file, called once or twice."""
    inputs = [info.name for info in (*model.graph.input, *model.graph.initializer)]
    inputs = [*dict.fromkeys(inputs)]
    outputs = [info.name for info in model.graph.output]
    nodes = list(model.graph.node)
    model.functions.append(helper.make_function("fuzz", "whole", inputs, outputs, nodes, list(model.opset_import)))
    del model.graph.node[:]
    model.graph.node.append(helper.make_node("whole", inputs, outputs, domain="fuzz"))
    if chance.random() < 0.3:
        again = [f"again.{name}" for name in outputs]
        model.graph.node.append(helper.make_node("whole", inputs, again, domain="fuzz"))
    _add_versions(model, [helper.make_opsetid("fuzz", 1)])


def change_kind(model: onnx.ModelProto, chance: random.Random, others: list[onnx.ModelProto]) -> None:
    """An attribute becomes one of another kind, or is exchanged for one of another node."""
    nodes = [node for node in model.graph.node if node.attribute]
    if not nodes:
        return
    attribute = chance.choice(chance.choice(nodes).attribute)
    name = attribute.name
    given = [one for other in (model, chance.choice(others)) for node in other.graph.node for one in node.attribute]
    values = (0, [], [0], [1, 2], 0.5, [0.5], "x", ["x"], helper.make_tensor("t", 7, [1], [3]), chance.choice(given))
    value = chance.choice(values)
    if isinstance(value, AttributeProto):
        attribute.CopyFrom(value)
        attribute.name = name
    else:
        attribute.CopyFrom(helper.make_attribute(name, value, attr_type=AttributeProto.INTS if value == [] else None))


def swap_inputs(model: onnx.ModelProto, chance: random.Random, others: list[onnx.ModelProto]) -> None:
    """A node reads another tensor of the graph, or its inputs in another order."""
    nodes = [node for node in model.graph.node if node.input]
    if nodes:
        node = chance.choice(nodes)
        if chance.random() < 0.5:
            order = list(node.input)
            chance.shuffle(order)
            node.input[:] = order
        else:
            node.input[chance.randrange(len(node.input))] = chance.choice(tensors(model.graph))


GRAFTS = [
    rename_tensor,
    *(change_type,) * 2,
    change_sizes,
    constants_become_inputs,
    *(graft,) * 3,
    into_branch,
    *(into_loop,) * 2,
    into_function,
    *(change_kind,) * 2,
    *(swap_inputs,) * 2,
]
