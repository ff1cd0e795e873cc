"""The stages of loading a model, in order: the core's, and the transforms that plugins put between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tract_core.errors import PluginError

if TYPE_CHECKING:
    from tract_core.plugins.descriptor import Stage

STAGES: Final[Sequence[str]] = (
    "load",
    "analyse",
    "incorporate",
    "type",
    "declutter",
    "set",
    "set-declutter",
    "before-optimize",
    "optimize",
)
"""The core's stages, in order. The transforms of ``-t`` are applied in ``declutter``, behind the rules."""

TYPED: Final[Sequence[str]] = STAGES[STAGES.index("type") : STAGES.index("optimize")]
"""The stages behind which there is a typed model that may still change."""


def in_order(added: Mapping[str, Stage]) -> list[str]:
    """The names of all stages. Of those behind one stage, the first by name comes first."""
    names: list[str] = list(STAGES)
    right = {name: stage for name, stage in added.items() if what_is_wrong(stage, added) is None}
    waiting = dict(sorted(right.items(), reverse=True))
    while waiting:
        placed = [name for name, stage in waiting.items() if stage.after in names]
        for name in placed:
            names.insert(names.index(waiting.pop(name).after) + 1, name)
    return names


def what_is_wrong(stage: Stage, added: Mapping[str, Stage]) -> PluginError | None:
    """Why a stage cannot have its place, or ``None``."""
    name, before = stage.after, {stage.name}
    while name in added and name not in before:
        before.add(name)
        name = added[name].after
    if name in TYPED:
        return None
    found = "in the end after itself" if name in before else f"after {name!r}, where no typed model is"
    if name not in STAGES and name not in before:
        found = f"after {name!r}, which is no stage"
    return PluginError(f"the stage {stage.name!r} comes {found}", hint=f"let it come after one of {', '.join(TYPED)}")
