"""The signatures of a file, which name graphs, inputs and outputs; and what a file says about itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tract_core.analysis.inference import InferenceModel
from tract_core.errors import CorruptModel, InputError
from tract_core.frozen import frozen
from tract_core.plugins.keys import Array
from tract_core.texts import printable
from tract_tensorflow.tflite.file import TfliteFile, TfliteTensor
from tract_tensorflow.tflite.flatbuffer import FlatTable


@frozen
class Signature:
    """One signature. ``graph``: the number of its graph; ``inputs``, ``outputs``: tensors of that by their names."""

    name: str
    graph: int
    inputs: Mapping[str, int]
    outputs: Mapping[str, int]


def signatures_of(file: TfliteFile) -> Sequence[Signature]:
    """All signatures of a file, in its order."""
    return [
        Signature(
            table.text("signature_key"),
            table.integer("subgraph_index"),
            _tensors(table, "inputs"),
            _tensors(table, "outputs"),
        )
        for table in file.model.tables("signature_defs")
    ]


def _tensors(table: FlatTable, field: str) -> Mapping[str, int]:
    return {one.text("name"): one.integer("tensor_index") for one in table.tables(field)}


def find_signature(file: TfliteFile, name: str) -> Signature:
    """The signature of that name. Raises InputError, which says what there is."""
    found = signatures_of(file)
    for one in found:
        if one.name == name:
            return one
    there = ", ".join(repr(printable(one.name)) for one in found) or "none"
    raise InputError(f"there is no signature {printable(name)!r}", hint=f"the file has {there}")


def apply(signature: Signature, model: InferenceModel, inputs: Sequence[int], outputs: Sequence[int]) -> None:
    """Put a graph's inputs and outputs in the order of its signature, under the names that this gives them.

    ``inputs``, ``outputs``: the tensors that they are. Raises CorruptModel when the signature has other inputs than the
    graph, or outputs that the graph has not.
    """
    sources = dict(zip(inputs, model.inputs, strict=True))
    results = dict(zip(outputs, model.outputs, strict=True))
    if set(signature.inputs.values()) != set(sources) or not set(signature.outputs.values()) <= set(results):
        raise CorruptModel(f"signature {printable(signature.name)!r} has other inputs or outputs than its graph")
    model.inputs[:] = [sources[tensor] for tensor in signature.inputs.values()]
    for name, outlet in zip(signature.inputs, model.inputs, strict=True):
        model.rename(outlet.node, name)
    model.set_outputs([results[tensor] for tensor in signature.outputs.values()])
    for name, outlet in zip(signature.outputs, model.outputs, strict=True):
        model.set_label(outlet, name)


def read_properties(file: TfliteFile, model: InferenceModel, tensors: Iterable[TfliteTensor]) -> Mapping[str, Array]:
    """What the file says about itself, as ``tflite.description`` and ``tflite.signatures``.

    ``tensors``: the inputs and outputs. A quantised one has ``tflite.scale.NAME`` and ``tflite.zero_point.NAME``.
    """
    found: dict[str, Array] = {}
    if description := file.model.text("description"):
        found["tflite.description"] = np.array(description, object)
    if signatures := [one.name for one in signatures_of(file)]:
        found["tflite.signatures"] = np.array(signatures, object)
    for tensor, outlet in zip(tensors, (*model.inputs, *model.outputs), strict=True):
        if tensor.is_quantized and tensor.quantization is not None:
            name = model.outlet_name(outlet)
            found[f"tflite.scale.{name}"] = tensor.quantization.scales
            found[f"tflite.zero_point.{name}"] = tensor.quantization.zeros
    return found
