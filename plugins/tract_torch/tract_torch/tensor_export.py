"""Tensors alone as files of NNEF: those of adapters, or new weights for an archive that is there already."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from tract_nnef.syntax import ast
from tract_nnef.syntax.parser import decode, parse_quantization
from tract_nnef.syntax.printer import print_quantization

from tract_core.errors import InputError, TractError
from tract_core.saving import whole_files
from tract_torch.arguments import of_type
from tract_torch.weights.disk import iter_torch_tensors_from_disk, torch_safe_load
from tract_torch.weights.pieces import tensor_pieces

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


def _merged(path: Path, lines: list[ast.Quantization]) -> str:
    """The text of ``graph.quant`` with these lines in it; none where there are none."""
    if not lines:
        return ""
    new = {one.tensor for one in lines}
    old = parse_quantization(decode(path.read_bytes())) if path.is_file() else ()
    return print_quantization([*(one for one in old if one.tensor not in new), *lines])
