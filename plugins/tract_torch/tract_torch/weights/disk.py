"""Weights in files: ``.safetensors``, and what `torch.save` writes. They are mapped into memory, not read."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

import torch

from tract_core.errors import InputError
from tract_torch.arguments import path_of

SAFETENSORS: Final = ".safetensors"
PICKLED: Final = (".pt", ".pth", ".bin")


def iter_torch_tensors_from_disk(
    store_filepath: str | os.PathLike[str],
    filter_key: Callable[[str], bool] | None = None,
    map_location: Any = "cpu",
) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors in a file of weights, with their names, one after the other, in the order of the file.

    ``store_filepath``: a ``.safetensors``, ``.pt``, ``.pth`` or ``.bin`` file. ``filter_key``: which names are wanted;
    all by default. What is no tensor is left out. Tensors on the CPU are mapped from the file, where its format allows:
    they take no memory before they are used, and the file has to stay as it is as long as they are.

    Raises InputError for another kind of file, for one that cannot be read, and where safetensors is not installed.
    """
    path = Path(store_filepath)
    if not path.is_file():
        raise InputError("it is a folder" if path.is_dir() else "there is no such file", where=str(path))
    suffix = path.suffix.lower()
    if suffix == SAFETENSORS:
        found = _of_safetensors(path, filter_key, map_location)
    elif suffix in PICKLED:
        found = _of_pickled(path, filter_key, map_location)
    else:
        kinds = ", ".join((SAFETENSORS, *PICKLED))
        raise InputError(f"its name ends in {suffix!r}, wanted one of {kinds}", where=str(path))
    yield from found


def weight_files(path: Path) -> list[Path]:
    """The files that weights are in: one, those in a folder, or those that an index names, ``*.index.json``.

    Of a folder, files in the format of safetensors are taken alone, where there are such. Raises InputError where there
    are none.
    """
    if path.is_dir():
        every = [one for one in sorted(path.iterdir()) if one.suffix.lower() in (SAFETENSORS, *PICKLED)]
        found = [one for one in every if one.suffix.lower() == SAFETENSORS] or every
        if not found:
            raise InputError("the folder holds no files of weights", where=str(path))
        return found
    if path.name.endswith(".index.json") and path.is_file():
        try:
            names = set(map(os.fspath, json.loads(path.read_text(encoding="utf-8"))["weight_map"].values()))
        except (ValueError, KeyError, AttributeError, TypeError):
            raise InputError("it is no index of files of weights", where=str(path)) from None
        return [path.parent / Path(name).name for name in sorted(names)]
    return [path]


def torch_safe_load(
    path: str | os.PathLike[str], map_location: Any = "cpu", *, weights_only: bool = True
) -> Mapping[str, Any]:
    """What `torch.save` wrote, which is to be a dictionary; its tensors are mapped from the file where possible.

    ``weights_only``: read nothing but tensors and plain values. False runs whatever code the file holds, and is for
    files of one's own; nothing falls back to it. Raises InputError for a file that holds more, or something else.
    """
    path_of(path, "path")
    try:
        try:
            found = torch.load(path, map_location=map_location, weights_only=weights_only, mmap=True)
        except RuntimeError:  # older files, which are no archives, cannot be mapped
            found = torch.load(path, map_location=map_location, weights_only=weights_only)
    except pickle.UnpicklingError as error:
        reason = str(error).rpartition("WeightsUnpickler error:")[2].strip().partition("\n")[0]
        hint = "torch_safe_load(..., weights_only=False) runs what is in it: only for files that you trust"
        raise InputError(f"it holds more than weights, or is damaged: {reason}", where=str(path), hint=hint) from None
    except (OSError, RuntimeError, EOFError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"it cannot be read: {reason}", where=str(path)) from None
    if not isinstance(found, Mapping):
        kind = type(found).__name__
        hint = "save its state_dict() in place of the module" if isinstance(found, torch.nn.Module) else None
        raise InputError(f"it holds a {kind}, wanted a dictionary of tensors", where=str(path), hint=hint)
    return cast("Mapping[str, Any]", found)


def _of_safetensors(
    path: Path, wanted: Callable[[str], bool] | None, device: Any
) -> Iterator[tuple[str, torch.Tensor]]:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise InputError("safetensors is not installed", where=str(path), hint="pip install safetensors") from None
    try:
        with safe_open(str(path), framework="pt", device=str(device)) as file:
            for name in [*file.keys()]:
                if wanted is None or wanted(name):
                    yield name, file.get_tensor(name)
    except SafetensorError as error:
        raise InputError(f"it cannot be read: {error}", where=str(path)) from None


def _of_pickled(path: Path, wanted: Callable[[str], bool] | None, device: Any) -> Iterator[tuple[str, torch.Tensor]]:
    held = torch_safe_load(path, device)
    for name, value in held.items():
        if isinstance(value, torch.Tensor) and (wanted is None or wanted(str(name))):
            yield str(name), value
