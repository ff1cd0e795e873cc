"""Decide where in one piece of memory tensors lie, for all sizes, and until when anybody needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

import numpy as np

from tract_core.compile.arena import plan_arena
from tract_core.compile.groups import Group, given_by
from tract_core.compile.lifetimes import lives_of_groups
from tract_core.dims import Dim, evaluate
from tract_core.limits import check_room
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_core.runtime.held import owner_of
from tract_fuse.groups import Blocks

ALIGNMENT = 64


class Memory:
    """What is known before any size has a value. ``dying``: for each group, what nobody needs behind it.

    In the arena lies what groups of element-wise nodes give.
    """

    def __init__(self, model: TypedModel, groups: Sequence[Group]) -> None:
        given = [(outlet, group) for group in groups for outlet in given_by(model, group.nodes)]
        lives = lives_of_groups(model, groups, {outlet: number for number, (outlet, _) in enumerate(given)}.get)
        self.dying: list[list[OutletId]] = [[] for _ in [*groups, None]]
        for number, (_, last) in lives.items():
            self.dying[last].append(given[number][0])
        blocks = {number: outlet for number, (outlet, group) in enumerate(given) if isinstance(group, Blocks)}
        self._inside = {number: (outlet, model.outlet_fact(outlet)) for number, outlet in blocks.items()}
        sizes: list[Dim] = [0] * len(given)
        for number, (_, fact) in self._inside.items():
            sizes[number] = fact.shape.volume * fact.datum_type.itemsize
        self._plan = plan_arena(sizes, {number: lives[number] for number in blocks}, lambda _: 0, ALIGNMENT)

    def arena(self, symbols: Mapping[str, int]) -> tuple[Array, dict[OutletId, Array]]:
        """The memory of one turn, in which symbols have these values, and what lies in it."""
        plan, found = self._plan, dict[OutletId, Array]()
        largest = [max(evaluate(size, symbols) for size in sizes) for sizes in plan.slots]
        *begins, end = accumulate((-(-size // ALIGNMENT) * ALIGNMENT for size in largest), initial=0)
        check_room(end)
        memory = np.empty(end, np.uint8)
        for number, (outlet, fact) in self._inside.items():
            begin = begins[plan.slot_of[number]] + evaluate(plan.offset_of[number], symbols)
            shape = tuple(evaluate(size, symbols) for size in fact.shape)
            found[outlet] = np.ndarray(shape, fact.datum_type.storage.numpy, memory, begin)
        return memory, found


def apart(array: Array, memory: Array) -> Array:
    """An array that stays as it is when its place in the memory is another tensor's: a copy, if it lies there."""
    return array.copy() if owner_of(array) is memory else array
