"""Which operator a name of the registry ``tract_py`` stands for."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from tract_core.errors import Unsupported
from tract_core.model.op import TypedOp, what_is_wrong_with
from tract_core.plugins import Registry
from tract_core.plugins.keys import AXES, COST, REFERENCE, STATE, SYMBOLIC
from tract_core.plugins.references import load_object
from tract_core.plugins.tables import key_text
from tract_nnef.registry import NNEF, NNEF_WRITE, PY, row_key

_CORE: Final = "tract_core"
_WORDS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
"""Where a word of a class's name ends: EinSum, LRNLayer."""


def operator_class(registry: Registry, name: str) -> type[TypedOp] | None:
    """The operator of a name, ``None`` for a name that there is not.

    Raises Unsupported where two have it, and where the plugin does not bring what it promises.
    """
    keys = _keys(registry, name)
    if not keys:
        return None
    _check_alone(name, keys)
    try:
        kind = load_object(keys[0])
    except Exception as error:
        raise Unsupported(f"the operator {name!r} is {keys[0]}, which cannot be imported: {error}") from error
    problem = what_is_wrong_with(kind) if isinstance(kind, type) else "it is no class"
    if problem is not None:
        raise Unsupported(f"the operator {name!r} is {keys[0]}, which is none: {problem}")
    return kind


def operator_name(registry: Registry, kind: type[TypedOp]) -> str:
    """The name of an operator. Raises Unsupported where nobody would find it by that name."""
    key = key_text(kind)
    name = _name_of(key)
    keys = _keys(registry, name)
    if key not in keys:
        raise Unsupported(
            f"{key} would not be found again: none of the tables of operators has a row of its own for it",
            hint="give it one, as in reference or nnef_write",
        )
    _check_alone(name, keys)
    if row_key(PY, name) in registry[NNEF].names():
        raise Unsupported(f"{key} would be called {name!r} in a file, which stands for something else")
    return name


def _check_alone(name: str, keys: list[str]) -> None:
    if len(keys) > 1:
        raise Unsupported(
            f"{' and '.join(keys)} would both be called {name!r} in a file",
            hint="leave one of their plugins out with TRACT_PLUGINS_BLOCK, or rename a class",
        )


def _keys(registry: Registry, name: str) -> list[str]:
    """Who has a row in a table of questions about operators is one."""
    tables = [registry[REFERENCE], registry[STATE], registry[SYMBOLIC], registry[COST], registry[AXES]]
    keys = {key for table in [*tables, registry[NNEF_WRITE]] for key in table.names()}
    return sorted(key for key in keys if _name_of(key) == name)


@cache
def _name_of(key: str) -> str:
    """``tract_py_ein_sum`` for ``tract_core.ops.einsum:EinSum``; those of others begin with their package."""
    module, _, kind = key.partition(":")
    package = module.partition(".")[0]
    words = _WORDS.sub("_", kind.replace(".", "_")).lower()
    return "_".join([PY, *([] if package == _CORE else [package]), words])
