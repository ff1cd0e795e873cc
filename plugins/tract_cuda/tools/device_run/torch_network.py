"""A network of the bench as a module of PyTorch, node by node, so that both compute the same with the same weights.

Where several nodes are one operator of PyTorch, as those of attention or of a norm, its compiler gets them apart, as
ours does.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import torch
from onnx import numpy_helper
from torch.nn import functional

Given = Sequence[Any]
Row = Callable[[Given, Mapping[str, Any]], Any]


def _conv(x: Given, a: Mapping[str, Any]) -> Any:
    image, weight, *bias = x
    rank = image.dim() - 2
    pads = a.get("pads", [0] * 2 * rank)
    options = {"stride": a.get("strides", [1] * rank), "dilation": a.get("dilations", [1] * rank)}
    if pads[:rank] == pads[rank:]:
        options["padding"] = pads[:rank]
    else:
        image = functional.pad(image, _pads(pads))
    kind = (functional.conv1d, functional.conv2d, functional.conv3d)[rank - 1]
    return kind(image, weight, *bias, groups=a.get("group", 1), **options)


def _pads(pads: Sequence[int]) -> list[int]:
    """From all begins, then all ends, to pairs from the last axis on."""
    rank = len(pads) // 2
    return [pads[axis + end * rank] for axis in reversed(range(rank)) for end in (0, 1)]


def _deconv(x: Given, a: Mapping[str, Any]) -> Any:
    image, weight, *bias = x
    assert not any(a.get("pads", ())), "no network here has pads"
    return functional.conv_transpose2d(image, weight, *bias, stride=a.get("strides", [1, 1]))


def _max_pool(x: Given, a: Mapping[str, Any]) -> Any:
    (image,) = x
    pads = a.get("pads", [0, 0, 0, 0])
    image = functional.pad(image, _pads(pads), value=float("-inf")) if any(pads) else image
    return functional.max_pool2d(image, a["kernel_shape"], a.get("strides", [1, 1]))


def _reshape(x: Given, a: Mapping[str, Any]) -> Any:
    tensor, shape = x
    return tensor.reshape([tensor.shape[axis] if size == 0 else size for axis, size in enumerate(shape)])


def _slice(x: Given, a: Mapping[str, Any]) -> Any:
    tensor, begins, ends, *rest = x
    axes = rest[0] if rest else range(len(begins))
    where = [slice(None)] * tensor.dim()
    for axis, begin, end in zip(axes, begins, ends, strict=True):
        where[axis] = slice(begin, min(end, tensor.shape[axis]))
    return tensor[tuple(where)]


def _gather(x: Given, a: Mapping[str, Any]) -> Any:
    table, numbers = x
    axis = a.get("axis", 0)
    found = torch.index_select(table, axis, numbers.reshape(-1).to(table.device))
    return found.reshape([*table.shape[:axis], *numbers.shape, *table.shape[axis + 1 :]])


def _unsqueeze(x: Given, a: Mapping[str, Any]) -> Any:
    found = x[0]
    for axis in sorted(x[1]):
        found = found.unsqueeze(axis)
    return found


def _gemm(x: Given, a: Mapping[str, Any]) -> Any:
    assert a.get("transB") == 1, "all networks here have it"
    return functional.linear(*x)


def _norm(x: Given, a: Mapping[str, Any]) -> Any:
    return functional.layer_norm(x[0], x[0].shape[a.get("axis", -1) :], *x[1:], eps=a.get("epsilon", 1e-5))


def _split(x: Given, a: Mapping[str, Any]) -> Any:
    return torch.split(x[0], x[1], dim=a.get("axis", 0))


def _cast(x: Given, a: Mapping[str, Any]) -> Any:
    assert a["to"] == onnx.TensorProto.FLOAT, "no network here asks for another type"
    return x[0].to(torch.get_default_dtype())


PLAIN: dict[str, Callable[..., Any]] = {
    "Add": operator.add,
    "Clip": torch.clamp,
    "Div": operator.truediv,
    "Erf": torch.erf,
    "Expand": lambda x, shape: x.expand(torch.broadcast_shapes(x.shape, tuple(shape))),
    "GlobalAveragePool": lambda x: x.mean(tuple(range(2, x.dim())), keepdim=True),
    "MatMul": operator.matmul,
    "Mul": operator.mul,
    "Neg": operator.neg,
    "Pow": operator.pow,
    "Relu": functional.relu,
    "Sigmoid": torch.sigmoid,
    "Sqrt": torch.sqrt,
    "Squeeze": lambda x, axes: x.squeeze(tuple(axes)),
    "Sub": operator.sub,
    "Tanh": torch.tanh,
}
"""What operators without attributes are, by their names in ONNX, as functions of their inputs."""

WITH_ATTRIBUTES: dict[str, Row] = {
    "Cast": _cast,
    "Concat": lambda x, a: torch.cat(list(x), a["axis"]),
    "Conv": _conv,
    "ConvTranspose": _deconv,
    "Flatten": lambda x, a: x[0].flatten(a.get("axis", 1)),
    "Gather": _gather,
    "Gemm": _gemm,
    "LayerNormalization": _norm,
    "MaxPool": _max_pool,
    "ReduceMean": lambda x, a: x[0].mean(a["axes"], keepdim=bool(a.get("keepdims", 1))),
    "Reshape": _reshape,
    "Slice": _slice,
    "Softmax": lambda x, a: torch.softmax(x[0], a.get("axis", -1)),
    "Split": _split,
    "Transpose": lambda x, a: x[0].permute(a["perm"]),
    "Unsqueeze": _unsqueeze,
}
"""The others, as functions of a list of their inputs and of their attributes."""

KNOWN = PLAIN.keys() | WITH_ATTRIBUTES.keys()
"""All operators that there are; recurrent layers are left out."""


class TorchNetwork(torch.nn.Module):
    """``device``: where weights are; ``dtype``: of its floats. Sizes are numbers, which a compiler knows."""

    def __init__(self, model: onnx.ModelProto, device: str, dtype: Any) -> None:
        """Raises NotImplementedError for an operator that the table does not have."""
        super().__init__()
        missing = sorted({node.op_type for node in model.graph.node} - KNOWN)
        if missing:
            raise NotImplementedError(f"the table for PyTorch has no {', '.join(missing)}")
        self._nodes = [
            (node.op_type, [name for name in node.input if name], list(node.output), _attributes(node))
            for node in model.graph.node
        ]
        self._inputs = [value.name for value in model.graph.input]
        self._outputs = [value.name for value in model.graph.output]
        self._sizes: dict[str, Any] = {}
        self._weights: dict[str, str] = {}
        looked_at = _looked_at(model)
        for number, tensor in enumerate(model.graph.initializer):
            numbers = numpy_helper.to_array(tensor)
            if tensor.name in looked_at:
                self._sizes[tensor.name] = numbers.tolist()
                continue
            array = torch.from_numpy(np.array(numbers))
            array = array.to(device, dtype) if array.is_floating_point() else array.to(device)
            # What is a parameter stays where it is: graphs of kernels need no copy of it.
            parameter = torch.nn.Parameter(_as_channels_last(array), requires_grad=False)
            self._weights[tensor.name] = f"weight_{number}"
            self.register_parameter(f"weight_{number}", parameter)

    def forward(self, *given: Any) -> tuple[Any, ...]:
        """The outputs of the network."""
        values = {**self._sizes, **dict(zip(self._inputs, given, strict=True))}
        values |= {name: getattr(self, attribute) for name, attribute in self._weights.items()}
        for kind, names, results, attributes in self._nodes:
            inputs = [values[name] for name in names]
            found = PLAIN[kind](*inputs) if kind in PLAIN else WITH_ATTRIBUTES[kind](inputs, attributes)
            several = found if isinstance(found, tuple | list) else (found,)
            values.update(zip(results, several, strict=False))
        return tuple(values[name] for name in self._outputs)


_NUMBERS = {"Reshape": 1, "Slice": 1, "Split": 1, "Squeeze": 1, "Unsqueeze": 1, "Expand": 1, "Clip": 1}
"""From which input on an operator looks at the numbers of its inputs, as at a shape."""


def _looked_at(model: onnx.ModelProto) -> set[str]:
    return {name for node in model.graph.node for name in list(node.input)[_NUMBERS.get(node.op_type, 99) :]}


def _as_channels_last(array: Any) -> Any:
    return array.to(memory_format=torch.channels_last) if array.dim() == 4 else array


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    """As numbers and lists of Python, which its compiler sees through."""
    found = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
    return {name: list(value) if isinstance(value, Iterable) else value for name, value in found.items()}
