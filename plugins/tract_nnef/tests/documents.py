"""Documents as texts, for tests: read, and run."""

from __future__ import annotations

import io
import re
import tarfile
from collections.abc import Mapping
from typing import Any

import numpy as np

import tract_core as tract
from tract_core.data import DatumType

Array = np.ndarray[Any, Any]


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
    for name, shape in shapes.items():
        kind = kinds.get(name, "f32").upper()
        lines.append(f"{name} = tract_core_external(shape = [{shape}], datum_type = '{kind}');")
    return tract.nnef().load_bytes(archive("\n".join([*lines, body, "}"]), quantization))


def archive(graph: str, quantization: str = "") -> bytes:
    """A tar file of a document, with what it says of quantised tensors."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        for name, text in (("graph.nnef", graph), ("graph.quant", quantization)):
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            if text:
                tar.addfile(entry, io.BytesIO(text.encode()))
    return held.getvalue()


def run(model: tract.Model, *inputs: Array) -> Any:
    """The output of a model, or its outputs."""
    found = [one.to_numpy() for one in model.into_runnable().run(list(inputs))]
    return found[0] if len(found) == 1 else found


def compute(body: str, *, outputs: str = "y", quantization: str = "", **inputs: Array) -> Any:
    """The output of statements for inputs of these names, or the outputs."""
    shapes = {name: ",".join(map(str, array.shape)) for name, array in inputs.items()}
    kinds = {name: DatumType.from_numpy(array.dtype).short for name, array in inputs.items()}
    return run(read(body, shapes, outputs=outputs, kinds=kinds, quantization=quantization), *inputs.values())
