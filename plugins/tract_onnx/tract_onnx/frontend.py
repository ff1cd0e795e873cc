"""Load ONNX models."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import onnx
from google.protobuf.message import DecodeError

from tract_core.analysis.inference import InferenceModel
from tract_core.errors import CorruptModel, LimitExceeded, TractError, VersionError
from tract_core.frontend.external import ExternalFiles
from tract_core.garbage import uncollected
from tract_core.limits import DEFAULT_LIMITS, LoadLimits, spending
from tract_core.lookalikes import HEAD, recognise
from tract_core.plugins import Registry, default_registry
from tract_core.safe_files import check_size, map_path
from tract_onnx.file import OnnxFile
from tract_onnx.graph import GraphReader
from tract_onnx.local_functions import LocalFunctions
from tract_onnx.long_lists import Buffer
from tract_onnx.objects import content_of_object
from tract_onnx.ops.function_body import call_function
from tract_onnx.properties import read_properties
from tract_onnx.registry import DEFAULT_DOMAIN, ML_DOMAIN, OLDEST, ONNX, OnnxOps
from tract_onnx.tensors import TensorReader
from tract_onnx.texts import check_texts
from tract_onnx.wire_format import Skeleton, scan

if TYPE_CHECKING:
    from tract_core.analysis.findings import Examination

NEWEST: Final = onnx.defs.onnx_opset_version()
"""The newest version of the default domain's operator set: that of the installed ``onnx`` package."""

HIGHEST: Final = 1_000_000
"""The highest version of an operator set of which no newest one is known."""

_NEWEST: Final = {DEFAULT_DOMAIN: NEWEST, ML_DOMAIN: max(row[3] for row in onnx.helper.VERSION_TABLE)}


class OnnxLoader:
    """The ONNX format.

    ``registry``: the tables to ask about operators, those of the installed plugins by default. ``ignore_value_info``:
    do not rely on what the file says about tensors inside it; ``ignore_output_shapes``, ``ignore_output_types``: nor
    on what it says about its outputs. ``strict_facts``: refuse a file where that is not what its operators give.
    ``own_symbols``: sizes of inputs that have one name are each one of their own. ``growing_caches``: all rows of a
    batch have as many tokens as the attention mask is long, and caches of keys and values grow by those of a step, also
    where the file has other forms of them. ``limits``: what a file may ask for.
    """

    def __init__(
        self,
        registry: Registry | None = None,
        *,
        ignore_value_info: bool = False,
        ignore_output_shapes: bool = False,
        ignore_output_types: bool = False,
        strict_facts: bool = False,
        own_symbols: bool = False,
        growing_caches: bool = False,
        limits: LoadLimits = DEFAULT_LIMITS,
    ) -> None:
        self._registry = registry
        self._limits = limits
        self._wishes = {
            "ignore_value_info": ignore_value_info,
            "ignore_output_shapes": ignore_output_shapes,
            "ignore_output_types": ignore_output_types,
            "strict_facts": strict_facts,
            "own_symbols": own_symbols,
            "growing_caches": growing_caches,
        }

    def load(self, path: str | os.PathLike[str]) -> InferenceModel:
        """The model in a file. Weights are read in place: the file must stay as it is while the model is used.

        Raises ModelError: CorruptModel, VersionError, Unsupported, UnsafePath or LimitExceeded.
        """
        path = Path(path)
        try:
            return self._read(map_path(path, self._limits), ExternalFiles(path, self._limits), path.name)
        except TractError as error:
            raise error.at(str(path)) from error.__cause__

    def load_bytes(self, content: bytes) -> InferenceModel:
        """The model in a file's content. One that keeps tensors in other files is refused. Raises ModelError."""
        try:
            check_size(len(content), self._limits)
            return self._read(content, ExternalFiles(None, self._limits))
        except TractError as error:
            raise error.at("model") from error.__cause__

    def load_object(self, given: Any) -> InferenceModel:
        """The model of an ``onnx.ModelProto``, an ``onnx_ir.Model``, or what PyTorch's exporter returns.

        One that keeps tensors in other files is refused. Raises ModelError.
        """
        return self.load_bytes(content_of_object(given))

    def examine(self, path: str | os.PathLike[str]) -> Examination:
        """Everything that is wrong with a file, and the model in it as far as it can be read."""
        path = Path(path)
        return self._examined(lambda: map_path(path, self._limits), ExternalFiles(path, self._limits), path.name)

    def examine_bytes(self, content: bytes) -> Examination:
        """Everything that is wrong with the content of a file, and the model in it as far as it can be read."""
        return self._examined(lambda: content, ExternalFiles(None, self._limits))

    def _examined(self, read: Callable[[], Buffer], files: ExternalFiles, name: str = "") -> Examination:
        from tract_core.analysis.findings import Examination
        from tract_onnx.examine import defaults, description, undefined_attributes

        problems: list[TractError] = []
        try:
            with spending(self._limits):
                buffer = read()
                skeleton, proto = _parsed(buffer, self._limits, name)
        except TractError as error:
            return Examination(None, (error,))
        model: InferenceModel | None = None
        try:
            with spending(self._limits):
                model = self._model(proto, TensorReader(buffer, skeleton, files, self._limits), problems)
        except TractError as error:
            problems.append(error)
        remarks = *undefined_attributes(proto), *defaults(proto)
        return Examination(model, tuple(problems), remarks, description(proto))

    def _read(self, buffer: Buffer, files: ExternalFiles, name: str = "") -> InferenceModel:
        with spending(self._limits), uncollected():
            skeleton, proto = _parsed(buffer, self._limits, name)
            return self._model(proto, TensorReader(buffer, skeleton, files, self._limits))

    def _model(
        self, proto: onnx.ModelProto, tensors: TensorReader, problems: list[TractError] | None = None
    ) -> InferenceModel:
        model = InferenceModel(registry=self._registry)
        model.limits = self._limits
        model.strict_facts = self._wishes["strict_facts"]
        file = OnnxFile(
            versions=_versions(proto),
            ops=OnnxOps((self._registry or default_registry())[ONNX]),
            tensors=tensors,
            problems=problems,
            functions=LocalFunctions.of(proto.functions, call_function),
            limits=self._limits,
            **self._wishes,
        )
        GraphReader(file, proto.graph, model).add_all()
        model.properties.update(read_properties(proto))
        return model


def _parsed(buffer: Buffer, limits: LoadLimits, name: str) -> tuple[Skeleton, onnx.ModelProto]:
    """The skeleton of a file, and what is in it. Raises CorruptModel, which says what else the file is where it can."""
    try:
        skeleton = scan(buffer, limits=limits)
        return skeleton, parse(skeleton.content)
    except CorruptModel:
        found = recognise(buffer[:HEAD], name)
        if found is None:
            raise
        raise CorruptModel(f"wanted a binary ONNX file, found {found.what}", hint=found.advice) from None


def parse(content: bytes) -> onnx.ModelProto:
    """A model as the ``onnx`` package holds it. Raises CorruptModel unless it has a graph, VersionError."""
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(content)
    except (DecodeError, ValueError) as error:
        raise CorruptModel(f"it is no ONNX model: {error}") from None
    except MemoryError:
        raise LimitExceeded("there is not enough memory to parse it") from None
    if not 0 <= proto.ir_version <= onnx.IR_VERSION:
        raise VersionError(
            f"it is written in version {proto.ir_version} of the format, versions up to {onnx.IR_VERSION} are read",
            hint="update tract-onnx and onnx",
        )
    if not proto.HasField("graph"):
        raise CorruptModel("it is no ONNX model: there is no graph in it")
    check_texts(proto)
    return proto


def _versions(proto: onnx.ModelProto) -> dict[str, int]:
    """The version of each domain's operator set. Raises VersionError outside the supported range."""
    versions: dict[str, int] = {}
    for opset in proto.opset_import:
        domain = opset.domain or DEFAULT_DOMAIN
        if versions.setdefault(domain, opset.version) != opset.version:
            raise CorruptModel(
                f"it asks for versions {versions[domain]} and {opset.version} of domain {domain[:200]!r}"
            )
    if not versions:
        raise CorruptModel("it does not say which version of the operator set it uses")
    for domain, version in versions.items():
        check_version(domain, version)
    return versions


def check_version(domain: str, version: int) -> None:
    """Raises VersionError, with the supported range, for a version of an operator set that is not read."""
    oldest, newest = (OLDEST if domain == DEFAULT_DOMAIN else 1), _NEWEST.get(domain, HIGHEST)
    if not oldest <= version <= newest:
        wanted = f"{oldest} and up" if newest == HIGHEST else f"{oldest} to {newest}"
        name = "the operator set" if domain == DEFAULT_DOMAIN else f"the operators of {domain[:200]!r}"
        hint = f"convert it to version {oldest} or later" if version < oldest else "update tract-onnx and onnx"
        raise VersionError(f"it uses version {version} of {name}, versions {wanted} are read", hint=hint)
