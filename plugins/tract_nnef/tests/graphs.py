"""Graphs written as text, loaded and run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tars import END, entry

import tract_core as tract

Array = np.ndarray[Any, Any]

NAMES = ("x", "y", "z", "t", "u", "v")
"""What inputs are called."""

_KINDS = {"bool": "Bool", "complex64": "ComplexF32", "complex128": "ComplexF64", "object": "String"}


def archive(text: str, files: Mapping[str, bytes] | None = None) -> bytes:
    """A tar file with a graph and others."""
    contents = {"graph.nnef": text.encode(), **(files or {})}
    return b"".join(entry(name, content) for name, content in contents.items()) + END


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
    for name, shape in zip(names, shapes, strict=True):
        kind, sizes = shape.split("[")
        body = f"{name} = tract_core_external(shape = [{sizes}, datum_type = '{kind}');\n{body}"
    graph = f"graph network({', '.join(names)}) -> ({', '.join(outputs)}) {{\n{body}\n}}"
    return "\n".join(["version 1.0;", *lines, fragments, graph])


def load(text: str, files: Mapping[str, bytes] | None = None) -> tract.Model:
    """The model of a document."""
    return tract.nnef().load_bytes(archive(text, files))


def run(text: str, *inputs: Array, files: Mapping[str, bytes] | None = None) -> list[Array]:
    """What a document computes."""
    return [np.asarray(found.to_numpy()) for found in load(text, files).into_runnable().run(list(inputs))]


def shape_of(array: Array) -> str:
    """As in a `document`."""
    kind = _KINDS.get(array.dtype.name) or {"f": "F", "i": "I", "u": "U"}[array.dtype.kind] + str(8 * array.itemsize)
    return f"{kind}[{', '.join(map(str, array.shape))}]"
