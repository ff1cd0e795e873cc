"""From which group to which each tensor counts: what is asked before it gets a place in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tract_core.compile.arena import Lives, lives_of
from tract_core.compile.groups import Group, given_by
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel

StorageFn = Callable[[OutletId], int | None]
"""The number of the storage that a tensor lies in; ``None`` where its memory is somebody else's."""


def lives_of_groups(model: TypedModel, groups: Sequence[Group], storage: StorageFn) -> Lives:
    """From which group to which the content of each storage counts, by the places of groups in their order.

    ``storage``: several tensors may lie in one, as those that are views on each other do. What a group keeps to itself
    lies in none. Outputs of the model count behind the last group, too.
    """
    steps = [list(_storages(_touched(model, group), storage)) for group in groups]
    return lives_of(steps, set(_storages(model.outputs, storage)))


def _touched(model: TypedModel, group: Group) -> Iterator[OutletId]:
    yield from read_by(model, group.nodes)
    yield from given_by(model, group.nodes)


def _storages(outlets: Iterator[OutletId] | Sequence[OutletId], storage: StorageFn) -> Iterator[int]:
    yield from (number for number in map(storage, outlets) if number is not None)


def read_by(model: TypedModel, nodes: Sequence[int]) -> list[OutletId]:
    """The tensors of others that nodes read, each once, in the order in which they are read first."""
    inside = set(nodes)
    reads = (outlet for number in nodes for outlet in model.nodes[number].inputs)
    return list(dict.fromkeys(outlet for outlet in reads if outlet.node not in inside))
