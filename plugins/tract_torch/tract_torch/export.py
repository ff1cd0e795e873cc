"""From a module of PyTorch to an archive, which is checked before it is there."""

from __future__ import annotations

import logging
import os
import time
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree
from tract_nnef.documents.saver import NnefWriter
from tract_nnef.syntax.ast import Document
from tract_nnef.syntax.names import is_plain
from tract_nnef.syntax.parser import parse_fragments

from tract_core.errors import InputError, ModelWarning, TractError, Unsupported
from tract_core.model.typed import TypedModel
from tract_core.saving import tried_first
from tract_torch.arguments import chosen, path_of
from tract_torch.capture.dynamic import Linear
from tract_torch.capture.exporting import exported_program
from tract_torch.capture.refusals import check_module
from tract_torch.example import Example
from tract_torch.inference_target.axes import counted_axes
from tract_torch.inference_target.base import InferenceTarget
from tract_torch.loading import model_of
from tract_torch.naming import (
    VariableNamingScheme,
    check_archive_names,
    check_names,
    flat_names,
    named_results,
    plain,
)
from tract_torch.speaking import logger, speaking
from tract_torch.weights.held import Weights, weights_in_place
from tract_torch.wiring.lowering import StatesOption


def export_model_to_nnef(  # noqa: PLR0917 - the order of the parameters is that of the page this follows
    model: torch.nn.Module,
    args: Any,
    file_path_export: str | os.PathLike[str],
    inference_target: InferenceTarget,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    compression_level: int | None = 0,
    log_level: int = logging.INFO,
    nnef_variable_naming_scheme: VariableNamingScheme | str = VariableNamingScheme.NATURAL_VERBOSE,
    check_io_names_qte_match: bool = True,
    debug_bundle_path: str | os.PathLike[str] | None = None,
    custom_extensions: Sequence[str] | None = None,
    allow_same_io_names: bool = False,
    keep_parameters: bool = True,
    weights: Weights | None = None,
    *,
    states: StatesOption = "refuse",
) -> Path:
    """Write the archive of a module, as it computes in evaluation mode, and return where it is.

    ``args``: what the module is called with in the example: a tensor, a list or tuple of arguments of any structure, or
    a mapping of the names of arguments to them; what is no tensor becomes part of the model. ``file_path_export``: its
    name holds ``.nnef``. ``inference_target``: whom the archive is for, how sizes may vary, and how it is checked.
    ``input_names``, ``output_names``: one for each argument and result, to which tensors in containers add their keys,
    or one for each tensor; by default ``input_0`` and ``output_0`` and so on, or the names of keyword arguments.
    ``compression_level``: None for a folder, 0 for a tar, whose weights can be mapped into memory, 1 to 9 for a
    compressed one. ``log_level``: from which on the logger ``tract_torch`` speaks meanwhile.
    ``nnef_variable_naming_scheme``: how tensors in between are called. ``check_io_names_qte_match``: whether there have
    to be as many names as inputs and outputs; else names of outputs that are too many are left out.
    ``debug_bundle_path``: a folder or ``.tgz`` that is written where the check fails. ``custom_extensions``: lines for
    the head, as ``tract_assert P >= 0``. ``allow_same_io_names``: whether an output may have the name of an input.
    ``keep_parameters``: whether parameters are as they are in the module, under their names, so that `patch_archive`
    finds them; else they are folded, as batch normalisation is into convolutions, which otherwise whoever loads the
    archive does. ``weights``: a file or a mapping of those to take in the place of the module's own, as `load` has it.

    ``states``: what becomes of buffers that the module changes while it is called. "refuse" names them. With "inputs"
    each of them is an input and an output of the archive, behind the others, and no tensor of it: ``memory_last`` and
    ``memory_last_out`` for ``memory.last``. ``input_names`` and ``output_names`` are those of the others. An argument
    that is changed in place is an output ``NAME_out`` then. With "inside" a running model keeps them, from what they
    hold in the module on, which archives for this project alone can say.

    The archive is there once it is checked, or not at all; the module stays as it is. Raises InputError for what cannot
    be asked, Unsupported for what cannot be exported or written, CheckError where the archive computes something else.
    """
    bundle = None if debug_bundle_path is None else path_of(debug_bundle_path, "debug_bundle_path")
    path, container = _place_of(file_path_export, compression_level)
    scheme = chosen(VariableNamingScheme, nnef_variable_naming_scheme, "nnef_variable_naming_scheme")
    job = _Job(model, inference_target, scheme, keep_parameters, states)
    inference_target.report = None
    with speaking(log_level), weights_in_place(model, weights):
        job.prepare(args, input_names, output_names, check_io_names_qte_match)
        with tried_first(path) as unchecked:
            document = job.saved(unchecked, container, compression_level, allow_same_io_names, custom_extensions)
            job.check(document, unchecked, bundle)
        if inference_target.report is not None:
            inference_target.report.archive = str(path)
        logger.info("%s is written", path)
    return path


class _Job:
    """One export, step by step."""

    def __init__(
        self,
        model: torch.nn.Module,
        target: InferenceTarget,
        scheme: VariableNamingScheme,
        keep_parameters: bool,
        states: StatesOption,
    ) -> None:
        check_module(model)
        if not isinstance(target, InferenceTarget):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
            raise InputError(f"inference_target is {type(target).__name__}", hint="TractNNEF(...) is one")
        if states == "inside" and not target.keeps_states:
            whom = f"{type(target).__name__} {target.version}"
            hint = "states='inputs' makes inputs and outputs of them; archives of TractNNEF(None) can keep them"
            raise Unsupported(f"an archive for {whom} cannot keep states inside a running model", hint=hint)
        self.model, self.target, self.scheme, self.keep_parameters = model, target, scheme, keep_parameters
        self.states: StatesOption = states
        self.parameters: frozenset[str] = frozenset()

    def prepare(self, args: Any, inputs: Sequence[str] | None, outputs: Sequence[str] | None, exact: bool) -> None:
        """Look at the example and the names. Raises InputError."""
        self.example = Example.of(self.model, args, inputs)
        for value in self.example.constants():
            message = f"{value!r} in the example is no tensor, and becomes part of the model"
            warnings.warn(ModelWarning(message), stacklevel=4)
        self.output_names, self.exact = outputs, exact
        self.target.pre_trace(self.model, list(self.example.names), outputs)
        found = set(outputs or ()).difference(self.example.names)  # axes of outputs are found, not asked
        asked = {name: axes for name, axes in self.target.dynamic_axes.items() if name not in found}
        self.axes = counted_axes(asked, self.example.tensors())

    def typed(self, allow_same_io_names: bool) -> TypedModel:
        """The model, with its properties."""
        example = self._enlarged()
        shapes = example.dynamic_shapes(self.axes) if self.axes else None
        with _timed("export"):
            program = exported_program(self.model, example.args, example.keywords, shapes)
        outputs = self._outputs(program)
        both = sorted(set(outputs).intersection(self.example.names))
        if both and not allow_same_io_names:
            hint = "give it another name, or allow_same_io_names where it is the same tensor"
            raise InputError(f"{both[0]!r} is the name of an input and of an output", hint=hint)
        self.parameters = frozenset(program.state_dict)
        symbols = (Linear.of(size).symbol for axes in self.axes.values() for size in axes.values())
        named = [name for name in outputs if name]
        check_archive_names(self.example.names, named, [*self.parameters, *symbols])
        with _timed("wire"):
            how = {"naming": self.scheme, "keep_parameters": self.keep_parameters, "states": self.states}
            lowering = replace(self.target.lowering, **how)
            found = model_of(program, shapes, self.example.names, outputs, lowering).typed
        self._name_states(found, len(named))
        for name, text in self.target.specific_metadata(self.model).items():
            found.properties[name] = np.array(text, object)
        return found

    def _name_states(self, typed: TypedModel, results: int) -> None:
        """Let inputs and outputs that are buffers have names that archives can have. Raises InputError."""
        inputs, outputs = typed.inputs[len(self.example.names) :], typed.outputs[results:]
        for outlet in (*inputs, *outputs):
            typed.set_label(outlet, plain(typed.outlet_name(outlet)))
        names = [[typed.outlet_name(outlet) for outlet in several] for several in (typed.inputs, typed.outputs)]
        check_names(names[0], "input")
        check_names(names[1], "output")
        self.parameters -= {name for name in self.parameters if plain(name) in names[0]}

    def _enlarged(self) -> Example:
        """The example with symbols of 2 and more: `torch.export` takes 0 and 1 as numbers for good."""
        tensors = self.example.tensors()
        for name, axes in self.axes.items():
            for axis, text in axes.items():
                size = Linear.of(text)
                value = size.solved(tensors[name].shape[axis])
                if value is not None and value < 2:
                    tensors[name] = _of_size(tensors[name], axis, size.size(2))
        return self.example.with_tensors(tensors)

    def _outputs(self, program: torch.export.ExportedProgram) -> list[str]:
        """The names of all outputs."""
        signature = program.module_call_graph[0].signature
        (values,) = next(node for node in program.graph.nodes if node.op == "output").args
        count = len(program.graph_signature.user_outputs)
        leaves = [getattr(value, "meta", {}).get("val", value) for value in values[len(values) - count :]]
        tree = pytree.tree_unflatten(leaves, signature.out_spec) if signature is not None else tuple(leaves)
        results = named_results(tree)
        wanted = self.output_names
        if wanted is not None and not self.exact and len(wanted) > len(results):
            wanted = wanted[: len(results)]
        names = iter(flat_names(wanted, results, "output", lambda leaf: leaf is not None))
        return ["" if leaf is None else next(names) for leaf in leaves]

    def saved(
        self, path: Path, container: str, level: int | None, allow_same_io_names: bool, lines: Sequence[str] | None
    ) -> Document:
        """The document of the archive, which is at ``path`` then. Raises Unsupported, with the class of the module.

        The model ends with this, so that the check has its memory.
        """
        typed = self.typed(allow_same_io_names)
        extensions = _extensions(typed, lines)
        how = replace(self.target.writing(), held=self.parameters, level=level or None)
        writer = NnefWriter(container=container, how=how)
        try:
            with _timed("write"):
                written = writer.document(typed)
                written.document = self._finished(written.document, extensions)
        except TractError as error:
            raise error.at(type(self.model).__name__) from error.__cause__
        with _timed("save"):
            writer.write_files(writer.files_of(written), path)
        return written.document

    def check(self, document: Document, path: Path, bundle: Path | None) -> None:
        """As the target does. Raises CheckError."""
        with _timed("check"):
            given = dict(self.example.parameters) if self.example.keywords else self.example.args
            self.target.post_export(self.model, document, given, path, bundle)

    def _finished(self, document: Document, extensions: list[str]) -> Document:
        """The document as the target wants it."""
        found = self.target.post_trace(document, extensions)
        texts = self.target.specific_fragments(self.model)
        fragments = tuple(one for text in texts.values() for one in parse_fragments(text))
        return replace(found, extensions=(*found.extensions, *extensions), fragments=(*found.fragments, *fragments))


def _of_size(x: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    """The same with more elements along an axis: those that are there again, or zeros."""
    if not x.shape[axis]:
        return x.new_zeros([size if place == axis else other for place, other in enumerate(x.shape)])
    return torch.cat([x] * -(-size // x.shape[axis]), axis).narrow(axis, 0, size)


def _place_of(given: str | os.PathLike[str], level: int | None) -> tuple[Path, str]:
    """Where the archive will be, and in what it is: a folder, ``tar`` or ``tgz``. Raises InputError."""
    path = path_of(given, "file_path_export")
    name = path.name.lower()
    if ".nnef" not in name:
        hint = f"{path}.nnef would do" if name else "as in classifier.nnef"
        raise InputError("the name of an archive holds '.nnef'", where=str(given), hint=hint)
    if level is not None and (not isinstance(level, int) or isinstance(level, bool) or not 0 <= level <= 9):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
        raise InputError(f"compression_level is {level!r}, wanted None for a folder, or 0 to 9")
    compressed, plain = name.endswith((".tgz", ".tar.gz")), name.endswith(".tar")
    if (level is None and (compressed or plain)) or (plain and level):
        asked = "a folder" if level is None else f"compression of level {level}"
        raise InputError(
            f"its name is that of {'a compressed' if compressed else 'a plain'} tar, and {asked} is asked",
            where=str(path),
        )
    if compressed or plain:
        return path, "tgz" if compressed else "tar"
    if level is None:
        return path, "folder"
    suffix = ".tgz" if level else ".tar"
    return path.with_name(path.name + suffix), suffix[1:]


def _extensions(typed: TypedModel, given: Sequence[str] | None) -> list[str]:
    """Lines for the head of the document; symbols and assertions become part of the model. Raises InputError."""
    if given is not None and (not isinstance(given, (list, tuple)) or not all(isinstance(line, str) for line in given)):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
        raise InputError("custom_extensions is no list of texts", hint="as in ['tract_assert P >= 0']")
    rest: list[str] = []
    for line in given or ():
        word, _, text = line.strip().removeprefix("extension ").rstrip(";").partition(" ")
        if not word:
            raise InputError("custom_extensions has an empty line")
        try:
            if word == "tract_symbol":
                typed.symbols.add(_symbol(text.strip()))
            elif word == "tract_assert":
                typed.symbols.add_assertion(text.strip())
            else:
                rest.append(f"{word} {text}".strip())
        except TractError as error:
            raise InputError(error.problem, where=f"extension {line!r}", hint=error.hint) from None
    return rest


def _symbol(text: str) -> str:
    if not is_plain(text):
        raise InputError(f"{text!r} is no name of a symbol", hint="symbols are words of letters, digits and _")
    return text


@contextmanager
def _timed(step: str) -> Generator[None]:
    """Say how long a step took."""
    start = time.perf_counter()
    yield
    logger.info("%s: %.2f s", step, time.perf_counter() - start)
