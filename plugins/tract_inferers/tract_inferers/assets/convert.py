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
from tract_inferers.models.symbolic import AnyModel, policy_of

AGENTS: Final = "N"
"""What the number of agents is called in an archive."""


def nnef_of(model: AnyModel, batch_size: int | None = None) -> bytes:
    """The archive of a policy, for so many agents; for any number of them, which it calls N, where that is ``None``.

    Raises InputError for a size that is none, Unsupported for a model that is no policy or that NNEF cannot say.
    """
    if batch_size is not None and (not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size < 1):  # pyright: ignore[reportUnnecessaryIsInstance]: callers may be untyped
        raise InputError(f"a batch size is an integer from 1 on, got {batch_size!r:.60}")
    policy = policy_of(model)
    return nnef_bytes(_for_any(policy) if batch_size is None else policy.for_rows(batch_size))


def _for_any(policy: Policy) -> TypedModel:
    """The model of a policy, where the number of agents is called N, unless it has another size of that name."""
    if AGENTS in policy.typed.symbols:
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
