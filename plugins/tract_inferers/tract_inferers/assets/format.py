"""The format ``.crvo`` for the command and for `tract_core.load`: a model of another format with a header in front."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tract_core.api.reading import loader_of
from tract_core.errors import TractError
from tract_core.limits import DEFAULT_LIMITS, LoadLimits
from tract_inferers.assets.asset import AssetData
from tract_inferers.assets.convert import nnef_bytes
from tract_inferers.assets.header import AssetKind

if TYPE_CHECKING:
    from tract_core.analysis.findings import Examination
    from tract_core.model.typed import TypedModel


class Crvo:
    """Loads assets, by what loads the format of the model in them. ``limits``: what an asset may ask for."""

    def __init__(self, *, limits: LoadLimits = DEFAULT_LIMITS) -> None:
        self._limits = limits

    def load(self, path: Path) -> Any:
        """The model in a file, as the loader of its format gives it. Raises ModelError."""
        return self._loaded(AssetData.load(path, limits=self._limits))

    def load_bytes(self, content: bytes) -> Any:
        """The model in the content of a file, as the loader of its format gives it. Raises ModelError."""
        return self._loaded(AssetData.deserialize(content, limits=self._limits))

    def examine(self, path: Path) -> Examination:
        """Everything that is wrong with a file, and the model in it as far as it can be read."""
        from tract_core.analysis.findings import Examination

        try:
            asset = AssetData.load(path, limits=self._limits)
            loader = self._loader(asset)
            examine = getattr(loader, "examine_bytes", None)
            found = examine(asset.data) if examine else Examination(self._loaded(asset))
        except TractError as error:
            return Examination(None, (error,))
        return replace(found, about={"asset": f"of kind {asset.kind}, {len(asset.data)} bytes", **found.about})

    def _loaded(self, asset: AssetData) -> Any:
        try:
            return self._loader(asset).load_bytes(asset.data)
        except TractError as error:
            raise error.at(asset.name) from error.__cause__

    def _loader(self, asset: AssetData) -> Any:
        return loader_of(asset.kind.format_name, limits=self._limits)


class CrvoWriter:
    """Writes models as assets that hold an NNEF archive."""

    def write(self, model: TypedModel, path: Path) -> None:
        """Write an asset, whole or not at all. Raises InputError, Unsupported, PluginError without the format nnef."""
        AssetData(AssetKind.NNEF, nnef_bytes(model)).save(path)

    def to_bytes(self, model: TypedModel) -> bytes:
        """The content of such a file. Raises as `write` does."""
        return AssetData(AssetKind.NNEF, nnef_bytes(model)).serialize()
