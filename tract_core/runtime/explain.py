"""Where each node of a prepared model runs, and why."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass
from html import escape


@dataclass(frozen=True, slots=True)
class Placement:
    """One node. ``where``: the device; ``how``: what computes it there; ``why``: the reason for this choice."""

    node: str
    op: str
    where: str
    how: str
    why: str


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """Every node that a runtime executes, in order of execution."""

    runtime: str
    placements: tuple[Placement, ...]

    def __str__(self) -> str:
        columns = [("node", "operator", "where", "how", "why")]
        rows = [*columns, *((p.node, p.op, p.where, p.how, p.why) for p in self.placements)]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = ["  ".join([*map(str.ljust, row, widths), row[4]]).rstrip() for row in rows]
        return "\n".join([self.summary(), "", *lines])

    __repr__ = __str__

    def summary(self) -> str:
        """One line: how many nodes run how."""
        counts = Counter(f"{p.how} on {p.where}" for p in self.placements)
        parts = ", ".join(f"{count} by {how}" for how, count in counts.most_common()) or "no nodes"
        return f"runtime {self.runtime}: {parts}"

    def to_json(self) -> str:
        """``{"runtime": ..., "placements": [{"node", "op", "where", "how", "why"}, ...]}``."""
        return json.dumps({"runtime": self.runtime, "placements": [asdict(p) for p in self.placements]})

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"
