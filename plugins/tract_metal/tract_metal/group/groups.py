"""The kinds of groups that there are: what one call of MLX computes, or several that belong together."""

from __future__ import annotations

from tract_core.compile.groups import Group
from tract_core.compile.lifetimes import read_by
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel


@frozen
class Single(Group):
    """One node."""


@frozen
class Repacking(Group):
    """A group that lays out weights anew, once. ``weights``: those, which are not wanted on the device as they are."""

    weights: tuple[OutletId, ...]


def reads_of(model: TypedModel, group: Group) -> list[OutletId]:
    """The tensors of others that a group reads on the device, each once."""
    repacked = group.weights if isinstance(group, Repacking) else ()
    return [outlet for outlet in read_by(model, group.nodes) if outlet not in repacked]
