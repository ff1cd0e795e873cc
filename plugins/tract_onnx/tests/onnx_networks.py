"""Networks written out node by node, as exporters write them, with random weights."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, helper, numpy_helper


class Builder:
    """Collects nodes and weights. Every method that adds a node returns the name of its output."""

    def __init__(self, seed=0):
        self.random = np.random.default_rng(seed)
        self.nodes = []
        self.weights = []
        self.count = 0

    def node(self, op_type, *inputs, outputs=1, **attributes):
        self.count += 1
        names = [f"{op_type.lower()}_{self.count}" + (f"_{slot}" if slot else "") for slot in range(outputs)]
        self.nodes.append(helper.make_node(op_type, list(inputs), names, name=f"/{op_type}_{self.count}", **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, array, name=None):
        self.count += 1
        name = name or f"const_{self.count}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def weight(self, *shape, scale=None):
        scale = scale or 1 / np.sqrt(max(shape[0], 1))
        return self.constant(self.random.standard_normal(shape, dtype=np.float32) * np.float32(scale))

    def ints(self, *values):
        return self.constant(np.array(values, np.int64))

    def model(self, inputs, outputs, opset=17):
        graph = helper.make_graph(
            self.nodes,
            "network",
            [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in inputs.items()],
            [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in outputs.items()],
            self.weights,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def encoder(layers=2, hidden=32, heads=4, *, vocabulary=50, positions=40, inner=4):
    """A BERT-like encoder with symbolic batch and length, its sizes computed by Shape, Gather and Concat."""
    b = Builder()
    words = b.node("Gather", b.weight(vocabulary, hidden), "ids")
    length = b.node("Gather", b.node("Shape", "ids"), b.constant(np.array(1)), axis=0)
    places = b.node(
        "Slice", b.constant(np.arange(positions)[None]), b.ints(0), b.node("Unsqueeze", length, b.ints(0)), b.ints(1)
    )
    x = b.node("Add", words, b.node("Gather", b.weight(positions, hidden), places))
    x = layer_norm(b, x, hidden)
    mask = b.node("Unsqueeze", b.node("Cast", "mask", to=TensorProto.FLOAT), b.ints(1, 2))
    mask = b.node("Mul", b.node("Sub", b.constant(np.float32(1)), mask), b.constant(np.float32(-10000)))
    for _ in range(layers):
        x = attention_block(b, x, mask, hidden, heads)
        h = b.node("Add", b.weight(hidden * inner), b.node("MatMul", x, b.weight(hidden, hidden * inner)))
        half = b.node(
            "Add", b.node("Erf", b.node("Div", h, b.constant(np.float32(np.sqrt(2))))), b.constant(np.float32(1))
        )
        h = b.node("Mul", b.node("Mul", h, half), b.constant(np.float32(0.5)))
        h = b.node("Add", b.weight(hidden), b.node("MatMul", h, b.weight(hidden * inner, hidden)))
        x = layer_norm(b, b.node("Add", h, x), hidden)
    first = b.node("Gather", x, b.constant(np.array(0)), axis=1)
    pooled = b.node("Tanh", b.node("Gemm", first, b.weight(hidden, hidden), b.weight(hidden), transB=1))
    return b.model(
        {"ids": (TensorProto.INT64, ["B", "S"]), "mask": (TensorProto.INT64, ["B", "S"])},
        {x: (TensorProto.FLOAT, ["B", "S", hidden]), pooled: (TensorProto.FLOAT, ["B", hidden])},
    )


def layer_norm(b, x, hidden):
    centred = b.node("Sub", x, b.node("ReduceMean", x, axes=[-1]))
    variance = b.node("ReduceMean", b.node("Pow", centred, b.constant(np.float32(2))), axes=[-1])
    deviation = b.node("Sqrt", b.node("Add", variance, b.constant(np.float32(1e-12))))
    scale = b.constant(b.random.uniform(0.5, 1.5, hidden).astype(np.float32))
    return b.node("Add", b.node("Mul", b.node("Div", centred, deviation), scale), b.weight(hidden))


def attention_block(b, x, mask, hidden, heads):
    shape = b.node("Shape", x)
    batch, length = (
        b.node("Unsqueeze", b.node("Gather", shape, b.constant(np.array(axis))), b.ints(0)) for axis in (0, 1)
    )
    split = b.node("Concat", batch, length, b.ints(heads), b.ints(hidden // heads), axis=0)
    q, k, v = (
        b.node("Reshape", b.node("Add", b.node("MatMul", x, b.weight(hidden, hidden)), b.weight(hidden)), split)
        for _ in range(3)
    )
    q, v = (b.node("Transpose", one, perm=[0, 2, 1, 3]) for one in (q, v))
    scores = b.node("MatMul", q, b.node("Transpose", k, perm=[0, 2, 3, 1]))
    scores = b.node("Add", b.node("Div", scores, b.constant(np.float32(np.sqrt(hidden // heads)))), mask)
    mixed = b.node("Transpose", b.node("MatMul", b.node("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3])
    joined = b.node("Reshape", mixed, b.node("Concat", batch, length, b.ints(hidden), axis=0))
    out = b.node("Add", b.weight(hidden), b.node("MatMul", joined, b.weight(hidden, hidden)))
    return layer_norm(b, b.node("Add", out, x), hidden)


def convolutional(classes=10):
    """A small network with a depth-wise convolution, squeeze and excite, a deconvolution and a shortcut."""
    b = Builder()
    x = b.node("Conv", "image", b.weight(8, 3, 3, 3), b.weight(8), pads=[1, 1, 1, 1], strides=[2, 2])
    x = b.node("Relu", batch_norm(b, x, 8))
    y = b.node("Conv", x, b.weight(8, 1, 3, 3), group=8, pads=[1, 1, 1, 1])
    y = b.node("Mul", y, b.node("Sigmoid", y))
    squeezed = b.node("Relu", b.node("Conv", b.node("GlobalAveragePool", y), b.weight(4, 8, 1, 1), b.weight(4)))
    y = b.node("Mul", y, b.node("HardSigmoid", b.node("Conv", squeezed, b.weight(8, 4, 1, 1))))
    x = b.node("Add", x, y)
    x = b.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)
    x = b.node("ConvTranspose", x, b.weight(8, 6, 2, 2), b.weight(6), strides=[2, 2])
    x = b.node("Concat", x, b.node("Neg", x), axis=1)
    x = b.node("AveragePool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    x = b.node("Flatten", b.node("ReduceMean", x, axes=[2, 3], keepdims=0))
    x = b.node("Softmax", b.node("Gemm", x, b.weight(classes, 12), b.weight(classes), transB=1), axis=1)
    return b.model({"image": (TensorProto.FLOAT, ["B", 3, "H", "W"])}, {x: (TensorProto.FLOAT, ["B", classes])})


def batch_norm(b, x, channels):
    positive = b.constant(b.random.uniform(0.5, 1.5, channels).astype(np.float32))
    return b.node("BatchNormalization", x, positive, b.weight(channels), b.weight(channels), positive)
