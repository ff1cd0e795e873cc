"""What a meaning is given in the place of arrays and of sizes: each thing that it does with them becomes a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

import numpy as np

from tract_core.dims import Dim, is_symbolic, less_or_equal, product, same_dim
from tract_cpu.tracing.refused import line_here

if TYPE_CHECKING:
    from tract_core.model.graph import OutletId
    from tract_cpu.tracing.trace import Trace

Ufunc = Any


def _forward(function: Ufunc) -> Callable[..., Any]:
    def compute(self: Traced, other: Any) -> Any:
        return self.trace.ufunc(function, (self, other))

    return compute


def _backward(function: Ufunc) -> Callable[..., Any]:
    def compute(self: Traced, other: Any) -> Any:
        return self.trace.ufunc(function, (other, self))

    return compute


def _in_place(function: Ufunc) -> Callable[..., Any]:
    def compute(self: Traced, other: Any) -> Any:
        return self.changed(self.trace.ufunc(function, (self, other)))

    return compute


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    def compute(self: Traced, *args: Any, **kwargs: Any) -> Any:
        return self.trace.call(function, (self, *args), kwargs)

    return compute


def _look(self: Traced, *args: Any) -> NoReturn:
    self.trace.refuse_look()


def listed(value: Any) -> list[Any]:
    """What an argument names where it may name one thing, or several in a tuple or list."""
    return list(cast("Sequence[Any]", value)) if isinstance(value, (tuple, list)) else [value]


class Traced:
    """An array that is not there yet. ``own``: whether nobody else sees its memory, so that it may be changed."""

    __array_priority__ = 1000.0
    __hash__ = None  # type: ignore[assignment] - as of arrays

    def __init__(self, trace: Trace, outlet: OutletId, *, own: bool) -> None:
        self.trace, self.outlet, self.own = trace, outlet, own

    @property
    def dtype(self) -> np.dtype[Any]:
        """The element type."""
        return self.trace.dtype(self.outlet)

    @property
    def shape(self) -> tuple[int | TracedSize, ...]:
        """The sizes; those that differ from run to run as `TracedSize`."""
        return tuple(TracedSize.of(self.trace, size) for size in self.trace.shape(self.outlet))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.trace.shape(self.outlet))

    @property
    def size(self) -> int | TracedSize:
        """The number of elements."""
        return TracedSize.of(self.trace, product(self.trace.shape(self.outlet)))

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def T(self) -> Traced:  # noqa: N802 - the name that NumPy gives it
        """The axes in reverse order."""
        return self.trace.call(np.transpose, (self,), {})

    @property
    def real(self) -> Traced:
        """Itself: there are no complex numbers here."""
        return self

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)  # what protocols ask for, of which there are none here
        self.trace.refuse(f"its meaning uses `.{name}` of an array, which native code does not know")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ("trace", "outlet", "own"):
            self.trace.refuse(f"its meaning sets `.{name}` of an array")
        object.__setattr__(self, name, value)

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """What NumPy calls in the place of an element-wise function."""
        reductions = self.trace.functions.reductions
        if method == "reduce" and function in reductions:
            return self.trace.call(reductions[function], inputs, {"axis": 0, **kwargs})
        out = kwargs.pop("out", None)
        if method != "__call__" or kwargs:
            how = method if method != "__call__" else " and ".join(kwargs)
            self.trace.refuse(f"its meaning calls numpy.{function.__name__} with `{how}`")
        found = self.trace.call(np.matmul, inputs, {}) if function is np.matmul else self.trace.ufunc(function, inputs)
        if out is None:
            return found
        if not isinstance(out[0], Traced):
            self.trace.refuse(f"its meaning writes into an array: {line_here()}")
        return out[0].changed(found)

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        """What NumPy calls in the place of any other function."""
        return self.trace.call(function, args, kwargs)

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Whoever wants elements."""
        self.trace.refuse_look()

    def changed(self, found: Traced) -> Traced:
        """The array, changed in place. Raises NotTraced where somebody else may see that."""
        trace = self.trace
        if not self.own:
            trace.refuse(f"its meaning changes an array in place that others see: {line_here()}")
        fits = np.can_cast(found.dtype, self.dtype, "same_kind")
        if not fits or trace.shape(found.outlet) != trace.shape(self.outlet):
            trace.refuse(f"its meaning changes an array in place into one of another kind: {line_here()}")
        self.outlet = trace.cast(found.outlet, self.dtype)
        return self

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        self.trace.refuse(f"its meaning writes into an array: {line_here()}")

    def __getitem__(self, key: Any) -> Traced:
        return self.trace.functions.indexed(self.trace, self, key)

    def __len__(self) -> int:
        if not self.ndim:
            raise TypeError("len() of unsized object")
        return int(self.shape[0])

    def __iter__(self) -> Iterator[Traced]:
        if isinstance(self.shape[0], TracedSize):
            self.trace.refuse(f"its meaning loops over a symbolic size: {line_here()}")
        return (self[place] for place in range(len(self)))

    def astype(
        self, dtype: Any, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Traced:
        """In another element type; how memory is laid out changes nothing."""
        if not copy and np.dtype(dtype) == self.dtype:
            return self
        return self.trace.made(self.trace.cast(self.outlet, np.dtype(dtype)))

    def copy(self, order: str = "C") -> Traced:
        """The same elements."""
        return self.trace.made(self.outlet)

    def reshape(self, *shape: Any, **kwargs: Any) -> Traced:
        """In other axes."""
        return self.trace.call(np.reshape, (self, shape[0] if len(shape) == 1 else shape), kwargs)

    def transpose(self, *axes: Any) -> Traced:
        """With its axes in another order."""
        if not axes or axes == (None,):
            return self.T
        order = listed(axes[0]) if len(axes) == 1 else axes
        return self.trace.call(np.transpose, (self, order), {})

    def flatten(self, order: str = "C") -> Traced:
        """On one axis, in memory of its own."""
        return self.trace.made(self.trace.call(np.reshape, (self, -1), {"order": order}).outlet)

    def conj(self) -> Traced:
        """Itself: there are no complex numbers here."""
        return self

    def __pos__(self) -> Traced:
        return self.trace.ufunc(np.positive, (self,))

    def __neg__(self) -> Traced:
        return self.trace.ufunc(np.negative, (self,))

    def __abs__(self) -> Traced:
        return self.trace.ufunc(np.absolute, (self,))

    def __invert__(self) -> Traced:
        return self.trace.ufunc(np.invert, (self,))

    def __matmul__(self, other: Any) -> Traced:
        return self.trace.call(np.matmul, (self, other), {})

    def __rmatmul__(self, other: Any) -> Traced:
        return self.trace.call(np.matmul, (other, self), {})


_BOTH_WAYS: Final[dict[str, Ufunc]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.true_divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "pow": np.power,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
}
"""Operators of Python, which are there from both sides, and in place."""

_COMPARED: Final[dict[str, Ufunc]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}

_METHODS: Final = (
    *("sum", "prod", "mean", "var", "std", "max", "min", "any", "all", "argmax", "argmin", "cumsum"),
    *("clip", "round", "dot", "repeat", "squeeze", "swapaxes", "ravel"),
)
"""Methods of arrays that are the functions of these names."""

_LOOKS: Final = ("__bool__", "__int__", "__float__", "__index__", "__complex__", "__contains__", "item", "tolist")
"""Methods of arrays that tell elements."""

for _name, _ufunc in _BOTH_WAYS.items():
    setattr(Traced, f"__{_name}__", _forward(_ufunc))
    setattr(Traced, f"__r{_name}__", _backward(_ufunc))
    setattr(Traced, f"__i{_name}__", _in_place(_ufunc))
for _name, _ufunc in _COMPARED.items():
    setattr(Traced, f"__{_name}__", _forward(_ufunc))
for _name in _METHODS:
    setattr(Traced, _name, _method(getattr(np, _name)))
for _name in _LOOKS:
    setattr(Traced, _name, _look)


class TracedSize:
    """A size that differs from run to run: it is computed with, and compared where every run gives one answer."""

    __hash__ = None  # type: ignore[assignment] - as no number is known

    def __init__(self, trace: Trace, dim: Dim) -> None:
        self.trace, self.dim = trace, dim

    @staticmethod
    def of(trace: Trace, dim: Dim) -> int | TracedSize:
        """A number where it is one."""
        return TracedSize(trace, dim) if is_symbolic(dim) else int(dim)  # type: ignore[arg-type] - it is a number then

    def _number(self, *_: Any) -> NoReturn:
        self.trace.refuse_size()

    def _with(self, other: Any, compute: Callable[[Any, Any], Any]) -> Any:
        """A size where the other is one, else what NumPy makes of an array, or of a number of Python."""
        if isinstance(other, Traced):
            return NotImplemented
        if isinstance(other, TracedSize) or type(other) is int:
            return TracedSize.of(self.trace, compute(self.dim, other.dim if isinstance(other, TracedSize) else other))
        return self._number()

    def _answer(self, other: Any, ask: Callable[[Any, Any], bool | None]) -> Any:
        if isinstance(other, Traced):
            return NotImplemented
        known = isinstance(other, TracedSize) or type(other) is int
        found = ask(self.dim, other.dim if isinstance(other, TracedSize) else other) if known else None
        return self._number() if found is None else found

    def __add__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a + b)

    def __sub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a - b)

    def __rsub__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: b - a)

    def __mul__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a * b)

    def __floordiv__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a // b) if type(other) is int and other > 0 else self._number()

    def __mod__(self, other: Any) -> Any:
        return self._with(other, lambda a, b: a % b) if type(other) is int and other > 0 else self._number()

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other: object) -> Any:
        return self._answer(other, same_dim)

    def __ne__(self, other: object) -> Any:
        found = self._answer(other, same_dim)
        return found if found is NotImplemented else not found

    def __le__(self, other: Any) -> Any:
        return self._answer(other, less_or_equal)

    def __ge__(self, other: Any) -> Any:
        return self._answer(other, lambda a, b: less_or_equal(b, a))

    def __lt__(self, other: Any) -> Any:
        return self._answer(other, lambda a, b: less_or_equal(a + 1, b))

    def __gt__(self, other: Any) -> Any:
        return self._answer(other, lambda a, b: less_or_equal(b + 1, a))

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """What NumPy calls in the place of an element-wise function."""
        if method != "__call__" or kwargs:
            self._number()
        return self.trace.ufunc(function, inputs)

    __bool__ = __int__ = __float__ = __index__ = __truediv__ = __rtruediv__ = __pow__ = __rpow__ = __neg__ = _number
    __array__ = _number
