"""A model goes through an archive in memory."""

from __future__ import annotations

from typing import Any

from tract_nnef.reading.loader import Nnef
from tract_nnef.writing.saver import NnefWriter

from tract_core.model.typed import TypedModel


def cycled(model: TypedModel, **flags: Any) -> TypedModel:
    """The model that is read from what is written for ``model``. ``flags``: of the writer."""
    return Nnef(registry=model.registry).load_bytes(NnefWriter(**flags).to_tar(model))


def text(model: TypedModel, **flags: Any) -> str:
    """What the graph says."""
    return NnefWriter(**flags).text(model)
