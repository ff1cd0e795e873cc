"""Check the arrays that a caller gives against the facts of a model's inputs, and find the values of the symbols."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from tract_core.dims import complete
from tract_core.errors import DimError, InputError
from tract_core.later import already
from tract_core.runtime.binding_plan import BindingPlan

if TYPE_CHECKING:
    from tract_core.dims import SymbolScope
    from tract_core.model.fact import TypedFact
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.keys import Array


class ModelInputs:
    """The inputs of one model, and how their arrays bind its symbols. Immutable: made once, by the plan."""

    def __init__(self, model: TypedModel) -> None:
        from tract_core.data import Container
        from tract_core.model.bodies import own_symbols

        facts = [model.outlet_fact(outlet) for outlet in model.inputs]
        self.names = [model.outlet_name(outlet) for outlet in model.inputs]
        self._facts = already(facts)
        self.own_symbols = own_symbols(model)
        self._definitions = tuple(model.symbols.definitions)
        self._plan = BindingPlan.of(facts)
        plain = not any(isinstance(fact.datum_type, Container) for fact in facts)
        self.types = [fact.datum_type.storage.numpy for fact in facts] if plain else None
        """Those of the arrays; ``None`` where an input is no tensor."""

    @property
    def facts(self) -> list[TypedFact]:
        """The facts of the inputs."""
        return self._facts.value

    def bind(self, arrays: Sequence[Array], known: Mapping[str, int] | None = None) -> dict[str, int]:
        """The values of all symbols, from the shapes of the arrays (and from what is ``known`` before).

        Raises InputError as `bind_inputs` does, which is asked where anything is unusual.
        """
        if self.types is not None and len(arrays) == len(self.types):
            shapes: list[tuple[int, ...]] = []
            for array, dtype in zip(arrays, self.types):  # noqa: B905 - as many; in this function time counts
                if array.dtype != dtype:
                    break
                shapes.append(array.shape)
            else:
                values = self._plan.values(shapes, known)
                if values is not None:
                    return self._completed(values)
        from tract_core.runtime.misfits import bind_inputs  # which has all that there is to say

        return self._completed(bind_inputs(self.names, self.facts, arrays, known))

    def _completed(self, values: dict[str, int]) -> dict[str, int]:
        if self._definitions:
            complete(values, self._definitions)
        return values


def check_assertions(scope: SymbolScope, values: Mapping[str, int]) -> None:
    """Raises InputError when something does not hold that the model was simplified under, as ``S>=3``."""
    try:
        scope.check(values)
    except DimError as error:
        raise InputError(error.problem, hint=error.hint) from None
