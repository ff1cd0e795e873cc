"""Archives checked by a command `tract`, on inputs and outputs in files; and a second opinion by way of ONNX."""

from __future__ import annotations

import gc
import importlib.util
import logging
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import torch
from tract_nnef.archive.tensors import read_tensor

import tract_core as tract
from tract_core.errors import InputError, TractError, Unsupported
from tract_core.frozen import frozen
from tract_torch.arguments import module_of, of_type, path_of
from tract_torch.capture.exporting import evaluating
from tract_torch.check.debug_bundle import ONNX_ARCHIVE, ONNX_FILE, ONNX_FOLDER, save_arrays, write_debug_bundle
from tract_torch.check.eager import Start, turn_of
from tract_torch.errors import CheckError, OnnxExportError
from tract_torch.established.tract_cli import Paths, TractCli
from tract_torch.example import Example
from tract_torch.naming import flat_names, named_results, plain
from tract_torch.tensors import array_of
from tract_torch.tolerance import TractCheckTolerance, difference
from tract_torch.wiring.lowering import StatesOption
from tract_torch.wiring.states import after

logger: Final = logging.getLogger("tract_torch")

VARIABLE: Final = "T2N_CHECK_IO_RAISE_EXCEPTION"
"""Where the environment has ``0`` under this name, outputs that differ are told in the log only."""


def build_io(  # noqa: PLR0917 - the order of the parameters is that of what this follows
    model: torch.nn.Module,
    test_input: Any,
    input_bundle_path: Paths | None = None,
    output_bundle_path: Paths | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    *,
    io_npz_path: Paths | None = None,
    states: StatesOption = "refuse",
) -> tuple[list[str], list[str]]:
    """Run a module, and save what goes in and what comes out under their names, which are returned.

    ``test_input``, ``input_names``, ``output_names``: as the exporter takes them. Files: one for each side, or
    ``io_npz_path`` for both. Floats of 16 bits are saved in 32, which every engine reads. ``states``: as the exporter
    has it; with "inputs" buffers that the module changes are on both sides, with "inside" on none. Raises InputError,
    and Unsupported where the module changes buffers and nothing is said of that.
    """
    example = Example.of(model, test_input, input_names)
    turn = turn_of(model, Start(example))
    names = flat_names(output_names, named_results(turn.result), "output", lambda leaf: leaf is not None)
    given = {name: array_of(tensor) for name, tensor in example.tensors().items()}
    wanted = dict(zip(names, turn.outputs, strict=True))
    if turn.held and states == "refuse":
        hint = "states='inputs' is for archives that take it and give it back, states='inside' for those that keep it"
        raise Unsupported(f"the module changes what it holds: {', '.join(turn.held)}", hint=hint)
    if states == "inputs":
        held = {name: buffer for name, buffer in model.named_buffers() if name in turn.held}
        given |= {plain(name): array_of(buffer) for name, buffer in held.items()}
        changed = {plain(name): turn.held[name] for name in held} | dict(turn.changed)
        wanted |= {after(name): array_of(tensor) for name, tensor in changed.items()}
    for path, arrays in ((input_bundle_path, given), (output_bundle_path, wanted), (io_npz_path, given | wanted)):
        if path is not None:
            save_arrays(Path(path), arrays)
    return list(given), list(wanted)


def assert_io(  # noqa: PLR0917 - the order of the parameters is that of the page this follows
    model: torch.nn.Module | None = None,
    test_input: Any = None,
    nnef_file_path: Paths | None = None,
    tract_cli: TractCli | None = None,
    io_npz_path: Paths | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    check_tolerance: TractCheckTolerance | str = TractCheckTolerance.EXACT,
    *,
    input_bundle_path: Paths | None = None,
    output_bundle_path: Paths | None = None,
    states: StatesOption = "refuse",
) -> None:
    """Let a command check that an archive gives what a module does, on ``test_input``; without it, on saved files.

    ``io_npz_path``: where the inputs and outputs are kept; those of a file that is there are taken as they are. Without
    ``model``, ``input_bundle_path`` and ``output_bundle_path`` hold them. ``states``: what the archive does with
    buffers that the model changes, as `build_io` has it. The model is let go before the archive is run.

    Raises CheckError where they differ, unless the environment says otherwise (`VARIABLE`), CommandError where the
    command cannot be run.
    """
    archive, command = _asked(model, nnef_file_path, tract_cli)
    with TemporaryDirectory() as folder:
        files = _Files.of(model, io_npz_path, input_bundle_path, output_bundle_path, folder)
        files.fill(model, test_input, input_names, output_names, states)
        del model, test_input
        gc.collect()
        raises = os.environ.get(VARIABLE, "1") != "0"
        command.assert_io(
            archive,
            None,
            check_tolerance,
            raises,
            input_bundle_path=files.inputs,
            output_bundle_path=files.outputs,
        )


def assert_io_and_debug_bundle(  # noqa: PLR0917 - the order of the parameters is that of the page this follows
    model: torch.nn.Module | None = None,
    test_input: Any = None,
    nnef_file_path: Paths | None = None,
    tract_cli: TractCli | None = None,
    io_npz_path: Paths | None = None,
    debug_bundle_path: Paths | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    check_tolerance: TractCheckTolerance | str = TractCheckTolerance.EXACT,
    *,
    input_bundle_path: Paths | None = None,
    output_bundle_path: Paths | None = None,
    states: StatesOption = "refuse",
) -> None:
    """`assert_io`; where it raises, and ``debug_bundle_path`` is given, what is needed to find out why is there.

    That is a folder, or a ``.tgz``: see `tract_torch.check.debug_bundle.write_debug_bundle`.
    """
    archive, command = _asked(model, nnef_file_path, tract_cli)
    with TemporaryDirectory() as folder:
        files = _Files.of(model, io_npz_path, input_bundle_path, output_bundle_path, folder)
        files.fill(model, test_input, input_names, output_names, states)
        try:
            assert_io(
                nnef_file_path=archive,
                tract_cli=command,
                check_tolerance=check_tolerance,
                input_bundle_path=files.inputs,
                output_bundle_path=files.outputs,
            )
        except TractError as error:
            if debug_bundle_path is not None:
                second = None if model is None else Opinion(model, test_input, command)
                write_debug_bundle(
                    debug_bundle_path,
                    archive,
                    error,
                    input_bundle_path=files.inputs,
                    output_bundle_path=files.outputs,
                    tolerance=check_tolerance,
                    command=command,
                    second=second,
                )
            raise


def _asked(model: object, archive: Paths | None, command: TractCli | None) -> tuple[Path, TractCli]:
    """Raises InputError for what is missing, or in the wrong place."""
    if model is not None and not isinstance(model, torch.nn.Module):
        hint = "without a module, give everything by name: nnef_file_path=..., tract_cli=..., input_bundle_path=..."
        raise InputError(f"model is {type(model).__name__}, wanted a torch.nn.Module", hint=hint)
    if archive is None or command is None:
        missing = "nnef_file_path" if archive is None else "tract_cli"
        raise InputError(f"{missing} is not given")
    path = path_of(archive, "nnef_file_path")
    if not path.exists():
        raise InputError("there is no such archive", where=str(path))
    return path, of_type(command, TractCli, "tract_cli", "a TractCli")


@frozen
class _Files:
    """Where inputs and outputs are, which may be one file."""

    inputs: Path
    outputs: Path

    @staticmethod
    def of(model: object, both: Paths | None, inputs: Paths | None, outputs: Paths | None, folder: str) -> _Files:
        """Those that are given, else some in a folder. Raises InputError where a module is missing to make them."""
        if both is not None:
            return _Files(Path(both), Path(both))
        if model is None and (inputs is None or outputs is None):
            raise InputError("without a module, input_bundle_path and output_bundle_path have to be given")
        return _Files(Path(inputs or f"{folder}/inputs.npz"), Path(outputs or f"{folder}/outputs.npz"))

    def fill(
        self,
        model: torch.nn.Module | None,
        test_input: Any,
        inputs: Sequence[str] | None,
        outputs: Sequence[str] | None,
        states: StatesOption,
    ) -> None:
        """Write them, unless they are there."""
        if model is None or self.outputs.exists():
            return
        if self.inputs == self.outputs:
            build_io(model, test_input, None, None, inputs, outputs, io_npz_path=self.inputs, states=states)
        else:
            build_io(model, test_input, self.inputs, self.outputs, inputs, outputs, states=states)


def all_close_map_weights(weight_map_file_paths: Mapping[Path, Path]) -> None:
    """Compare tensors in ``.dat`` files, each with the one that it is mapped to, as ``approximate`` does.

    Raises CheckError, naming both files, for the first ones that differ, InputError for one that cannot be read.
    """
    for path, other in weight_map_file_paths.items():
        found, wanted = (np.asarray(read_tensor(_content(one), str(one))) for one in (path, other))
        one = difference(str(path), found, wanted, TractCheckTolerance.APPROXIMATE)
        if one.problem:
            raise CheckError(f"its tensor is not that of {other}: {one.problem}", where=str(path))


def _content(path: Path) -> np.ndarray[Any, Any]:
    try:
        return np.fromfile(path, np.uint8)
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror}", where=str(path)) from None


# --- by way of ONNX ---------------------------------------------------------------------------------------------------


class Opinion:
    """A module and what it is called with, for `debug_dumper_pytorch_to_onnx_to_nnef` to look at."""

    def __init__(self, model: torch.nn.Module, test_input: Any, tract_cli: TractCli | None) -> None:
        self.model = model
        self.test_input = test_input
        self.tract_cli = tract_cli

    def __call__(self, folder: Path) -> None:
        """Write it into a folder. Failures are noted there."""
        debug_dumper_pytorch_to_onnx_to_nnef(self.model, self.test_input, folder, self.tract_cli, False)


def debug_dumper_pytorch_to_onnx_to_nnef(
    model: torch.nn.Module,
    test_input: Any,
    target_folder: Paths,
    tract_cli: TractCli | None,
    raise_export_error: bool = True,
) -> bool:
    """Export a module by PyTorch's own exporter to ONNX, and make an archive of that, beside it in a folder.

    By ``tract_cli``, or, for None, by this project's loader. Returns whether that could be done. Raises OnnxExportError
    where it could not; without ``raise_export_error`` the reason is in a file of the folder.
    """
    module_of(model)
    folder = path_of(target_folder, "target_folder")
    made = folder / ONNX_FOLDER
    try:
        made.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"it is no folder to write to: {error.strerror}", where=str(folder)) from None
    try:
        pytorch_to_onnx_to_tract_to_nnef(model, test_input, folder / ONNX_FILE, made / ONNX_ARCHIVE, tract_cli)
    except TractError as error:
        (made / "tract_convert_error.log").write_text(f"{error}\n")
        if raise_export_error:
            raise
        logger.warning("by way of ONNX: %s", error)
        return False
    return True


def pytorch_to_onnx_to_tract_to_nnef(
    model: torch.nn.Module, test_input: Any, onnx_path: Paths, nnef_path: Paths, tract_cli: TractCli | None = None
) -> None:
    """Write an ONNX file of a module, and the archive that a command, or this project's loader, makes of it.

    Raises OnnxExportError, saying which of the two steps failed.
    """
    example = Example.of(model, test_input, None)
    _export_onnx(model, example, Path(onnx_path))
    try:
        if tract_cli is None:
            tract.nnef().write_model_to_tar_gz(tract.onnx().load(onnx_path).into_model(), nnef_path)
            return
        with TemporaryDirectory() as folder:
            inputs = Path(folder) / "inputs.npz"
            build_io(model, test_input, inputs, states="inside")
            tract_cli.convert_onnx_to_nnef(onnx_path, inputs, nnef_path)
    except TractError as error:
        raise OnnxExportError(f"what was exported to ONNX becomes no archive: {error}") from error


def _export_onnx(model: torch.nn.Module, example: Example, path: Path) -> None:
    if importlib.util.find_spec("onnxscript") is None:
        raise OnnxExportError("PyTorch exports to ONNX with the package onnxscript only", hint="pip install onnxscript")
    try:
        with evaluating(model), torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            torch.onnx.export(
                model,
                example.args,
                path,
                kwargs=example.keywords,
                input_names=list(example.names),
                dynamo=True,
                verbose=False,
                external_data=False,
            )
    except Exception as error:  # whatever it is, it is PyTorch's
        reason = (str(error).strip().splitlines() or [""])[0]
        raise OnnxExportError(f"PyTorch cannot export it to ONNX: {type(error).__name__}: {reason}") from error
