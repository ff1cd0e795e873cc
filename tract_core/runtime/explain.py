"""Where each node of a prepared model runs, and why."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tract_core.data import Constant
from tract_core.frozen import frozen
from tract_core.model.const import Const
from tract_core.model.source import TypedSource
from tract_core.plugins.keys import STATE
from tract_core.runtime.parts import BodyPath, Part, bodies_within

if TYPE_CHECKING:
    from tract_core.model.op import TypedOp
    from tract_core.model.typed import TypedModel


@frozen
class Placement:
    """One node, or several that are fused. ``names``, ``ops``: theirs; names in bodies are written ``loop/sum``.

    ``where``: the device; ``how``: what computes it there; ``why``: the reason for this choice.
    """

    part: Part
    names: tuple[str, ...]
    ops: tuple[str, ...]
    where: str
    how: str
    why: str

    @staticmethod
    def of(
        model: TypedModel, nodes: Sequence[int], where: str, how: str, why: str, *, body: BodyPath = ()
    ) -> Placement:
        """The placement of nodes of a model, by their ids. ``body``: the way to the body that they are in, if any."""
        part = Part(tuple(nodes), body)
        return Placement(part, part.names(model), part.ops(model), where, how, why)


def is_constant(op: TypedOp) -> bool:
    """Whether an operator is a value that is there before the model runs, so that no runtime need place it."""
    return isinstance(op, Const) and isinstance(op.value, Constant)


def by_numpy(model: TypedModel, why: str) -> Iterator[Placement]:
    """Every node of a model, and of its bodies, where each is left to the node executor on the CPU, and ``why``."""
    states = model.registry[STATE]
    for path, body in bodies_within(model):
        for node_id in body.eval_order():
            op = body.nodes[node_id].op
            if states.find(type(op)) is not None:
                yield Placement.of(
                    model, [node_id], "cpu", "state", "the operator keeps state or runs a body", body=path
                )
            elif not isinstance(op, TypedSource) and not is_constant(op):
                yield Placement.of(model, [node_id], "cpu", "numpy", why, body=path)


@frozen
class Explanation:
    """Every node that a runtime executes, in order of execution; those of bodies behind those of the model around."""

    runtime: str
    placements: tuple[Placement, ...]

    def __str__(self) -> str:
        columns = [("node", "operator", "where", "how", "why")]
        rows = [*columns, *((", ".join(p.names), ", ".join(p.ops), p.where, p.how, p.why) for p in self.placements)]
        widths = [max(len(row[column]) for row in rows) for column in range(4)]
        lines = ["  ".join([*map(str.ljust, row, widths), row[4]]).rstrip() for row in rows]
        return "\n".join([self.summary(), "", *lines])

    __repr__ = __str__

    def summary(self) -> str:
        """One line: how many nodes run how, and in how many groups they are fused."""
        nodes, groups = Counter[str](), Counter[str]()
        for placement in self.placements:
            way = f"{placement.how} on {placement.where}"
            nodes[way] += len(placement.names)
            groups[way] += len(placement.names) > 1
        parts = ", ".join(f"{count} by {way}{_grouped(groups[way])}" for way, count in nodes.most_common())
        return f"runtime {self.runtime}: {parts or 'no nodes'}"

    def to_json(self) -> str:
        """``{"runtime": ..., "placements": [{"names": [...], "ops": [...], "qualified_ids", "where", "how", "why"}]}``.

        Ids are qualified as in `tract_core.Runnable.profile_json`.
        """
        return json.dumps({"runtime": self.runtime, "placements": [_json(one) for one in self.placements]})

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


def _grouped(count: int) -> str:
    return f" ({count} group{'s' if count > 1 else ''})" if count else ""


def _json(placement: Placement) -> dict[str, Any]:
    part = placement.part
    return {
        "names": placement.names,
        "ops": placement.ops,
        "qualified_ids": [[part.body, node] for node in part.nodes],
        "where": placement.where,
        "how": placement.how,
        "why": placement.why,
    }
