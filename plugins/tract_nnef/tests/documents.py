"""Documents as texts: loaded from archives in memory, and run."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tars import END, entry

import tract_core as tract
from tract_core.data import DatumType

Array = np.ndarray[Any, Any]

NAMES = ("x", "y", "z", "t", "u", "v")
"""What the inputs of a `document` are called."""

_KINDS = {"bool": "Bool", "complex64": "ComplexF32", "complex128": "ComplexF64", "object": "String"}


def archive(text: str, files: Mapping[str, bytes] | None = None) -> bytes:
    """A tar file with a graph and others."""
    contents = {"graph.nnef": text.encode(), **(files or {})}
    return b"".join(entry(name, content) for name, content in contents.items()) + END


def load(text: str, files: Mapping[str, bytes] | None = None) -> tract.Model:
    """The model of a document."""
    return tract.nnef().load_bytes(archive(text, files))


def run(model: tract.Model, *inputs: Array) -> Any:
    """The output of a model, or its outputs."""
    found = [np.asarray(one.to_numpy()) for one in model.into_runnable().run(list(inputs))]
    return found[0] if len(found) == 1 else found


def run_text(text: str, *inputs: Array, files: Mapping[str, bytes] | None = None) -> list[Array]:
    """The outputs of a document."""
    return [np.asarray(one.to_numpy()) for one in load(text, files).into_runnable().run(list(inputs))]


# --- statements, for inputs of given names ---


def read(
    body: str,
    shapes: Mapping[str, str] = {},
    *,
    outputs: str = "y",
    kinds: Mapping[str, str] = {},
    quantization: str = "",
) -> tract.Model:
    """The model of statements. ``shapes``: those of the inputs, as ``"B,3"``; ``kinds``: their types where not f32."""
    symbols = sorted(set(re.findall(r"[A-Z]\w*", " ".join(shapes.values()))))
    lines = ["version 1.0;", "extension tract_registry tract_core;", *(f"extension tract_symbol {s};" for s in symbols)]
    lines.append(f"graph network({', '.join(shapes)}) -> ({outputs}) {{")
    lines += [external(name, shape, kinds.get(name, "f32")) for name, shape in shapes.items()]
    return load("\n".join([*lines, body, "}"]), {"graph.quant": quantization.encode()} if quantization else {})


def external(name: str, shape: str, kind: str) -> str:
    """The statement of an input."""
    return f"{name} = tract_core_external(shape = [{shape}], datum_type = '{kind}');"


def compute(body: str, *, outputs: str = "y", quantization: str = "", **inputs: Array) -> Any:
    """The output of statements for inputs of these names, or the outputs."""
    shapes = {name: ",".join(map(str, array.shape)) for name, array in inputs.items()}
    kinds = {name: DatumType.from_numpy(array.dtype).short for name, array in inputs.items()}
    return run(read(body, shapes, outputs=outputs, kinds=kinds, quantization=quantization), *inputs.values())


# --- statements, with anything around them ---


def document(
    body: str,
    shapes: Sequence[str],
    outputs: Sequence[str],
    *,
    registries: Sequence[str] = ("tract_core",),
    symbols: Sequence[str] = (),
    fragments: str = "",
) -> str:
    """A document with the statements ``body``. ``shapes``: of the inputs, as ``f32[B, 3]``."""
    lines = [f"extension tract_registry {name};" for name in registries]
    lines += [f"extension tract_symbol {name};" for name in symbols]
    names = NAMES[: len(shapes)]
    kinds, sizes = zip(*(shape.removesuffix("]").split("[") for shape in shapes), strict=True) if shapes else ((), ())
    inputs = [external(*one) for one in zip(names, sizes, kinds, strict=True)]
    graph = "\n".join([f"graph network({', '.join(names)}) -> ({', '.join(outputs)}) {{", *inputs, body, "}"])
    return "\n".join(["version 1.0;", *lines, fragments, graph])


def shape_of(array: Array) -> str:
    """As in a `document`."""
    kind = _KINDS.get(array.dtype.name) or {"f": "F", "i": "I", "u": "U"}[array.dtype.kind] + str(8 * array.itemsize)
    return f"{kind}[{', '.join(map(str, array.shape))}]"
