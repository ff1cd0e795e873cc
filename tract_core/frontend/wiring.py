"""Where one operator of a file becomes core operators: its inputs by number, and what must be known of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_core.dims import is_symbolic
from tract_core.errors import CorruptModel, FactError, LimitExceeded, Unsupported
from tract_core.frontend.node import Inputs
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins.keys import Array

MAX_COUNT: Final = 1 << 16
"""Elements of a list that each stand for something of their own: axes, pieces."""


class SlotWiring(NodeWiring, Inputs[int]):
    """The typed model under construction, and one node's inputs in it.

    ``inputs``: one outlet per input of the file's node, ``None`` for an optional one that is left out.
    """

    def __init__(self, model: TypedModel, name: str, inputs: Sequence[OutletId | None]) -> None:
        super().__init__(model, name)
        self.slots = list(inputs)

    @property
    def wiring(self) -> NodeWiring:
        """Itself."""
        return self

    def input(self, slot: int) -> OutletId:
        """An input that must be there. Raises CorruptModel when it is not."""
        found = self.optional_input(slot)
        if found is None:
            given = sum(outlet is not None for outlet in self.slots)
            raise CorruptModel(f"input {slot} is missing; the node has {given} inputs")
        return found

    def optional_input(self, slot: int) -> OutletId | None:
        """An input that may be left out."""
        return self.slots[slot] if slot < len(self.slots) else None

    def all_inputs(self) -> list[OutletId]:
        """Every input of an operator that takes any number, at least one."""
        if not self.slots:
            raise CorruptModel("the node has no inputs, at least one is wanted")
        return [self.input(slot) for slot in range(len(self.slots))]

    def known(self, x: OutletId, what: str) -> Array:
        """The value, which must be known before the model runs. Raises Unsupported, naming ``what``."""
        value = self.constant(x)
        if value is None:
            raise Unsupported(
                f"{what} must be known when the model is loaded, and {self.model.outlet_name(x)!r} is computed",
                hint="make it a constant when exporting, or give the sizes that it depends on",
            )
        return value

    def count(self, x: OutletId, what: str) -> int:
        """The number of elements, which must be known before the model runs. Raises Unsupported, naming ``what``."""
        self._check_integers(x, what)
        volume = self.shape(x).volume
        if is_symbolic(volume):
            raise Unsupported(f"the number of {what} must be known when the model is loaded, found {self.fact(x)}")
        if int(volume) > MAX_COUNT:
            raise LimitExceeded(f"there are {volume} {what}, at most {MAX_COUNT} are allowed")
        return int(volume)

    def known_ints(self, x: OutletId, what: str) -> tuple[int, ...]:
        """The integers in an input, which must be known before the model runs. Raises Unsupported, naming ``what``."""
        self._check_integers(x, what)
        return tuple(int(value) for value in self.known(x, what).reshape(-1).tolist())

    def known_int(self, x: OutletId, what: str) -> int:
        """The one integer in an input, known as for `known_ints`. Raises CorruptModel where there are others."""
        found = self.known_ints(x, what)
        if len(found) != 1:
            raise CorruptModel(f"{what} is one integer, found {len(found)}")
        return found[0]

    def ints(self, x: OutletId, what: str) -> tuple[int, ...] | None:
        """The integers in an input, where they are known and free of symbols. Raises FactError for another type."""
        self._check_integers(x, what)
        known = self.constant(x)
        return None if known is None else tuple(int(value) for value in known.reshape(-1).tolist())

    def _check_integers(self, x: OutletId, what: str) -> None:
        if not self.dtype(x).is_integer():
            raise FactError(f"{self.fact(x)} is given for the {what}, wanted integers")
