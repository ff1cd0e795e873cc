"""Load models of TFLite."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import numpy as np

from tract_core.analysis.inference import InferenceModel
from tract_core.errors import CorruptModel, TractError
from tract_core.garbage import uncollected
from tract_core.limits import DEFAULT_LIMITS, LoadLimits, spending
from tract_core.lookalikes import HEAD, recognise
from tract_core.plugins import Registry, default_registry
from tract_core.safe_files import check_size, map_path
from tract_tensorflow.tflite.file import TfliteFile
from tract_tensorflow.tflite.graph import GraphReader
from tract_tensorflow.tflite.registry import TFLITE
from tract_tensorflow.tflite.signatures import apply, find_signature, read_properties

_IDENTIFIER: Final = b"TFL3"


class TfliteLoader:
    """The format of TFLite, now called LiteRT.

    ``registry``: the tables to ask about operators, those of the installed plugins by default. ``signature``: which of
    the file's signatures to take, by its name; the first graph where none is named. ``limits``: what a file may ask
    for.
    """

    def __init__(
        self, registry: Registry | None = None, *, signature: str = "", limits: LoadLimits = DEFAULT_LIMITS
    ) -> None:
        self._registry = registry
        self._signature = signature
        self._limits = limits

    def load(self, path: str | os.PathLike[str]) -> InferenceModel:
        """The model in a file. Weights are read in place: the file must stay as it is while the model is used.

        Raises ModelError: CorruptModel, VersionError, Unsupported, UnsafePath or LimitExceeded.
        """
        path = Path(path)
        try:
            return self._read(map_path(path, self._limits), path.name)
        except TractError as error:
            raise error.at(str(path)) from error.__cause__

    def load_bytes(self, content: bytes) -> InferenceModel:
        """The model in a file's content. Raises ModelError."""
        try:
            check_size(len(content), self._limits)
            return self._read(content)
        except TractError as error:
            raise error.at("model") from error.__cause__

    def _read(self, content: Any, name: str = "") -> InferenceModel:
        with spending(self._limits), uncollected():
            _check_head(content, name)
            registry = self._registry or default_registry()
            file = TfliteFile(content, registry[TFLITE], self._limits)
            model = InferenceModel(registry=self._registry)
            model.limits = self._limits
            signature = find_signature(file, self._signature) if self._signature else None
            reader = GraphReader(file.inside(signature.graph if signature else 0), model)
            reader.add_model()
            inputs, outputs = reader.inputs, reader.outputs
            if signature is not None:
                apply(signature, model, inputs, outputs)
                inputs, outputs = [*signature.inputs.values()], [*signature.outputs.values()]
            ends = [reader.tensors[index] for index in (*inputs, *outputs)]
            model.properties.update(read_properties(file, model, ends))
            if reader.keeps:
                model.properties["states.kept"] = np.array(True)
            return model


def _check_head(content: Any, name: str) -> None:
    """Raises CorruptModel, which says what else the file is where it can."""
    head = bytes(content[:HEAD])
    if head[4:8] == _IDENTIFIER:
        return
    found = recognise(head, name)
    if found is not None:
        raise CorruptModel(f"wanted a file of TFLite, found {found.what}", hint=found.advice)
    raise CorruptModel(f"wanted a file of TFLite, with {_IDENTIFIER!r} at byte 4, found {head[4:8]!r}")
