"""What rounding costs a transformer of 16 bits: ``python bench/bench_narrow.py``

Twelve layers with random weights of f16 or bf16, and a mask of -1e4 that is added. The same numbers are computed in
f64, and then: rounded after every operator, as the runtimes do; rounded only where a fused group ends (a product with
bias and what is added or applied behind it, a normalisation, the weights of attention); not rounded at all; and by ONNX
Runtime, which computes f16 in f32 from cast to cast. Each line is the root of the mean squared difference from f64, and
the largest one, relative to the root of the mean square.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
from onnx import helper, numpy_helper

import tract_core as tract

Array = np.ndarray[Any, Any]

LAYERS, WIDTH, HEADS, INNER, STEPS, BATCH = 12, 128, 4, 512, 64, 4


class Network:
    """The network as an ONNX file: weights rounded to ``narrow``, everything in ``kind``.

    ``groups``: whether results are rounded to ``narrow`` where a group ends.
    """

    def __init__(self, narrow: Any, kind: Any, *, groups: bool = False) -> None:
        self.narrow, self.kind, self.groups = narrow, kind, groups
        self.random = np.random.default_rng(0)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        x = "x"
        for _ in range(LAYERS):
            x = self.layer(x)
        self.nodes.append(helper.make_node("Identity", [x], ["y"]))

    def bytes(self) -> bytes:
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.kind))
        shapes = {"x": [BATCH, STEPS, WIDTH], "mask": [STEPS, STEPS]}
        inputs = [helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items()]
        outputs = [helper.make_tensor_value_info("y", kind, None)]
        graph = helper.make_graph(self.nodes, "layers", inputs, outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9).SerializeToString()

    def layer(self, x: str) -> str:
        joined = self.linear(self.normalised(x), WIDTH, 3 * WIDTH)
        parts = [f"{joined}.{one}" for one in "qkv"]
        self.nodes.append(helper.make_node("Split", [self.rounded(joined)], parts, axis=-1, num_outputs=3))
        split = self.integers(0, STEPS, HEADS, WIDTH // HEADS)
        q, k, v = (self.op("Transpose", self.op("Reshape", one, split), perm=[0, 2, 1, 3]) for one in parts)
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = self.op("Add", self.op("Mul", scores, self.constant((WIDTH // HEADS) ** -0.5)), "mask")
        found = self.rounded(self.op("MatMul", self.rounded(self.op("Softmax", scores, axis=-1)), v))
        found = self.op("Reshape", self.op("Transpose", found, perm=[0, 2, 1, 3]), self.integers(0, STEPS, WIDTH))
        x = self.rounded(self.op("Add", x, self.linear(found, WIDTH, WIDTH)))
        up = self.linear(self.normalised(x), WIDTH, INNER)
        bell = self.op("Add", self.op("Erf", self.op("Div", up, self.constant(2**0.5))), self.constant(1))
        active = self.rounded(self.op("Mul", self.op("Mul", up, bell), self.constant(0.5)))
        return self.rounded(self.op("Add", x, self.linear(active, INNER, WIDTH)))

    def linear(self, x: str, size: int, columns: int) -> str:
        weights = self.constant(self.random.normal(size=(size, columns)) / size**0.5)
        return self.op("Add", self.op("MatMul", x, weights), self.constant(self.random.normal(size=columns) * 0.1))

    def normalised(self, x: str) -> str:
        less = self.op("Sub", x, self.op("ReduceMean", x, self.integers(-1)))
        variance = self.op("ReduceMean", self.op("Mul", less, less), self.integers(-1))
        by = self.op("Sqrt", self.op("Add", variance, self.constant(1e-5)))
        scale = self.constant(1 + self.random.normal(size=WIDTH) * 0.1)
        return self.rounded(self.op("Mul", self.op("Div", less, by), scale))

    def rounded(self, x: str) -> str:
        if not self.groups:
            return x
        types = [helper.np_dtype_to_tensor_dtype(np.dtype(one)) for one in (self.narrow, self.kind)]
        return self.op("Cast", self.op("Cast", x, to=types[0]), to=types[1])

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"n{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, value: Any) -> str:
        return self._held(np.asarray(value).astype(self.narrow).astype(self.kind))

    def integers(self, *values: int) -> str:
        return self._held(np.array(values, np.int64))

    def _held(self, array: Array) -> str:
        self.constants.append(numpy_helper.from_array(array, f"c{len(self.constants)}"))
        return self.constants[-1].name


def ours(network: Network, given: list[Array], runtime: str = "cpu") -> Array:
    model = tract.onnx().load_bytes(network.bytes()).into_model()
    (found,) = tract.runtime_for_name(runtime).prepare(model).run([one.astype(network.kind) for one in given])
    return np.asarray(found).astype(np.float64)


def theirs(network: Network, given: list[Array]) -> Array:
    session = onnxruntime.InferenceSession(network.bytes(), providers=["CPUExecutionProvider"])
    (found,) = session.run(
        None, {name: one.astype(network.kind) for name, one in zip(("x", "mask"), given, strict=True)}
    )
    return found.astype(np.float64)


def main() -> None:
    onnxruntime.set_default_logger_severity(4)
    for name, narrow in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16)):
        x = np.random.default_rng(5).normal(size=(BATCH, STEPS, WIDTH)).astype(narrow)
        given = [x, np.where(np.tril(np.ones((STEPS, STEPS))), 0, -1e4).astype(narrow)]
        exact = ours(Network(narrow, np.float64), given, "reference")
        found = {
            "after every operator": ours(Network(narrow, narrow), given),
            "after every operator, reference": ours(Network(narrow, narrow), given, "reference"),
            "where a group ends": ours(Network(narrow, np.float32, groups=True), given),
            "never": ours(Network(narrow, np.float32), given),
        }
        if name == "f16":  # it has no products of bf16
            found["by ONNX Runtime"] = theirs(Network(narrow, narrow), given)
        unit = float(np.sqrt((exact**2).mean()))
        for what, one in found.items():
            rms, most = float(np.sqrt(((one - exact) ** 2).mean())) / unit, float(np.abs(one - exact).max()) / unit
            print(f"{name:5} {what:32} {rms:.2e} {most:.2e}")


if __name__ == "__main__":
    main()
