"""Statements that are read and run without an archive around them, and models as the documents that they become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from tract_nnef.documents.operators import Operators
from tract_nnef.documents.reader import Reader
from tract_nnef.documents.writer import Writer, Written
from tract_nnef.reading.quantized import quantized_types
from tract_nnef.syntax.parser import parse_document
from tract_nnef.syntax.printer import print_document, print_quantization

from tract_core.model.typed import TypedModel
from tract_core.runtime.plan import TypedSimplePlan

HEAD = "version 1.0;\nextension tract_registry tract_core;\n"
KINDS = {np.float32: "scalar", np.int64: "integer", np.bool_: "logical"}


class Held:
    """The tensors of a test."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._arrays = arrays

    def tensor(self, label: str) -> np.ndarray:
        return self._arrays[label]

    stored = tensor


def read(text: str, tensors: Mapping[str, np.ndarray] | None = None, quantized=None) -> TypedModel:
    """The model of a whole text."""
    model = TypedModel()
    document = parse_document(text)
    for line in document.extensions:
        if line.startswith("tract_symbol"):
            model.symbols.add(line.split()[1])
    operators = Operators(model.registry, document.fragments)
    for line in document.extensions:
        if line.startswith("tract_registry"):
            operators.use(line.split()[1])
    Reader(model, operators, Held(tensors or {}), quantized).read(document.graph)
    return model


def graph(statements: str, inputs: Sequence[np.ndarray], outputs: Sequence[str] = ("y",), *, symbolic=False) -> str:
    """The text of a graph whose inputs are called ``a``, ``b``, ..., with symbols of these sizes if wanted."""
    names = "abcdefg"[: len(inputs)]
    head, lines = HEAD, []
    for name, x in zip(names, inputs, strict=True):
        sizes = [f"{name.upper()}{axis}" if symbolic else str(size) for axis, size in enumerate(x.shape)]
        if symbolic:
            head += "".join(f"extension tract_symbol {size};\n" for size in sizes)
        lines.append(f"{name} = external<{KINDS[x.dtype.type]}>(shape = [{', '.join(sizes)}]);")
    body = "\n  ".join([*lines, statements])
    return f"{head}graph g({', '.join(names)}) -> ({', '.join(outputs)})\n{{\n  {body}\n}}\n"


def run(statements: str, *inputs: np.ndarray, outputs: Sequence[str] = ("y",), symbolic=False) -> list[np.ndarray]:
    """What a graph gives for inputs ``a``, ``b``, ..."""
    model = read(graph(statements, inputs, outputs, symbolic=symbolic))
    return list(TypedSimplePlan(model).run(inputs))


def written(model: TypedModel, registries: Sequence[str] = ("tract_core",)) -> Written:
    return Writer(model, registries).write()


def read_back(model: TypedModel, registries: Sequence[str] = ("tract_core",)) -> TypedModel:
    """The model of the text that a model is written as."""
    said = written(model, registries)
    tensors = {label: constant.array for label, constant in said.tensors.items()}
    return read(print_document(said.document), tensors, quantized_types(print_quantization(said.quantization)))
