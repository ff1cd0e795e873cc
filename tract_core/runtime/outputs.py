"""Arrays of a caller that the outputs of a model fill: whether they fit, and how they are filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tract_core.data import Container
from tract_core.errors import InputError
from tract_core.runtime.returned import sizes_now

if TYPE_CHECKING:
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.keys import Array


class Outputs:
    """The outputs of one model. Immutable: made once, by the plan."""

    def __init__(self, model: TypedModel) -> None:
        self.names = [model.outlet_name(outlet) for outlet in model.outputs]
        self.facts = [model.outlet_fact(outlet) for outlet in model.outputs]

    def check(self, out: Sequence[Array], symbols: Mapping[str, int]) -> None:
        """Before a run: raises InputError for a wrong number of arrays, and for a wrong type, rank or size of one.

        Sizes that only the run tells are looked at by `fill`.
        """
        if len(out) != len(self.facts):
            wanted = ", ".join(f"{name} ({fact})" for name, fact in zip(self.names, self.facts, strict=True))
            raise InputError(f"{len(out)} arrays are given for the outputs, the model has {len(self.facts)}: {wanted}")
        for slot, (fact, array) in enumerate(zip(self.facts, out, strict=True)):
            if isinstance(fact.datum_type, Container):
                hint = "run without arrays for the outputs: it returns what the model gives"
                raise self._error(slot, f"no array holds a {fact.datum_type}", hint)
            dtype = fact.datum_type.storage.numpy
            if array.dtype != dtype:
                raise self._error(
                    slot,
                    f"the array is of type {array.dtype}, the output is {fact}",
                    f"numpy.empty(shape, {dtype.name!r}) makes one",
                )
            self._check_shape(slot, array, sizes_now(fact, symbols))

    def fill(self, out: Sequence[Array], found: Sequence[Array]) -> list[Array]:
        """``out``, with what was computed copied into it. Raises InputError where a size that the run told is another.

        No array of ``out`` shares memory with one of ``found``.
        """
        for slot, (array, output) in enumerate(zip(out, found, strict=True)):
            self._check_shape(slot, array, output.shape)
        for array, output in zip(out, found, strict=True):
            np.copyto(array, output)
        return list(out)

    def _check_shape(self, slot: int, array: Array, wanted: Sequence[int | None]) -> None:
        fits = array.ndim == len(wanted) and all(b is None or a == b for a, b in zip(array.shape, wanted, strict=True))
        if not fits:
            sizes = ",".join("_" if size is None else str(size) for size in wanted)
            found = ",".join(map(str, array.shape))
            text = f"the array has shape [{found}], the output is {self.facts[slot]}"
            raise self._error(slot, text, f"in this run its shape is [{sizes}]")

    def _error(self, slot: int, problem: str, hint: str) -> InputError:
        return InputError(problem, where=f"array for output {self.names[slot]!r}", hint=hint)
