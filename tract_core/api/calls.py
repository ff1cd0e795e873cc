"""How a model is called: what a caller gives becomes arrays, and what the runtime returns becomes tensors.

What is the same in every call is found once, by `Calls`. A call with plain arrays takes a short way; anything else is
looked at one by one, and refused with what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from tract_core.api.order import Given, in_order, wanted_of
from tract_core.api.runtime import calling
from tract_core.api.tensor import Tensor, is_of, tensor_of
from tract_core.errors import InputError
from tract_core.later import Later
from tract_core.prepared.signature import ports_of
from tract_core.runtime.protocol import LendingPlan

if TYPE_CHECKING:
    from tract_core.api.runtime import Runtime
    from tract_core.data import DType
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.keys import Array
    from tract_core.prepared.signature import ModelSignature
    from tract_core.runtime.protocol import Plan, PlanState, Repeating

_ARRAYS: Final[Any] = (np.ndarray, np.generic)


class Calls:
    """The calls of one model on one runtime. Immutable, and made once, by the `Runnable`."""

    __slots__ = ("_inputs", "_kinds", "_lent", "_names", "_numbered_kinds", "_outputs", "_plain", "_runtime", "_types")

    def __init__(self, model: TypedModel | ModelSignature, plan: Plan, runtime: Runtime) -> None:
        self._runtime = runtime
        self._inputs = Later(lambda: wanted_of(model, model.inputs))
        self._outputs = Later(lambda: wanted_of(model, model.outputs))
        given, returned = ports_of(model)
        types = [(kind, dtype) for kind, dtype in zip(given.kinds, given.dtypes, strict=True) if dtype is not None]
        self._types = types if len(types) == len(given.names) else None
        self._names, self._kinds = given.names, returned.kinds
        self._numbered_kinds = list(enumerate(self._kinds))
        self._lent = frozenset(plan.lent) if isinstance(plan, LendingPlan) else frozenset[int]()
        self._plain = not self._lent and None not in returned.dtypes

    def arrays(self, inputs: Given) -> list[Array]:
        """The inputs, in order or by name, as arrays in the order of the model.

        They are read-only, in native byte order, contiguous. Raises InputError for a wrong number of them, for unknown
        or missing names, and for what is no tensor.
        """
        if self._types is not None and isinstance(inputs, (list, tuple, dict)) and len(inputs) == len(self._types):
            given = cast("Any", inputs)
            views = _views(given if inputs.__class__ is not dict else map(given.get, self._names), self._types)
            if views is not None:
                return views
        from tract_core.api.arrays import as_array

        pairs = zip(in_order(inputs, self._inputs.value, "input"), self._inputs.value, strict=True)
        return [as_array(value, name, fact.datum_type) for value, (name, fact) in pairs]

    def repeat(self, repeating: Repeating, inputs: Given, out: Given | None) -> list[Any] | None:
        """One turn that is like one before, if it is: else ``None``, and nothing was done."""
        try:
            if out is not None:
                return repeating.repeat(inputs, out)
            found = repeating.repeat(inputs)
            if found is None and inputs.__class__ is dict and len(inputs) == len(self._names):
                given: Any = inputs
                found = repeating.repeat([given.get(name) for name in self._names])
            if found is None:
                return None
            tensors: list[Any] = found
            for slot, kind in self._numbered_kinds:
                tensors[slot] = tensor_of(tensors[slot], kind)
        except BaseException:
            with calling(self._runtime, "run"):
                raise
        return tensors

    def run(
        self, state: PlanState, inputs: Given, out: Given | None, symbols: Mapping[str, int] | None = None
    ) -> list[Any]:
        """One turn, as `tract_core.Runnable.run` describes it. ``symbols``: values that no input tells."""
        arrays = self.arrays(inputs)
        run = state.run if symbols is None else partial(state.run, symbols=symbols)
        if out is not None:
            return self._fill(run, arrays, out)
        try:
            outputs = run(arrays)
            if not self._plain or len(outputs) != len(self._kinds):
                return self._given_back(arrays, outputs)
            tensors: list[Tensor] = []
            for array, kind in zip(outputs, self._kinds):  # noqa: B905 - they are as many, and every call comes here
                tensors.append(tensor_of(array if array.__class__ is np.ndarray else _array(array), kind))
        except BaseException:
            with calling(self._runtime, "run"):
                raise
        return tensors

    def _given_back(self, arrays: Sequence[Array], outputs: Sequence[Array]) -> list[Any]:
        """What a plan returned where it may be part of an input, or no plain tensor."""
        from tract_core.api.containers import given_back
        from tract_core.data.boxes import tensors_in

        if len(outputs) != len(self._kinds):
            raise ValueError(f"it returned {len(outputs)} outputs, the model has {len(self._kinds)}")
        lent = [one for array in arrays for one in tensors_in(array)]
        copied = partial(_copied, inputs=lent)
        return [
            given_back(array, fact.datum_type, copied if slot in self._lent else _array)
            for slot, (array, (_, fact)) in enumerate(zip(outputs, self._outputs.value, strict=True))
        ]

    def _fill(self, run: Callable[..., list[Array]], arrays: Sequence[Array], out: Given) -> list[Any]:
        """One turn that fills arrays of the caller, and returns them."""
        from tract_core.api.filled import arrays_to_fill, without_overlap

        given = in_order(out, self._outputs.value, "output")
        filled = arrays_to_fill(given, [name for name, _ in self._outputs.value])
        with calling(self._runtime, "run"):
            found = run(without_overlap(arrays, filled), out=filled)
            if len(found) != len(filled) or any(one is not other for one, other in zip(found, filled, strict=True)):
                raise ValueError("it returned other arrays than those that it was to fill")
        return given


def named_inputs(inputs: Sequence[Any], named: Mapping[str, Any], names: Sequence[str]) -> list[Any] | dict[str, Any]:
    """The inputs of a call, as `Calls` takes them. Raises InputError for an input that is given twice."""
    if not named or len(inputs) > len(names):
        return [*inputs, *named.values()]
    by_name = dict(zip(names, inputs, strict=False))  # the others are named
    twice = [name for name in named if name in by_name]
    if twice:
        place = names.index(twice[0])
        raise InputError(f"input {twice[0]!r} is given twice: by name, and as number {place} of the others")
    return by_name | dict(named)


def _views(inputs: Iterable[Any], types: Sequence[tuple[DType | None, np.dtype[Any]]]) -> list[Array] | None:
    """Read-only views on arrays and tensors of these types that every runtime can read; ``None`` where one is not."""
    views: list[Array] = []
    for value, (kind, dtype) in zip(inputs, types):  # noqa: B905 - they are as many, and every call comes here
        if value.__class__ is np.ndarray and value.dtype == dtype:
            view = value.view()
            view.setflags(False)
        elif value.__class__ is Tensor and is_of(value, kind, dtype):
            view = value.view()
        else:
            return None
        flags = view.flags
        if not (flags.c_contiguous and flags.aligned):
            return None
        views.append(view)
    return views


def _array(output: Any) -> Array:
    """An output as an array; a single number of NumPy is one without axes. Raises TypeError for anything else."""
    if not isinstance(output, _ARRAYS):
        raise TypeError(f"it returned a {type(output).__name__} as an output, wanted an array")
    return np.asarray(output)


def _copied(output: Any, inputs: Sequence[Array]) -> Array:
    """An output, copied where it is part of an input, which its owner may change later."""
    array = _array(output)
    return array.copy() if any(np.may_share_memory(array, one) for one in inputs) else array
