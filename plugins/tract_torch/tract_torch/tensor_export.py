"""Tensors alone as files of NNEF: those of adapters, or new weights for an archive that is there already."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from tract_nnef.archive.tensors import tensor_file
from tract_nnef.syntax import ast
from tract_nnef.syntax.names import plain_label
from tract_nnef.syntax.parser import decode, parse_quantization
from tract_nnef.syntax.printer import print_quantization
from tract_nnef.writing.expressions import express

from tract_core.errors import InputError, TractError, Unsupported
from tract_core.saving import whole_files
from tract_torch.arguments import of_type
from tract_torch.tensors import array_of
from tract_torch.weights.disk import iter_torch_tensors_from_disk, torch_safe_load
from tract_torch.weights.qtensor import QTensor

__all__ = [
    "export_tensors_from_disk_to_nnef",
    "export_tensors_to_nnef",
    "iter_torch_tensors_from_disk",
    "torch_safe_load",
]

QUANTIZATION = "graph.quant"
"""The file that says what the integers of tensors stand for."""


def export_tensors_to_nnef(
    name_to_torch_tensors: Mapping[str, torch.Tensor], output_dir: str | os.PathLike[str]
) -> Path:
    """Write each tensor as ``<name>.dat`` to a folder that is there already. Returns the folder.

    Files of these names are replaced, others stay. All are written, or none; the same tensors give the same bytes. What
    the integers of quantised tensors stand for is said in ``graph.quant``, in which lines of other tensors stay.

    Raises InputError for a folder that is not there, for names that are none of files, and for tensors without values
    (those on the device ``meta``); Unsupported for what the format has not: 4 GiB and more, more than 8 axes, scales
    per channel, sparse tensors.
    """
    given = of_type(name_to_torch_tensors, Mapping, "name_to_torch_tensors", "a mapping of names to tensors")
    return _export(given.items(), output_dir)


def export_tensors_from_disk_to_nnef(
    store_filepath: str | os.PathLike[str],
    output_dir: str | os.PathLike[str],
    filter_key: Callable[[str], bool] | None = None,
    fn_check_found_tensors: Callable[[dict[str, torch.Tensor]], bool] | None = None,
    map_location: Any = "cpu",
) -> Path:
    """Write the tensors of a file as `export_tensors_to_nnef` does, one after the other. Returns the folder.

    ``store_filepath``, ``filter_key``, ``map_location``: as for `iter_torch_tensors_from_disk`.
    ``fn_check_found_tensors``: gets all that were found, by name, mapped from the file, and says whether they are
    those that are wanted. Raises InputError where it says no, and where nothing was found, and what both others raise.
    """
    found = dict(iter_torch_tensors_from_disk(store_filepath, filter_key, map_location))
    if not found:
        hint = "filter_key wants none of them" if filter_key else "the tensors have to be at the top, not further in"
        raise InputError("no tensors were found", where=str(store_filepath), hint=hint)
    if fn_check_found_tensors is not None and not fn_check_found_tensors(found):
        names = ", ".join([*found][:10]) + (f" and {len(found) - 10} more" if len(found) > 10 else "")
        raise InputError(f"fn_check_found_tensors refuses what was found: {names}", where=str(store_filepath))
    return _export(found.items(), output_dir)


def _export(tensors: Iterable[tuple[str, torch.Tensor]], output_dir: str | os.PathLike[str]) -> Path:
    folder = Path(output_dir)
    lines: list[ast.Quantization] = []
    with whole_files(folder) as unfinished:
        for name, tensor in tensors:
            try:
                pieces, line = tensor_pieces(name, tensor)
            except TractError as error:
                raise error.at(f"tensor {name!r}") from None
            lines += line
            with (unfinished / f"{name}.dat").open("xb") as file:
                for piece in pieces:
                    file.write(piece if isinstance(piece, bytes) else piece.data)
                file.flush()
                os.fsync(file.fileno())
        text = _merged(folder / QUANTIZATION, lines)
        if text:
            (unfinished / QUANTIZATION).write_text(text, encoding="utf-8")
    return folder


def tensor_pieces(name: str, tensor: torch.Tensor) -> tuple[list[Any], list[ast.Quantization]]:
    """The content of the ``.dat`` file of a tensor, on its own memory, and what its integers stand for.

    Raises as `export_tensors_to_nnef`.
    """
    of_type(tensor, torch.Tensor, "it", "a tensor")
    if plain_label(name) != name:
        raise InputError("this is no name of a file", hint=f"call it {plain_label(name)!r}")
    if isinstance(tensor, QTensor):
        return tensor_file(tensor.stored()), []
    if tensor.is_meta:
        raise InputError("it is on the device 'meta', and has no values", hint="load its weights first")
    if tensor.layout is not torch.strided:
        raise Unsupported(f"its layout is {tensor.layout}, which archives have not", hint="call to_dense()")
    if tensor.is_quantized:
        return tensor_file(array_of(tensor.int_repr()), quantised=True), [_line(name, tensor)]
    return tensor_file(array_of(tensor)), []


def _line(name: str, tensor: torch.Tensor) -> ast.Quantization:
    if tensor.qscheme() not in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        hint = "quantise it with one scale for all, or export dequantize() of it"
        raise Unsupported(f"it is quantised {tensor.qscheme()}, graph.quant has one scale for a tensor", hint=hint)
    values = {
        "zero_point": tensor.q_zero_point(),
        "scale": tensor.q_scale(),
        "bits": 8 * tensor.element_size(),
        "signed": tensor.dtype is not torch.quint8,
        "symmetric": tensor.q_zero_point() == 0,
    }
    arguments = tuple(ast.Argument(key, express(value)) for key, value in values.items())
    return ast.Quantization(name, ast.Invocation("zero_point_linear_quantize", arguments))


def _merged(path: Path, lines: list[ast.Quantization]) -> str:
    """The text of ``graph.quant`` with these lines in it; none where there are none."""
    if not lines:
        return ""
    new = {one.tensor for one in lines}
    old = parse_quantization(decode(path.read_bytes())) if path.is_file() else ()
    return print_quantization([*(one for one in old if one.tensor not in new), *lines])
