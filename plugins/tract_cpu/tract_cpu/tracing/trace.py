"""What is written down while a meaning is called: core operators in a model of their own.

`Trace` knows of types what NumPy knows: numbers of Python take the type of the arrays beside them, arrays and numbers
of NumPy have their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, comparison, is_symbolic, product
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.check import CheckShape
from tract_core.ops.node_wiring import NodeWiring
from tract_cpu.tracing.refused import NotTraced, line_here, name_of
from tract_cpu.tracing.traced import Traced, TracedSize, listed

KNOWN = "biuf"
"""The kinds of types of NumPy that meanings compute with; other types are only converted."""


@frozen
class Functions:
    """The functions of NumPy that are known.

    ``ufuncs``: element-wise ones, ``(trace, *operands) -> result``: outlets of one rank, in the types in which NumPy
    computes. ``others``: ``(trace, *arguments) -> Traced`` (or several): the arguments are those of the function, by
    the same names. ``reductions``: what ``ufunc.reduce`` is. ``indexed``: ``(trace, x, key) -> x[key]``.
    """

    ufuncs: Mapping[np.ufunc, Callable[..., Any]]
    others: Mapping[Callable[..., Any], Callable[..., Any]]
    reductions: Mapping[np.ufunc, Callable[..., Any]]
    indexed: Callable[..., Traced]


class Trace:
    """The model under construction. ``functions``: what is known.

    ``open_zeros``: whether NumPy leaves open which of two zeros an operator gives. ``refusal``: the first reason not to
    go on, which holds also where the meaning went on.
    """

    def __init__(self, model: TypedModel, name: str, functions: Functions) -> None:
        self.functions = functions
        self.wire = NodeWiring(model, name)
        self.open_zeros = False
        self.refusal: str | None = None

    def refuse(self, reason: str) -> NoReturn:
        """Raises NotTraced."""
        self.refusal = self.refusal or reason
        raise NotTraced(reason)

    def refuse_look(self) -> NoReturn:
        """Raises NotTraced, as the meaning wants to know elements."""
        self.refuse(f"its meaning looks at values: {line_here()}")

    def refuse_size(self) -> NoReturn:
        """Raises NotTraced, as the meaning wants to know a size that differs from run to run."""
        self.refuse(f"its meaning needs the number of a symbolic size: {line_here()}")

    def call(self, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """What a function of NumPy gives of arrays of which one at least is symbolic."""
        row = self.functions.others.get(function)
        if row is None:
            self.refuse(f"its meaning calls {name_of(function)}, which native code does not know")
        try:
            return row(self, *args, **kwargs)
        except TypeError as error:
            why = str(error).rpartition("() ")[2]  # without the name of the function that wires it
            self.refuse(f"its meaning calls {name_of(function)} in a way that native code does not know: {why}")

    def ufunc(self, function: np.ufunc, args: Sequence[Any]) -> Traced:
        """What an element-wise function gives, in the types in which NumPy would compute it."""
        row = self.functions.ufuncs.get(function)
        if row is None or function.nout != 1:
            self.refuse(f"its meaning calls {name_of(function)}, which native code does not know")
        *types, result = function.resolve_dtypes((*map(self.type_for_numpy, args), None))
        if any(one.kind not in KNOWN or not one.isbuiltin for one in (*types, result)):
            self.refuse(f"its meaning computes {name_of(function)} in a type that native code only converts")
        operands = self.wire.ranks(*map(self.outlet, args, types))
        found = row(self, *operands)
        if self.dtype(found) != result:
            self.refuse(f"its meaning calls {name_of(function)} on types that native code does not know it on")
        return self.made(found)

    def made(self, outlet: OutletId) -> Traced:
        """A new array."""
        return Traced(self, outlet, own=True)

    def view(self, outlet: OutletId, of: Traced) -> Traced:
        """An array that is, or may be, a view on another one."""
        of.own = False
        return Traced(self, outlet, own=False)

    def array(self, value: Any) -> Traced:
        """A value as an array, as ``numpy.asarray`` does it."""
        if isinstance(value, Traced):
            return value
        return self.made(self.outlet(value, np.result_type(self.type_now(value))))

    def dtype(self, outlet: OutletId) -> np.dtype[Any]:
        """The element type, as NumPy knows it."""
        return self.wire.dtype(outlet).numpy

    def shape(self, outlet: OutletId) -> tuple[Dim, ...]:
        """The sizes."""
        return tuple(self.wire.shape(outlet))

    def type_for_numpy(self, value: Any) -> Any:
        """What ``ufunc.resolve_dtypes`` wants to hear of an operand: ``int`` and ``float`` for numbers of Python."""
        if isinstance(value, TracedSize):
            return int
        if type(value) in (int, float):
            return float if isinstance(value, float) else int
        return self.type_now(value)

    def type_now(self, value: Any) -> Any:
        """What ``numpy.result_type`` wants to hear of an operand."""
        if isinstance(value, Traced):
            return value.dtype
        if isinstance(value, TracedSize):
            return 0
        return value if type(value) in (int, float) else np.asarray(value).dtype

    def common_type(self, *values: Any) -> np.dtype[Any]:
        """The type that all of them are brought to."""
        return np.result_type(*map(self.type_now, values))

    def outlet(self, value: Any, dtype: np.dtype[Any]) -> OutletId:
        """A value in an element type. What does not fit raises what NumPy raises."""
        if isinstance(value, Traced):
            return self.cast(value.outlet, dtype)
        if isinstance(value, TracedSize):
            return self.cast(self.wire.const(value.dim), dtype)
        found = np.asarray(value, dtype) if type(value) in (int, float) else np.asarray(value).astype(dtype)
        self.known(found.dtype)
        return self.wire.const(np.asarray(found))

    def known(self, dtype: np.dtype[Any]) -> DatumType:
        """The element type of the core. Raises NotTraced for one that there is none of, or that no number has."""
        try:
            kind = DatumType.from_numpy(dtype)
        except (KeyError, TypeError, ValueError):
            kind = None
        if kind is None or not (kind.is_bool() or kind.is_integer() or kind.is_float()):
            self.refuse(f"its meaning makes arrays of {dtype}, which native code does not know")
        return kind

    def cast(self, outlet: OutletId, dtype: np.dtype[Any]) -> OutletId:
        """An array in another element type."""
        return self.wire.cast(outlet, self.known(np.dtype(dtype)))

    def axes(self, x: OutletId, axis: Any) -> list[int]:
        """The axes that an argument named ``axis`` names, from the front; all where it is ``None``."""
        rank = self.wire.rank(x)
        named = range(rank) if axis is None else listed(axis)
        return self.wire.axes([int(one) for one in named], rank)

    def not_empty(self, x: Traced, axes: Sequence[int], what: str) -> None:
        """Have runs refused in which something is wanted of no elements, as NumPy refuses them."""
        shape = self.shape(x.outlet)
        none = comparison(product(shape[axis] for axis in axes), "==", 0)
        some = comparison(product(size for axis, size in enumerate(shape) if axis not in axes), ">=", 1)
        self.refuse_where(x, comparison(none + some, ">=", 2), f"there is no {what} of no elements")

    def refuse_where(self, x: Traced, wrong: Dim, reason: str) -> None:
        """Have runs refused in which ``wrong`` is 1, and not 0. Where no run is left, the meaning is."""
        wrong = self.wire.model.simplified(wrong)
        if not is_symbolic(wrong):
            if wrong == 1:
                self.refuse(f"{reason}: {line_here()}")
            return
        size, *others = self.shape(x.outlet)
        check = CheckShape((size + wrong, *(None for _ in others)), reason, "leave runs of such sizes out")
        x.outlet = self.wire.op(check, x.outlet)

    def in_wide(self, x: OutletId, function: Callable[[OutletId], OutletId]) -> OutletId:
        """What a function of several operators gives, computed in f32 for narrower floats, and rounded once."""
        own = self.dtype(x)
        wide = np.dtype(np.float32) if own.itemsize < np.dtype(np.float32).itemsize else own
        return self.cast(function(self.cast(x, wide)), own)
