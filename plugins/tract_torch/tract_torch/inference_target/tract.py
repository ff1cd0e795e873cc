"""Archives for the tract engines: the established one, and this project's."""

from __future__ import annotations

import copy
import logging
import platform
import sys
import warnings
from collections.abc import Mapping, Sequence
from enum import StrEnum
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Self

import torch
from tract_nnef.options import USUAL, Writing
from tract_nnef.registry import CORE, EXTRA, TRANSFORMERS
from tract_nnef.syntax.ast import Document

from tract_core.errors import InputError, ModelWarning, TractError, Unsupported
from tract_torch.arguments import chosen, of_type, path_of
from tract_torch.check.assert_io import (
    Opinion,
    all_close_map_weights,
    assert_io,
    assert_io_and_debug_bundle,
    build_io,
    debug_dumper_pytorch_to_onnx_to_nnef,
    pytorch_to_onnx_to_tract_to_nnef,
)
from tract_torch.check.debug_bundle import save_arrays, write_debug_bundle
from tract_torch.check.eager import Start, turn_of
from tract_torch.check.in_process import check_io
from tract_torch.check.interface import Interface, held_inputs, held_tensors
from tract_torch.errors import CheckError
from tract_torch.established.download import TractBinaryDownloader
from tract_torch.established.semantic_version import SemanticVersion
from tract_torch.established.tract_cli import TractCli
from tract_torch.example import Example
from tract_torch.inference_target.axes import Asked, named_axes
from tract_torch.inference_target.base import InferenceTarget
from tract_torch.inference_target.spellings import check_since, with_debox
from tract_torch.tolerance import TractCheckTolerance
from tract_torch.weights.held import quantised
from tract_torch.wiring.lowering import Lowering

__all__ = [
    "TractBinaryDownloader",
    "TractCheckTolerance",
    "TractCli",
    "TractFeatureFlag",
    "TractNNEF",
    "all_close_map_weights",
    "assert_io",
    "assert_io_and_debug_bundle",
    "build_io",
    "debug_dumper_pytorch_to_onnx_to_nnef",
    "pytorch_to_onnx_to_tract_to_nnef",
]

logger = logging.getLogger("tract_torch")

OLDEST = SemanticVersion(0, 21, 0)
"""Engines before this one read symbols and tensors in other forms."""

HALVES = SemanticVersion(0, 21, 11)
"""The first engine that reads Q4_0 in the order of ggml, which is the one that is written."""


class TractFeatureFlag(StrEnum):
    """What an engine may have been built with."""

    DEFAULT = "default"
    COMPLEX = "complex"


class TractNNEF(InferenceTarget):
    """Archives for the established engine of a version, or, with ``version=None``, for this project alone.

    Those for this project may say what the established engine has no operators for; both are read here.
    """

    OFFICIAL_SUPPORTED_VERSIONS: ClassVar[Sequence[SemanticVersion]] = (SemanticVersion(0, 23, 9),)

    def __init__(  # noqa: PLR0917 - the order of the parameters is that of the page this follows
        self,
        version: str | SemanticVersion | None,
        feature_flags: set[TractFeatureFlag] | None = None,
        check_io: bool = True,
        dynamic_axes: Asked | None = None,
        specific_tract_binary_path: Path | None = None,
        check_io_tolerance: TractCheckTolerance = TractCheckTolerance.APPROXIMATE,
        specific_properties: Mapping[str, str] | None = None,
        dump_identity_properties: bool = False,
        force_attention_inner_in_f32: bool = False,
        force_linear_accumulation_in_f32: bool = False,
        force_norm_in_f32: bool = False,
        reify_sdpa_operator: bool = False,
        upsample_with_debox: bool = False,
    ) -> None:
        """What is written, and how it is checked. Nothing is downloaded.

        ``check_io``: whether the archive is run and compared with the module, by this project's runtime, and by the
        binary of an engine where ``specific_tract_binary_path`` gives one; ``check_io_tolerance``: how closely.
        ``dynamic_axes``: ``{name: {axis: size}}``, where a size is a symbol or such as ``4*H+1``, or ``{name:
        [axis]}``; axes may be negative. ``feature_flags``: what that binary was built with. ``specific_properties``:
        texts that the archive holds, by name. ``dump_identity_properties``: whether it tells the system, the host, the
        user, the command and the time too: then no two archives are alike. ``force_..._in_f32``: whether attention and
        the sums of products are computed in 32 bits in a model of 16; normalisations are, whatever is asked.
        ``reify_sdpa_operator``: whether attention is one operator. ``upsample_with_debox``: whether images are enlarged
        by ``debox``.

        Raises InputError for what is none of that, and for an engine older than 0.21.0.
        """
        super().__init__(self.latest_version() if version is None else version, check_io)
        self.for_this_project = version is None
        if self.version < OLDEST:
            raise InputError(f"archives cannot be written for tract {self.version}", hint=f"{OLDEST} is the oldest")
        self.feature_flags = {
            chosen(TractFeatureFlag, flag, "a feature flag")
            for flag in of_type(feature_flags or (), (set, frozenset, list, tuple), "feature_flags", "a set")
        }
        if (
            self.feature_flags - {TractFeatureFlag.DEFAULT}
            and specific_tract_binary_path is None
            and version is not None
        ):
            hint = "give its specific_tract_binary_path"
            raise Unsupported(f"no release of tract {self.version} was built with complex numbers", hint=hint)
        binary = specific_tract_binary_path
        self.specific_tract_binary_path = None if binary is None else path_of(binary, "specific_tract_binary_path")
        self.check_io_tolerance = chosen(TractCheckTolerance, check_io_tolerance, "check_io_tolerance")
        self.specific_properties = _texts(specific_properties)
        self.dump_identity_properties = dump_identity_properties
        self.force_attention_inner_in_f32 = force_attention_inner_in_f32
        self.force_linear_accumulation_in_f32 = force_linear_accumulation_in_f32
        self.force_norm_in_f32 = force_norm_in_f32
        self.reify_sdpa_operator = reify_sdpa_operator
        self.upsample_with_debox = upsample_with_debox
        self._dynamic_axes = named_axes(dynamic_axes)

    # --- versions, and targets like this one ---

    @classmethod
    def latest_version(cls) -> SemanticVersion:
        """The newest version that archives are tested with."""
        return cls.OFFICIAL_SUPPORTED_VERSIONS[0]

    @classmethod
    def latest(cls, **options: Any) -> Self:
        """A target of that version. ``options``: those of the constructor."""
        return cls(cls.latest_version(), **options)

    @property
    def dynamic_axes(self) -> Mapping[str, Mapping[int, str]]:
        """The symbols of sizes that may be others, by the name of the tensor and the axis, which may be negative."""
        return self._dynamic_axes

    def with_dynamic_axes(self, dynamic_axes: Asked | None) -> Self:
        """A target like this one, with other dynamic axes."""
        other = copy.deepcopy(self)
        other._dynamic_axes = named_axes(dynamic_axes)
        return other

    def with_check_io_tolerance(self, check_io_tolerance: TractCheckTolerance) -> Self:
        """A target like this one, with another tolerance."""
        other = copy.deepcopy(self)
        other.check_io_tolerance = chosen(TractCheckTolerance, check_io_tolerance, "check_io_tolerance")
        return other

    def with_specific_properties(self, specific_properties: Mapping[str, str] | None) -> Self:
        """A target like this one, with other properties."""
        other = copy.deepcopy(self)
        other.specific_properties = _texts(specific_properties)
        return other

    # --- what an export asks ---

    @property
    def lowering(self) -> Lowering:
        """As the flags say."""
        return Lowering(
            attention_in_f32=self.force_attention_inner_in_f32,
            linear_in_f32=self.force_linear_accumulation_in_f32,
            keep_attention=self.reify_sdpa_operator,
        )

    @property
    def keeps_states(self) -> bool:
        """Whether this project runs it: the established engine takes first values of states for those of all calls."""
        return self.for_this_project

    def writing(self) -> Writing:
        """The registries that the engine has; what only this project reads for this project alone."""
        registries = {CORE, EXTRA}
        if self.version >= "0.22.0":
            registries.add(TRANSFORMERS)
        return Writing(registries=USUAL | registries if self.for_this_project else frozenset(registries))

    def specific_metadata(self, model: torch.nn.Module) -> dict[str, str]:
        """What wrote the archive, from what class; who, where and when only if that was asked for."""
        found = {
            "tract_target_version": str(self.version),
            "tract_torch_version": _version("tract-torch"),
            "torch_version": torch.__version__,
            "exported_py_class": type(model).__name__,
        }
        if "transformers" in sys.modules:
            found["transformers_version"] = _version("transformers")
        if self.dump_identity_properties:
            found |= _identity()
        return found | self.specific_properties

    def specific_fragments(self, model: torch.nn.Module) -> dict[str, str]:
        """None: what archives say of themselves is written with them."""
        return {}

    def pre_trace(
        self, model: torch.nn.Module, input_names: Sequence[str] | None, output_names: Sequence[str] | None
    ) -> None:
        """Look at the names of dynamic axes. Those of outputs need no symbols: they are found. Raises InputError."""
        held = next(iter(quantised(model)), None) if self.version < HALVES else None
        if held is not None and not self.for_this_project:
            problem = f"tract {self.version} reads the blocks of {held!r} in another order"
            raise Unsupported(problem, hint=f"target {HALVES} or newer, or put decompress() of it in its place")
        outputs = set(output_names or ()).difference(input_names or ())
        for name in sorted(outputs.intersection(self._dynamic_axes)):
            warnings.warn(
                ModelWarning(f"dynamic_axes of the output {name!r} mean nothing: they are found"), stacklevel=2
            )

    def post_trace(self, nnef_graph: Document, active_custom_extensions: list[str]) -> Document:
        """The document in the words of the engine. Raises Unsupported for operators that it does not have yet."""
        document = with_debox(nnef_graph) if self.upsample_with_debox else nnef_graph
        check_since(document, self.version)
        return document

    def post_export(
        self,
        model: torch.nn.Module,
        nnef_graph: Document,
        args: Sequence[Any] | Mapping[str, Any],
        exported_filepath: Path,
        debug_bundle_path: Path | None = None,
    ) -> None:
        """Run the archive, and compare with the module. Raises CheckError, where a debug bundle is written."""
        if not self.check_io:
            return
        try:
            self.report = check_io(
                model,
                exported_filepath,
                args,
                input_names=nnef_graph.graph.inputs,
                output_names=nnef_graph.graph.outputs,
                dynamic_axes=self.dynamic_axes,
                tolerance=self.check_io_tolerance,
                lowering=self.lowering,
            )
            logger.info("%s", self.report)
            self._check_by_binary(model, nnef_graph, args, exported_filepath)
        except TractError as error:
            if debug_bundle_path is not None:
                with TemporaryDirectory() as folder:
                    inputs, outputs = _saved(model, nnef_graph, args, Path(folder), error)
                    write_debug_bundle(
                        debug_bundle_path,
                        exported_filepath,
                        error,
                        input_bundle_path=inputs,
                        output_bundle_path=outputs,
                        tolerance=self.check_io_tolerance,
                        second=Opinion(model, args, None),
                    )
            raise

    def _command(self) -> TractCli | None:
        """That of ``specific_tract_binary_path``. Raises InputError where it is of another version."""
        if self.specific_tract_binary_path is None:
            return None
        command = TractCli(self.specific_tract_binary_path)
        if not command.is_own and command.version != self.version:
            problem = f"{command.tract_path} is tract {command.version}, the archive is for {self.version}"
            raise InputError(problem, hint="give the same version to both")
        return command

    def _check_by_binary(self, model: torch.nn.Module, document: Document, args: Any, archive: Path) -> None:
        """Let the engine compare too, where there is one. Raises CheckError, CommandError."""
        command = self._command()
        if command is not None:
            with TemporaryDirectory() as folder:
                inputs, outputs = _saved(model, document, args, Path(folder), None)
                command.assert_io(
                    archive,
                    check_tolerance=self.check_io_tolerance,
                    input_bundle_path=inputs,
                    output_bundle_path=outputs,
                )


def _saved(
    model: torch.nn.Module, document: Document, args: Any, folder: Path, error: TractError | None
) -> tuple[Path, Path]:
    """Files of the inputs and the outputs that an error tells of, else of those of the example."""
    inputs = error.inputs if isinstance(error, CheckError) else None
    outputs = error.outputs if isinstance(error, CheckError) else None
    if inputs is None or outputs is None:
        graph = document.graph
        example, held = Example.of(model, args, None), held_inputs(model, graph.inputs, graph.outputs)
        arguments = dict(zip((name for name in graph.inputs if name not in held), example.names, strict=True))
        interface = Interface(graph.inputs, graph.outputs, arguments, held)
        start = Start(example, held_tensors(model, held.values()))
        inputs = dict(zip(graph.inputs, interface.given(start), strict=True))
        outputs = dict(zip(graph.outputs, interface.wanted(start, turn_of(model, start)), strict=False))
    return save_arrays(folder / "inputs.npz", inputs), save_arrays(folder / "outputs.npz", outputs)


def _texts(properties: Mapping[str, str] | None) -> dict[str, str]:
    found = dict(of_type(properties or {}, Mapping, "specific_properties", "a mapping of names to texts"))
    for name, text in found.items():
        if not isinstance(name, str) or not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            raise InputError(f"the property {name!r} is {text!r}, wanted texts")
    return found


def _version(distribution: str) -> str:
    try:
        return installed(distribution)
    except PackageNotFoundError:
        return "unknown"


def _identity() -> dict[str, str]:
    import getpass
    from datetime import UTC, datetime

    return {
        "os": platform.platform(),
        "hostname": platform.node(),
        "user": getpass.getuser(),
        "py_version": platform.python_version(),
        "export_date": datetime.now(UTC).isoformat(timespec="seconds"),
        "export_cmd": " ".join(sys.argv),
    }
