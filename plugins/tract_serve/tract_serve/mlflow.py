"""MLflow: a file of a model as a ``pyfunc`` model, saved as it is, without a pickle or code."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import InputError
from tract_core.importing import imported
from tract_serve.models.recipe import ServingRecipe, prepared
from tract_serve.tensors.ports import Port, Signature


def save_model(path: str | Path, model_path: str | Path, *, by_name: bool | None = None, **given: Any) -> None:
    """Write a model to a folder that is not there yet, as MLflow has it. ``model_path``: its file or folder.

    ``by_name``: whether the signature names the inputs, so that MLflow takes a dictionary of arrays and no array; if
    not said, where there are several. ``model_config``: ``inputs`` (facts by name), ``runtime``, ``threads``. Others as
    for ``mlflow.pyfunc.save_model``. Raises as `tract_core.load` does, before anything is written.
    """
    pyfunc: Any = imported("mlflow.pyfunc")
    pyfunc.save_model(str(path), **_told(model_path, by_name, given))


def log_model(model_path: str | Path, name: str, *, by_name: bool | None = None, **given: Any) -> Any:
    """The same, as an artifact of the run; returns what ``mlflow.pyfunc.log_model`` does, which takes the others."""
    pyfunc: Any = imported("mlflow.pyfunc")
    return pyfunc.log_model(name=name, **_told(model_path, by_name, given))


def _told(path: str | Path, by_name: bool | None, given: dict[str, Any]) -> dict[str, Any]:
    """What MLflow is told of a model, besides where it goes."""
    models: Any = imported("mlflow.models")
    types: Any = imported("mlflow.types")
    found = _load_pyfunc(str(path), given.get("model_config")).signature

    def schema(ports: tuple[Port, ...], named: bool | None) -> Any:
        named = len(ports) != 1 if named is None else named
        kinds = [np.dtype(str) if one.kind is DatumType.STRING else one.kind.numpy for one in ports]
        told = zip(kinds, ports, strict=True)
        return types.Schema(
            [types.TensorSpec(np.dtype(kind), one.shape, one.name if named else None) for kind, one in told]
        )

    signature = models.ModelSignature(schema(found.inputs, by_name), schema(found.outputs, None))
    installed = {one.metadata["Name"]: one.version for one in distributions()}
    ours = sorted(f"{name}=={version}" for name, version in installed.items() if name.startswith("tract-"))
    fixed = {"loader_module": __name__, "data_path": str(path)}
    return {"signature": signature, "pip_requirements": ours} | given | fixed


class Predictor:
    """A model as MLflow calls it. ``inputs``: facts by name; ``runtime``, with options; ``threads`` of each run."""

    def __init__(
        self, path: str, inputs: Mapping[str, str] | None = None, runtime: str = "default", threads: int | None = None
    ) -> None:
        self._model = prepared(ServingRecipe(path, None, tuple((inputs or {}).items()), (), runtime, threads))
        self.signature = Signature.of(self._model)

    def predict(self, model_input: Any) -> Any:
        """The outputs, as the inputs come: arrays by name, an array, or a frame of pandas with a column for each.

        Cells of a frame are numbers or lists; a frame may be the one input as a whole. Raises InputError where they do
        not fit the model.
        """
        frame = model_input if hasattr(model_input, "columns") else None
        outputs = self._model.run([self._array(model_input, frame, port) for port in self.signature.inputs])
        found = {port.name: np.asarray(one) for port, one in zip(self.signature.outputs, outputs, strict=True)}
        if frame is None:
            return found if isinstance(model_input, Mapping) or len(found) != 1 else next(iter(found.values()))
        for name, one in found.items():
            if one.shape[:1] != (len(frame),):
                raise InputError(f"output {name!r} is {list(one.shape)}: no row for each of {len(frame)} rows")
        return type(frame)({name: list(one) for name, one in found.items()}, index=frame.index)

    def _array(self, given: Any, frame: Any, port: Port) -> Any:
        columns: Any = given.keys() if hasattr(given, "keys") else ()
        may_be_whole = frame is not None or not columns
        if port.name not in columns and not (may_be_whole and len(self.signature.inputs) == 1):
            raise InputError(f"input {port.name!r} is missing; there are: {', '.join(map(str, columns)) or 'no names'}")
        chosen: Any = given[port.name] if port.name in columns else given
        try:
            found = np.asarray(chosen if frame is None or chosen is frame else chosen.tolist())
            array = found.astype(port.kind.numpy, casting="same_kind", copy=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"input {port.name!r} is no array of {port.datatype}: {error}") from None
        if array.dtype.kind in "iu" and not np.array_equal(array, found):
            raise InputError(f"input {port.name!r} has numbers that are too large for {port.datatype}")
        return array


def _load_pyfunc(path: str, model_config: Mapping[str, Any] | None = None) -> Predictor:  # MLflow asks for this name
    return Predictor(path, **(model_config or {}))
