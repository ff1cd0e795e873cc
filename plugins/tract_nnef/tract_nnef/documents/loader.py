"""The reader of the format: an archive becomes a `TypedModel`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from tract_core.data import QuantizedType
from tract_core.data.blocks import Blocks
from tract_core.errors import CorruptModel, LimitExceeded, TractError
from tract_core.limits import DEFAULT_LIMITS, LoadLimits, limits_now, spending
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.plugins import Registry, default_registry
from tract_core.plugins.keys import Array
from tract_nnef.archive.reading import GRAPH, Archive, open_archive
from tract_nnef.archive.tensors import read_tensor
from tract_nnef.documents.extensions import split, use_registries
from tract_nnef.documents.operators import Operators
from tract_nnef.documents.reader import Reader
from tract_nnef.reading import values
from tract_nnef.reading.expressions import Scope
from tract_nnef.reading.names import NamedValues
from tract_nnef.reading.quantized import quantized_types
from tract_nnef.reading.resources import Resources
from tract_nnef.reading.reunited import reunite
from tract_nnef.reading.values import Value
from tract_nnef.syntax import ast
from tract_nnef.syntax.parser import decode, parse_document
from tract_nnef.versions import OF_THE_FILE, PROPERTIES, check_version

QUANTIZATION: Final = "graph.quant"


class NnefLoader:
    """Loads archives: folders, tar files, compressed or not."""

    def __init__(self, *, limits: LoadLimits = DEFAULT_LIMITS, registry: Registry | None = None) -> None:
        """``limits``: what an archive may ask for. ``registry``: the plugins to ask, by default those installed."""
        self._limits = limits
        self._registry = registry

    def load(self, path: Path) -> TypedModel:
        """The model of a folder or a file. Raises ModelError, FactError."""
        with spending(self._limits):
            archive = open_archive(path, self._limits)
            try:
                return self._read(archive)
            except TractError as error:
                raise error.at(str(path)) from error.__cause__

    def load_bytes(self, content: bytes) -> TypedModel:
        """The model in the content of a tar file, compressed or not. Raises ModelError, FactError."""
        with spending(self._limits):
            return self._read(open_archive(content, self._limits))

    def _read(self, archive: Archive) -> TypedModel:
        model = TypedModel(registry=self._registry or default_registry())
        model.limits = self._limits
        try:
            beside = Beside(archive, self._read)
            document = parse_document(beside.resources.rendered(decode(archive.content(GRAPH).tobytes())))
            check_version(document)
            reader = Reader(model, Operators(model.registry, document.fragments), beside, _quantized(archive))
            lines = split(document.extensions)
            use_registries(reader.operators, lines)
            reader.read(document.graph, lines)
            reader.remarks.warn()
            _add_properties(reader, document)
            reunite(model)
        except TractError as error:
            raise error.at(GRAPH) from error.__cause__
        except RecursionError:
            raise LimitExceeded("expressions are nested too deep", where=GRAPH) from None
        return model


class Beside:
    """What lies beside the document in an archive: tensors in ``.dat`` files, JSON, and archives of other models.

    ``read``: makes a model of an archive.
    """

    def __init__(self, archive: Archive, read: Callable[[Archive], TypedModel]) -> None:
        self._archive = archive
        self._read = read
        self._submodels: dict[str, tuple[TypedModel, int]] = {}
        """By label, with the nodes that it took to read it."""
        self.resources = Resources(archive)

    def submodel(self, label: str) -> TypedModel:
        """The model in a folder or in an archive of that label. Raises ModelError, naming it.

        It is read once, and its nodes count each time that it is used, as they are looked at each time later.
        """
        with spending(limits_now()) as budget:
            if label in self._submodels:
                budget.node(self._submodels[label][1])
            else:
                before = budget.nodes
                found = self._submodel(label)
                self._submodels[label] = found, budget.nodes - before
        return self._submodels[label][0]

    def _submodel(self, label: str) -> TypedModel:
        found = self._archive.submodel(label)
        if found is None:
            raise CorruptModel(
                f"there is no submodel {label!r:.80}, wanted a folder or {label:.80}.nnef.tgz or .nnef.tar"
            )
        try:
            return self._read(found)
        except TractError as error:
            raise error.at(f"submodel {label!r}") from error.__cause__

    def resource(self, label: str, key: str) -> Value:
        """What a JSON file has at a path. Raises ModelError."""
        return self.resources.value(label, key)

    def tensor(self, label: str) -> Array:
        """The tensor of a label. Raises ModelError."""
        held = self.stored(label)
        return held.to_f32() if isinstance(held, Blocks) else held

    def stored(self, label: str) -> Array | Blocks:
        """The tensor of a label, in blocks where it is kept so. Raises ModelError."""
        name = f"{label}.dat"
        if name not in self._archive:
            raise CorruptModel(f"there is no tensor for the label {label!r}, wanted a file {name.lstrip('/')}")
        return read_tensor(self._archive.content(name), name)


def _quantized(archive: Archive) -> Mapping[str, QuantizedType]:
    """What ``graph.quant`` says of tensors. Raises CorruptModel, Unsupported."""
    if QUANTIZATION not in archive:
        return {}
    try:
        return quantized_types(decode(archive.content(QUANTIZATION).tobytes()))
    except TractError as error:
        raise error.at(QUANTIZATION) from None


def _add_properties(reader: Reader, document: ast.Document) -> None:
    """The properties, which the first statement of a fragment holds as pairs of a name and a tensor.

    What they are computed from is no part of the model.
    """
    fragment = next((one for one in document.fragments if one.name == PROPERTIES), None)
    if fragment is None or not fragment.body:
        return
    aside = Reader(reader.model.empty_like(), reader.operators, reader.tensors)
    for pair in values.items(Scope(aside, NamedValues()).evaluate(fragment.body[0].value)):
        name, value = values.items(pair)
        held = aside.model.constant(value) if isinstance(value, OutletId) else values.literal(value)
        if isinstance(name, str) and isinstance(held, np.ndarray) and name not in OF_THE_FILE:
            reader.model.properties[name] = held
