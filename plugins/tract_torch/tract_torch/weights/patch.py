"""New weights for an archive that was exported before, by the names that PyTorch has for them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tract_nnef.archive.reading import Archive, open_archive
from tract_nnef.archive.tensors import Header, read_header, tensor_file
from tract_nnef.documents.saver import NnefWriter

from tract_core.errors import InputError, TractError, Unsupported, meant
from tract_torch.arguments import of_type
from tract_torch.weights.pieces import tensor_pieces
from tract_torch.weights.qtensor import QTensor


def patch_archive(
    archive: str | os.PathLike[str],
    name_to_torch_tensors: Mapping[str, torch.Tensor],
    output: str | os.PathLike[str],
) -> Path:
    """Write the archive again, with other tensors in the place of those of these names. Returns ``output``.

    ``archive``: a folder, a tar, or a compressed tar; names are the labels of its variables, which are the paths of
    attributes of the module that was exported. ``output``: another path; its name says which of the three it becomes.
    It is written whole, or not at all; nothing but the new tensors and what is being copied is in memory.

    Raises InputError for a name that the archive has not, and for a tensor of another shape or type than the one there;
    ModelError for an archive that cannot be read.
    """
    opened = open_archive(archive)
    files: dict[str, Any] = {}
    given = of_type(name_to_torch_tensors, Mapping, "name_to_torch_tensors", "a mapping of names to tensors")
    for name, tensor in given.items():
        try:
            files[f"{name}.dat"] = _checked(opened, name, tensor)
        except TractError as error:
            raise error.at(f"tensor {name!r}") from None
    target = Path(output)
    NnefWriter().write_files({name: files.get(name) or [opened.content(name)] for name in opened.names()}, target)
    return target


def _checked(archive: Archive, name: str, tensor: torch.Tensor) -> list[Any]:
    """The content of the new file. Raises InputError where it is not like the one that is there."""
    file = f"{name}.dat"
    if file not in archive:
        labels = [one.removesuffix(".dat") for one in archive.names() if one.endswith(".dat")]
        near = meant(name, labels)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(labels)[:10]) or 'none'}"
        raise InputError("the archive has no variable of that label", hint=hint)
    pieces, quantised = tensor_pieces(name, tensor)
    if quantised:
        raise Unsupported(
            "a quantised tensor is not put into an archive: its scale is in the graph", hint="export anew"
        )
    before = read_header(archive.content(file), file)
    after = read_header(np.frombuffer(pieces[0], np.uint8), file)
    if isinstance(tensor, QTensor) and _is_reshaped(before, after):  # kernels are kept in rows
        return tensor_file(replace(tensor.stored(), shape=before.shape))
    if before != after:
        raise InputError(f"the archive has {before}, and this is {after}", hint="give it the same type and shape")
    return pieces


def _is_reshaped(before: Header, after: Header) -> bool:
    """Whether both have the same rows of the same items."""
    return before.item == after.item and before.size == after.size and before.shape[:1] == after.shape[:1]
