"""What a model says about its symbols, such as ``S >= 1`` or ``P + S <= 4096``."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tract_core.dims.build import Comparison, comparison, comparison_difference
from tract_core.dims.names import IDENTIFIER, QUOTED, read_quoted, write_name
from tract_core.dims.parse import parse_comparison
from tract_core.dims.tdim import Dim
from tract_core.dims.values import symbols_of
from tract_core.dims.walk import substitute
from tract_core.frozen import frozen

_SCENARIO = rf"(?s)\s*(?:({IDENTIFIER})|({QUOTED}))\s*:(.*)"


@frozen
class Assertion:
    """``left op right`` holds: always, or where the model is used as ``scenario`` says."""

    left: Dim
    op: Comparison
    right: Dim
    scenario: str | None = None

    def __str__(self) -> str:
        text = f"{self.left}{self.op}{self.right}"
        return text if self.scenario is None else f"{write_name(self.scenario)}: {text}"

    @property
    def symbols(self) -> frozenset[str]:
        """The names of all symbols on both sides."""
        return symbols_of(self.left) | symbols_of(self.right)

    def difference(self) -> Dim:
        """The expression that is 0 for an equality, and 0 or more for the other comparisons."""
        return comparison_difference(self.left, self.op, self.right)

    def substitute(self, values: Mapping[str, Dim]) -> Assertion:
        """With symbols replaced. Raises DimError where a broadcast gets two different numbers."""
        return Assertion(substitute(self.left, values), self.op, substitute(self.right, values), self.scenario)

    def holds(self, values: Mapping[str, int]) -> bool | None:
        """Whether it holds for these values of symbols; ``None`` where that depends on a symbol without one."""
        answer = substitute(comparison(self.left, self.op, self.right), values)
        return bool(answer) if isinstance(answer, int) else None


def parse_assertion(text: str) -> Assertion:
    """The assertion written as ``text``: ``"S<=2*P"``, or ``"decode: S==1"`` for one that holds in a scenario only.

    Raises DimError saying where, what was found and what was wanted.
    """
    match = re.fullmatch(_SCENARIO, text)
    if match is None:
        return Assertion(*parse_comparison(text))
    name, quoted, rest = match.groups()
    return Assertion(*parse_comparison(rest), name or read_quoted(quoted))
