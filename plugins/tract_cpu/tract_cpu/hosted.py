"""Until when what the host gives is needed in a run, so that it takes memory no longer than that."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tract_llvm.program.storages import Kind, Storage

from tract_core.model.graph import OutletId
from tract_cpu.program.program import HostStep, NativeStep, Program, ReadStep, Step, touched

if TYPE_CHECKING:
    from tract_core.model.typed import TypedModel


def gone_after(
    model: TypedModel, program: Program, pieces: Sequence[range | HostStep | ReadStep]
) -> list[list[tuple[OutletId, Storage]]]:
    """For each piece of a program, the results of the host that nothing behind it needs, with their storages.

    A piece needs what its steps touch, and the inputs of its nodes: a kernel may leave these to the host.
    """
    own = {
        OutletId(node.node, slot): storage
        for node, step in program.hosted()
        for slot, storage in enumerate(step.results)
    }
    last: dict[Storage, int] = {}
    places = [place for place, step in enumerate(program.steps) if isinstance(step, NativeStep)]
    for number, piece in enumerate(pieces):
        numbers = {places[one] for one in piece} if isinstance(piece, range) else set[int]()
        steps = [program.steps[place] for place in numbers] if isinstance(piece, range) else [piece]
        inlined = [one.node for one in program.inlined if not one.body and one.last in numbers]
        for storage in _needed(model, program, steps, inlined, own):
            last[storage] = number
    for outlet, view in zip(model.outputs, program.outputs, strict=True):
        for storage in (own.get(outlet), view and view.storage):
            if storage is not None:
                last[storage] = len(pieces)
    found: list[list[tuple[OutletId, Storage]]] = [[] for _ in range(len(pieces) + 1)]
    for outlet, storage in own.items():
        found[last[storage]].append((outlet, storage))
    return found[:-1]


def _needed(
    model: TypedModel,
    program: Program,
    steps: Sequence[Step],
    inlined: Sequence[int],
    own: dict[OutletId, Storage],
) -> Iterator[Storage]:
    """The storages of the host that steps need. ``inlined``: nodes whose bodies are among them; ``own``: by outlet."""
    nodes = list(inlined)
    for step in steps:
        yield from (storage for storage in touched(step) if storage.kind is Kind.HOST)
        if isinstance(step, HostStep | ReadStep):
            nodes.append(step.node.node)
        elif not step.body:
            nodes += step.nodes
    for outlet in (outlet for node in nodes for outlet in model.nodes[node].inputs):
        view = program.views.get(outlet)
        if outlet in own:
            yield own[outlet]
        elif view is not None and view.storage.kind is Kind.HOST:
            yield view.storage
