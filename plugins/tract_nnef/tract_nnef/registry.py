"""The tables of the format: how operators are read, and how they are written.

An operator of a file belongs to a registry (in the sense of the format: ``tract_nnef`` is the standard, ``tract_core``
and others come with an ``extension`` line). Its row in the table ``nnef`` has its declaration, in the syntax of the
format, and the function that wires it:

    @reads(ROWS, "tract_core", "tract_core_cast(input: tensor<scalar>, to: string) -> (output: tensor<scalar>)")
    def read_cast(call: Call) -> OutletId: ...

A row of the table ``nnef_write`` says how a core operator is spelled, or answers ``None`` where it cannot be:

    @ROWS.row(NNEF_WRITE, Cast)
    def write_cast(op: Cast, node: Spelling) -> Invocation | None: ...

A row of the table ``nnef_beside`` makes files that lie in an archive beside the model, for those who look for them:

    @ROWS.row(NNEF_BESIDE, COMPILED)
    def compiled_for(model: TypedModel, targets: str) -> Files: ...
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows, TableKey, function_row
from tract_nnef.registries import CORE, EXTRA, ONNX, PY, RESOURCE, STANDARD, TRANSFORMERS

if TYPE_CHECKING:
    from tract_core.model.typed import TypedModel
    from tract_core.ops.wired import Wired
    from tract_core.plugins import Registry
    from tract_nnef.archive.writing import Files
    from tract_nnef.reading.call import Call
    from tract_nnef.reading.values import Value
    from tract_nnef.syntax.ast import Fragment, Invocation
    from tract_nnef.writing.spelling import Spelling

__all__ = [
    "ANY",
    "COMPILED",
    "CORE",
    "EXTRA",
    "NNEF",
    "NNEF_BESIDE",
    "NNEF_WRITE",
    "ONNX",
    "PY",
    "RESOURCE",
    "STANDARD",
    "TRANSFORMERS",
    "BesideFn",
    "Family",
    "Operator",
    "ReadFn",
    "WriteFn",
    "fragments",
    "reads",
    "row_key",
]

ANY: Final = "*"
"""In the place of an operator's name: the row of a registry that finds the others."""

ReadFn = Callable[["Call"], "Value | Wired | Sequence[OutletId | Wired]"]
"""``call -> outlet``, or one outlet per result, or a value."""

WriteFn = Callable[[Any, "Spelling"], "Invocation | None"]
"""``(op, node) -> invocation``, whose results are those of the node; ``None`` where it cannot be said so."""

BesideFn = Callable[["TypedModel", str], "Files"]
"""``(model, what was asked for) -> files``, by their names in the archive."""

ReadT = TypeVar("ReadT", bound=ReadFn)

_NAME: Final = re.compile(r"\s*(?:fragment\s+)?([A-Za-z_]\w*)")
_FRAGMENT: Final = re.compile(r"^fragment\s", re.MULTILINE)


@frozen
class Operator:
    """An operator as files have it: its declaration in the syntax of the format, and the function that wires it.

    ``wire``: ``None`` for an operator that its declaration says in terms of others, as a fragment with a body.
    """

    declaration: str | Fragment
    wire: ReadFn | None = None


@frozen
class Family:
    """The operators of a registry that have no rows of their own: how one is found by its name, and how it is spelled.

    Its key is ``registry/*``. ``find`` answers ``None`` for a name that it does not know. ``spell`` is asked for nodes
    that nobody else can spell.
    """

    find: Callable[[Registry, str], Operator | None]
    spell: WriteFn


def _row(key: str, value: object) -> str | None:
    if key.count("/") != 1 or not all(key.split("/")):
        return "has a key that is not 'registry/operator': use tract_nnef.registry.reads"
    wanted = Family if key.endswith(f"/{ANY}") else Operator
    return None if isinstance(value, wanted) else f"is a {type(value).__name__}, wanted {_a(wanted)}"


def _a(kind: type) -> str:
    return f"an {kind.__name__}" if kind is Operator else f"a {kind.__name__}"


NNEF: TableKey[str, Operator | Family] = TableKey(
    "nnef", "how an operator of an NNEF file is wired, by registry and name", _row
)

NNEF_WRITE: TableKey[type, WriteFn] = TableKey("nnef_write", "how an operator is spelled in an NNEF file", function_row)


COMPILED: Final = "compiled"
"""The key of what makes machine code of a model; also the folder in which that lies in an archive."""

NNEF_BESIDE: TableKey[str, BesideFn] = TableKey(
    "nnef_beside", "what lies in an NNEF archive beside the model, by the name of its folder", function_row
)


def row_key(registry: str, name: str) -> str:
    """The key of an operator's row, as ``"tract_core/tract_core_cast"``."""
    return f"{registry}/{name}"


def reads(rows: Rows, registry: str, *declarations: str) -> Callable[[ReadT], ReadT]:
    """Decorator: the decorated function wires the operators that are declared so."""

    def offer(function: ReadT) -> ReadT:
        for declaration in declarations:
            rows.add(NNEF, row_key(registry, _name_in(declaration)), Operator(declaration, function))
        return function

    return offer


def fragments(rows: Rows, registry: str, text: str) -> None:
    """Offer operators that are given as fragments with bodies, each of which begins a line of ``text``."""
    begins = [found.start() for found in _FRAGMENT.finditer(text)]
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        declaration = text[begin:end].strip()
        rows.add(NNEF, row_key(registry, _name_in(declaration)), Operator(declaration))


def _name_in(declaration: str) -> str:
    found = _NAME.match(declaration)
    assert found is not None, declaration
    return found[1]
