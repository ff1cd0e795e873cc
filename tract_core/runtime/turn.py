"""What every runtime does at the beginning of a turn, and after each node that tells a size.

Inputs are compared with their facts, symbols get their values, and what the model was simplified under is checked:
assertions of the scope, conditions of operators, and what one tensor may take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.later import already
from tract_core.limits import RunBudget, run_limit, run_room, running
from tract_core.runtime.binding import ModelInputs, check_assertions
from tract_core.runtime.conditions import ComingConditions
from tract_core.runtime.sizes import ComingSizes

if TYPE_CHECKING:
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.keys import Array
    from tract_core.runtime.host import HostNode, HostState
    from tract_core.runtime.outputs import Outputs


class Turn:
    """What is checked in every turn of one model. Immutable: made once, by the plan.

    ``nodes``: those that the runtime runs, in order, whoever runs them.
    """

    def __init__(self, model: TypedModel, nodes: Sequence[HostNode]) -> None:
        from tract_core.runtime.outputs import Outputs

        self.inputs = ModelInputs(model)
        self._outputs = already(Outputs(model))
        self._scope = already(model.symbols) if any(model.symbols.assertions()) else None
        self._telling = [node for node in nodes if node.op.tells]
        self._conditions = ComingConditions(model, nodes)
        self._sizes = ComingSizes(nodes, run_limit(model.limits))
        self.seconds = model.limits.run_deadline_s
        """How long a run may take."""
        self.room = run_room(model.limits)
        """Bytes that a run may hold in tensors at the same time."""

    @property
    def is_told_by_shapes(self) -> bool:
        """Whether the types and shapes of the inputs tell all values that symbols have when a turn begins."""
        return self.inputs.types is not None and not self._telling

    @property
    def outputs(self) -> Outputs:
        """What compares arrays that are to be filled with the outputs, and fills them."""
        return self._outputs.value

    def begin(
        self,
        host: HostState,
        inputs: Sequence[Array],
        out: Sequence[Array] | None = None,
        symbols: Mapping[str, int] | None = None,
    ) -> Mapping[str, int]:
        """A turn of a state begins: every check that can be made before the first node runs, and the symbols' values.

        What was checked for the same values in the turn before is not checked again. ``out``: arrays to fill.
        ``symbols``: values known from elsewhere (an enclosing model). Raises InputError or RunError.
        """
        bound = self.bind(inputs, symbols, host)
        if not host.begins_as_before(bound):
            self.check(bound)
        if out is not None:
            self.outputs.check(out, bound)
        host.begin(bound)
        return bound

    def bind(
        self, inputs: Sequence[Array], symbols: Mapping[str, int] | None = None, host: HostState | None = None
    ) -> dict[str, int]:
        """The values of the symbols. ``symbols``: values known from elsewhere (an enclosing model).

        ``host``: what nodes keep, which tells the sizes of what came before; a model in which nothing does needs none.
        Raises InputError when the arrays do not fit the facts of the inputs, with what is wrong; RunError where states
        tell what cannot be.
        """
        if not symbols and not self._telling:
            return self.inputs.bind(inputs)
        from tract_core.model.bodies import from_outside

        known = from_outside(self.inputs.own_symbols, symbols or {})
        if self._telling:
            assert host is not None  # who runs such nodes has one
            known = host.tell(self._telling, known)
        return self.inputs.bind(inputs, known)

    def check(self, symbols: Mapping[str, int]) -> None:
        """Before the first node runs. Raises InputError or RunError, naming what does not hold."""
        if self._scope is not None:
            check_assertions(self._scope.value, symbols)
        self._conditions.check_all(symbols)
        self._sizes.check_all(symbols)

    def check_after(self, node: HostNode, symbols: Mapping[str, int]) -> None:
        """When it is known which values a node gives symbols. Raises RunError."""
        self._conditions.check_after(node.node, symbols)
        self._sizes.check_after(node.node, symbols)

    def going(self, host: HostState | None = None) -> _Going:
        """Around the nodes: the limits of a run count, and NumPy warns of no overflow.

        ``host``: what nodes keep; where they fail, what tells sizes is as before.
        """
        return _Going(self._sizes.allowed, self.seconds, self.room, host if self._telling else None)


class _Going:
    """A class, as every turn comes here."""

    __slots__ = ("_errors", "_host", "_running")

    def __init__(self, tensor_bytes: int, seconds: float, run_bytes: int, host: HostState | None) -> None:
        self._host = host
        self._errors = np.errstate(all="ignore")
        self._running = running(tensor_bytes, seconds, run_bytes)

    def __enter__(self) -> RunBudget:
        budget = self._running.__enter__()
        self._errors.__enter__()
        return budget

    def __exit__(self, *raised: Any) -> None:
        self._errors.__exit__(*raised)
        self._running.__exit__(*raised)
        if self._host is not None:
            self._host.end(failed=raised[0] is not None)
