"""The writer of the format: a model becomes a file, with its tensors in it or in a second file beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import onnx
from onnx import helper

from tract_core.data import Constant, DatumType
from tract_core.errors import InputError, Unwritable
from tract_core.model.typed import TypedModel
from tract_core.saving import whole_file
from tract_core.version import version
from tract_onnx.operators import ML_DOMAIN
from tract_onnx.properties import write_properties
from tract_onnx.writing.elements import bytes_of, code_of, tensor_of
from tract_onnx.writing.graph import GraphWriter

OLDEST: Final = 17
USUAL: Final = 21
"""Versions of the operators that are written: from which on, and which, unless another is asked for."""

_FORMATS: Final = {17: 8, 18: 8, 19: 9, 20: 9, 21: 10, 22: 10, 23: 11, 24: 12, 25: 13, 26: 13}
"""The version of the file's own format that came with those of the operators."""

_ML_VERSION: Final = {"TreeEnsemble": 5}
"""The version of the operators of ``ai.onnx.ml`` that has one of these; the others are there in `_ML_USUAL`."""

_ML_USUAL: Final = 4

LARGEST: Final = (1 << 31) - (1 << 20)
"""Bytes of tensors that a file may hold: protobuf takes no more than 2 GB."""

_BESIDE: Final = 1 << 10
"""Bytes from which on a tensor lies in the second file, where there is one."""

_ALIGNED: Final = 4096
"""Bytes at multiples of which tensors of the second file begin, so that they can be mapped."""


class OnnxWriter:
    """Writes ONNX files.

    ``opset``: the version of the operators, from 17 on. ``external_data``: whether tensors lie in a file beside, of the
    same name with ``.data`` behind it; else only where they are too large for one file.
    """

    def __init__(self, *, opset: int = USUAL, external_data: bool = False) -> None:
        """Raises InputError for a version that is not written."""
        if not (isinstance(opset, int) and OLDEST <= opset <= max(_FORMATS)):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            raise InputError(f"opset is {opset!r}, wanted a number from {OLDEST} to {max(_FORMATS)}")
        self._opset, self._external = opset, external_data

    def write(self, model: TypedModel, path: Path) -> None:
        """Write a file, whole or not at all. Raises Unwritable, with all that the format has no words for."""
        made, held = self._model(model)
        if not self._external and sum(one.array.nbytes for one in held.values()) <= LARGEST:
            _add_all(made, held)
            with whole_file(path) as file:
                file.write(made.SerializeToString())
            return
        beside = path.with_name(f"{path.name}.data")
        with whole_file(beside) as data, whole_file(path) as file:
            at = 0
            for name, value in held.items():
                if value.array.nbytes < _BESIDE or value.datum_type is DatumType.STRING:
                    made.graph.initializer.append(tensor_of(name, value))
                    continue
                at += data.write(bytes(-at % _ALIGNED))
                content = bytes_of(value.array, value.datum_type)
                made.graph.initializer.append(_elsewhere(name, value, beside.name, at, len(content)))
                at += data.write(content)
            file.write(made.SerializeToString())

    def to_bytes(self, model: TypedModel) -> bytes:
        """The content of a file. Raises Unwritable, also where that were too large."""
        made, held = self._model(model)
        if sum(one.array.nbytes for one in held.values()) > LARGEST:
            raise Unwritable("its tensors have more than 2 GB, which one file cannot hold", hint="write it to a path")
        _add_all(made, held)
        return made.SerializeToString()

    def _versions(self, graph: onnx.GraphProto) -> dict[str, int]:
        """The version of the operators, by domain."""
        used = _operators(graph)
        wanted = [_ML_VERSION.get(name, _ML_USUAL) for domain, name in used if domain == ML_DOMAIN]
        return {"": self._opset, **({ML_DOMAIN: max(wanted)} if wanted else {})}

    def _model(self, model: TypedModel) -> tuple[onnx.ModelProto, dict[str, Constant]]:
        writer = GraphWriter(model, self._opset)
        graph = writer.write()
        made = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid(domain, one) for domain, one in self._versions(graph).items()],
            ir_version=_FORMATS[self._opset],
            producer_name="tract",
            producer_version=version(),
        )
        write_properties(made, model.properties)
        _check(made, writer.held)
        return made, writer.held


def _check(made: onnx.ModelProto, held: dict[str, Constant]) -> None:
    """Raises Unwritable for what ONNX's own checks refuse, as an operator that does not take a type."""
    checked = onnx.ModelProto()
    checked.CopyFrom(made)
    for name, value in held.items():
        is_small = value.array.nbytes < _BESIDE or value.datum_type is DatumType.STRING
        checked.graph.initializer.append(tensor_of(name, value) if is_small else _elsewhere(name, value, name, 0, 0))
    try:
        onnx.shape_inference.infer_shapes(checked, check_type=True, strict_mode=True)
    except onnx.shape_inference.InferenceError as error:
        hint = "take a newer version of the operators (opset), or another element type"
        raise Unwritable(f"the format does not have it so: {str(error).strip()[:500]}", hint=hint) from None


def _operators(graph: onnx.GraphProto) -> set[tuple[str, str]]:
    """The domains and names of all operators, in bodies too."""
    bodies = [one.g for node in graph.node for one in node.attribute if one.HasField("g")]
    return {(node.domain, node.op_type) for node in graph.node}.union(*map(_operators, bodies))


def _add_all(made: onnx.ModelProto, held: dict[str, Constant]) -> None:
    made.graph.initializer.extend(tensor_of(name, value) for name, value in held.items())


def _elsewhere(name: str, value: Constant, place: str, offset: int, length: int) -> onnx.TensorProto:
    """A tensor whose elements lie in another file."""
    made = onnx.TensorProto(name=name, data_type=code_of(value.datum_type), dims=value.array.shape)
    made.data_location = onnx.TensorProto.EXTERNAL
    for key, text in (("location", place), ("offset", str(offset)), ("length", str(length))):
        made.external_data.add(key=key, value=text)
    return made
