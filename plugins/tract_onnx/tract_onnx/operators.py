"""Operators by domain, name and version, as files ask for them: which row of the table ``onnx`` answers.

What a row is given is said above, in `tract_onnx.registry`: the node holds the file, and the file these operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tract_core.plugins.tables import Table

if TYPE_CHECKING:
    from tract_core.ops.wired import Results
    from tract_onnx.wiring import Wiring

Wires = Callable[[Any, "Wiring"], "Results"]
"""What wires a node: an `OnnxFn`, which says that the first argument is an `OnnxNode`."""

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


class OnnxOps:
    """The rows of a table ``onnx``, ready to be looked up by operator and version."""

    def __init__(self, table: Table[str, Wires]) -> None:
        self._guesses: set[str] = set()
        self._table = table
        self._versions: dict[tuple[str, str], list[int]] = {}
        for key in table.names():
            rest, _, since = key.rpartition("/")
            domain, _, op_type = rest.rpartition("/")
            self._versions.setdefault((domain, op_type), []).append(int(since))

    def find(self, domain: str, op_type: str, version: int) -> Wires | None:
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
