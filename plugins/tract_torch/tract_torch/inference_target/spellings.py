"""Documents in the words of an engine: other spellings, and what a version does not have yet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, cast

from tract_nnef.syntax import ast

from tract_core.errors import Unsupported
from tract_torch.established.semantic_version import SemanticVersion

SINCE: Final = {
    "tract_core_resize": SemanticVersion(0, 23, 2),
    "tract_core_grid_sample": SemanticVersion(0, 23, 2),
}
"""Operators by the first version of the established engine that has them."""


def check_since(document: ast.Document, version: SemanticVersion) -> None:
    """Raises Unsupported, naming all operators of a document that an engine of this version does not have."""
    found = sorted(
        {one.name for one in invocations(document)} & {name for name, first in SINCE.items() if version < first}
    )
    if found:
        since = ", ".join(f"{name} (since {SINCE[name]})" for name in found)
        raise Unsupported(f"tract {version} has no {since}", hint="target a newer version")


def invocations(part: Any) -> Iterator[ast.Invocation]:
    """Every operator that is called in a part of a document."""
    if isinstance(part, ast.Invocation):
        yield part
    if isinstance(part, tuple):
        for one in cast("tuple[Any, ...]", part):
            yield from invocations(one)
    elif is_dataclass(part):
        for field in fields(part):
            yield from invocations(getattr(part, field.name))


def with_debox(document: ast.Document) -> ast.Document:
    """The document with ``debox`` in the place of ``nearest_upsample``, which computes the same."""
    body = tuple(replace(one, value=_deboxed(one.value)) for one in document.graph.body)
    return replace(document, graph=replace(document.graph, body=body))


def _deboxed(value: ast.Expression) -> ast.Expression:
    if not isinstance(value, ast.Invocation) or value.name != "nearest_upsample":
        return value
    image, factor = (argument.value for argument in value.arguments)
    assert isinstance(factor, ast.Array)
    window = ast.Array((ast.Literal(1), ast.Literal(1), *factor.items))
    none = ast.Array((ast.Tuple((ast.Literal(0), ast.Literal(0))),) * len(window.items))
    named = {"size": window, "stride": window, "border": ast.Literal("constant"), "padding": none}
    arguments = ast.Argument(None, image), *(ast.Argument(name, one) for name, one in named.items())
    return ast.Invocation("debox", arguments)
