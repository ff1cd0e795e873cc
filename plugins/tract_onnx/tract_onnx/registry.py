"""The table ``onnx``: for each operator, and each version of it that changed its meaning, the function that wires it.

A function takes the node and its surroundings, adds core operators, and returns the outlet (or outlets) of the result:

    @onnx_op(ROWS, "Softmax", since=13)
    def softmax(node: OnnxNode, wire: Wiring) -> OutletId: ...
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tract_core.plugins.tables import Rows, Table, TableKey, function_row

if TYPE_CHECKING:
    from tract_core.ops.wired import Results
    from tract_onnx.node import OnnxNode
    from tract_onnx.wiring import Wiring

OnnxFn = Callable[["OnnxNode", "Wiring"], "Results"]
"""``(node, wire) -> outlet``, or one outlet per output of the operator, ``None`` for one that is not computed."""


def _row(key: str, value: object) -> str | None:
    parts = key.split("/")
    if len(parts) < 3 or not all(parts) or not parts[-1].isdecimal():
        return "has a key that is not 'domain/OpType/version': use tract_onnx.registry.onnx_op"
    return function_row(key, value)


def _operator(key: str) -> str:
    """The versions of one operator come from one distribution: a version in between would take over from the others."""
    return key.rpartition("/")[0]


ONNX: TableKey[str, OnnxFn] = TableKey(
    "onnx", "how an ONNX operator is wired, by domain, name and first version", _row, _operator
)

DEFAULT_DOMAIN: Final = "ai.onnx"
ML_DOMAIN: Final = "ai.onnx.ml"
MICROSOFT_DOMAIN: Final = "com.microsoft"
OLDEST: Final = 1
"""The oldest version of the default domain's operator set that is read."""


MOST_GUESSES: Final = 50
"""Unknown operators for which a similar name is looked for: a report lists no more, and each takes a millisecond."""


def row_key(op_type: str, since: int, domain: str = DEFAULT_DOMAIN) -> str:
    """The key of an operator's row, as ``"ai.onnx/Softmax/13"``; the empty domain is the default one, as in files."""
    return f"{domain or DEFAULT_DOMAIN}/{op_type}/{since}"


def onnx_op(rows: Rows, *op_types: str, since: int = 1, domain: str = DEFAULT_DOMAIN) -> Callable[[OnnxFn], OnnxFn]:
    """Decorator: offer the decorated function for these operators, from version ``since`` of the domain on."""
    return rows.row(ONNX, *(row_key(op_type, since, domain) for op_type in op_types))


class OnnxOps:
    """The rows of a table ``onnx``, ready to be looked up by operator and version."""

    def __init__(self, table: Table[str, OnnxFn]) -> None:
        self._guesses: set[str] = set()
        self._table = table
        self._versions: dict[tuple[str, str], list[int]] = {}
        for key in table.names():
            rest, _, since = key.rpartition("/")
            domain, _, op_type = rest.rpartition("/")
            self._versions.setdefault((domain, op_type), []).append(int(since))

    def find(self, domain: str, op_type: str, version: int) -> OnnxFn | None:
        """The function for an operator of that version: the one with the highest ``since`` that is not above it."""
        rows = self._versions.get((domain, op_type), ())
        since = max((first for first in rows if first <= version), default=None)
        return None if since is None else self._table.find(row_key(op_type, since, domain))

    def known(self, op_type: str) -> list[str]:
        """What is known under that name, in any domain, as ``"ai.onnx from version 13"``."""
        return [
            f"{domain} from version {min(rows)}" for (domain, name), rows in self._versions.items() if name == op_type
        ]

    def advice(self, domain: str, op_type: str) -> str:
        """What to do about an operator that is not known in the version in which a file asks for it."""
        if rows := self._versions.get((domain, op_type)):
            return f"export the model for version {min(rows)} of {domain} or later, or use onnx.version_converter"
        if homes := [home for home, name in self._versions if name == op_type]:
            return f"if that of {' or '.join(homes)} is meant, the node's domain must say so"
        self._guesses.add(op_type)
        guess = len(self._guesses) <= MOST_GUESSES
        names = {name.lower(): name for home, name in self._versions if home == domain and guess}
        from difflib import get_close_matches

        if near := get_close_matches(op_type.lower(), names, n=1, cutoff=0.8):
            return f"did you mean {names[near[0]]!r}?"
        if domain == DEFAULT_DOMAIN:
            return (
                "the standard has no such operator, so the exporter left one of its own: export for a later version "
                f"of {DEFAULT_DOMAIN}, which may have what is needed, or add it with a plugin (see docs/plugins.md)"
            )
        return "a plugin can add it: see docs/plugins.md, and 'tract plugins' for what is installed"
