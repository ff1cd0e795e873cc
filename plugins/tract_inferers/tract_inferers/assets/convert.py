"""Models as NNEF archives: plain tars, the same bytes for the same model."""

from __future__ import annotations

from typing import Any, Final

from tract_core.api.formats import made
from tract_core.dims import symbol
from tract_core.errors import InputError
from tract_core.model.typed import TypedModel
from tract_core.plugins.missing import not_installed
from tract_inferers.assets.header import AssetKind
from tract_inferers.models.policy import Policy

AGENTS: Final = "N"
"""What the number of agents is called in an archive."""


def check_batch_size(size: Any) -> None:
    """Raises InputError for what is no number of agents."""
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise InputError(f"a batch size is an integer from 1 on, got {size!r:.60}")


def model_for(policy: Policy, batch_size: int | None) -> TypedModel:
    """The model of a policy for so many agents; for any number, which is called N, where that is ``None``."""
    if batch_size is not None:
        return policy.for_rows(batch_size)
    if policy.symbol == AGENTS or AGENTS in policy.typed.symbols:
        return policy.typed
    model = policy.typed.substitute({policy.symbol: symbol(AGENTS)})
    model.symbols.add(AGENTS)
    return model.declutter()


def nnef_bytes(model: TypedModel) -> bytes:
    """The archive of a model, not compressed, with operators of every registry that engines read.

    Raises Unsupported for what NNEF cannot say, PluginError where the format is not installed.
    """
    registry, name = model.registry, AssetKind.NNEF.format_name
    form = registry.formats().get(name)
    if form is None:
        raise not_installed("format", name, registry.formats())
    tar = form.exports["tar"].keywords
    writer: Any = made(registry, name, "writer", [*form.writer_keywords, *tar], {**tar, "opl": True})
    with registry.blaming("tract_formats", name, "writing"):
        return writer.to_bytes(model)
