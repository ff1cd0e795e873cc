"""From files to assets and archives."""

from __future__ import annotations

import os

from tract_core.api.formats import find_format, missing_file
from tract_core.api.given import checked_path
from tract_core.api.loading import Loader
from tract_core.errors import InputError, TractError
from tract_core.limits import DEFAULT_LIMITS, LoadLimits
from tract_inferers.assets.asset import AssetData
from tract_inferers.assets.convert import nnef_of
from tract_inferers.assets.header import AssetKind

_GZIP = b"\x1f\x8b"


def nnef_of_file(path: str | os.PathLike[str], batch_size: int | None = None) -> bytes:
    """The ONNX policy in a file, with what lies beside it, as an archive. Raises as `AssetData.to_nnef` does."""
    found = checked_path(path)
    if not found.exists():
        raise missing_file(found)
    model = Loader(AssetKind.ONNX.format_name).load(found)
    try:
        return nnef_of(model, batch_size)
    except TractError as error:
        raise error.at(str(found)) from error.__cause__


def packaged(
    path: str | os.PathLike[str],
    *,
    optimize: bool = False,
    batch_size: int | None = None,
    limits: LoadLimits = DEFAULT_LIMITS,
) -> AssetData:
    """The model in a file, ``.onnx`` or ``.nnef.tar``, as an asset, once it was loaded to see that it can be.

    ``optimize``: ONNX is turned into NNEF, for ``batch_size`` agents or any number of them. Raises InputError for a
    file of another format, and for NNEF that is to be optimised.
    """
    name, found = find_format(checked_path(path))
    if name not in {kind.format_name for kind in AssetKind}:
        raise InputError(f"a model of format {name} is not packaged, wanted onnx or nnef", where=str(path), hint=_SAVE)
    if optimize and name == AssetKind.NNEF.format_name:
        raise InputError("NNEF is not optimized further", where=str(path), hint="package it without -O")
    if optimize:
        return AssetData(AssetKind.NNEF, nnef_of_file(found, batch_size), str(path), limits)
    if found.is_dir():
        raise InputError("it is a folder, wanted a tar", where=str(path), hint=_SAVE)
    with found.open("rb") as file:
        asset = AssetData.from_reader(AssetKind(name), file, limits=limits)
    if asset.data.startswith(_GZIP):
        raise InputError("it is compressed, wanted a tar that is not", where=str(path), hint=_SAVE)
    asset.load_model()
    return asset


_SAVE = "'tract MODEL save OUT.crvo' makes an asset of any model"
