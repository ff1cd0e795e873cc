"""What a Python function reads and writes besides its arguments, found in its code: nothing is called for it.

A meaning is traced once and then not called any more. So it may read only what stays as it is: numbers, texts, tuples
of such, arrays that nobody writes to, functions that hold to the same, and functions of NumPy that give the same every
time.
"""

from __future__ import annotations

import builtins
import dis
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import partial
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Final, cast

import numpy as np

from tract_core.data import Constant, DatumType, QuantizedType
from tract_core.dims import TDim
from tract_core.model.fields import field_names
from tract_core.model.op import TypedOp
from tract_core.plugins.keys import Array
from tract_cpu.tracing.refused import NotTraced, name_of
from tract_cpu.tracing.table import FUNCTIONS
from tract_cpu.tracing.traced import Traced, TracedSize

_BUILTINS: Final = frozenset({
    "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "filter", "float", "int", "len", "list", "map", "max",
    "min", "next", "pow", "range", "reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple", "zip",
    "Ellipsis",
})  # fmt: skip
"""What functions of Python may be called besides ``isinstance``; others that look at types would see no arrays."""

_OF_NUMPY: Final = frozenset({
    "arange", "broadcast_shapes", "can_cast", "diag", "eye", "full", "geomspace", "hamming", "hanning", "identity",
    "isscalar", "issubdtype", "linspace", "logspace", "meshgrid", "ones", "outer", "promote_types", "result_type",
    "tri", "tril", "triu", "zeros",
})  # fmt: skip
"""Functions of NumPy that give the same every time and take no part of the result: those are in the table."""

_PLAIN: Final = (
    *(int, float, complex, str, bytes, type(None), type(Ellipsis), range, Enum),
    *(np.generic, np.dtype, Constant, DatumType, QuantizedType, TDim),
)

_CHANGES: Final[Mapping[str, str]] = {
    "STORE_GLOBAL": "changes the global `{}`",
    "DELETE_GLOBAL": "changes the global `{}`",
    "STORE_ATTR": "sets the attribute `{}`",
    "DELETE_ATTR": "deletes the attribute `{}`",
    "IMPORT_NAME": "imports `{}` while it runs",
}


def as_array(value: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """``numpy.asarray``, which asks nobody who is in the place of an array."""
    if not isinstance(value, Traced):
        return np.asarray(value, dtype, **kwargs)
    return value if dtype is None else value.astype(dtype, copy=False)


def _new_array(value: Any, dtype: Any = None, **kwargs: Any) -> Any:
    """``numpy.array``, likewise."""
    return as_array(value, dtype).copy() if isinstance(value, Traced) else np.array(value, dtype, **kwargs)


def _isinstance(value: Any, kinds: Any) -> bool:
    """``isinstance``, to which what stands for an array is one."""
    if isinstance(value, (Traced, TracedSize)):
        return issubclass(np.ndarray if isinstance(value, Traced) else int, kinds)
    return isinstance(value, kinds)


_INSTEAD: Final[Mapping[Any, Any]] = {
    isinstance: _isinstance,
    np.asarray: as_array,
    np.asanyarray: as_array,
    np.ascontiguousarray: as_array,
    np.array: _new_array,
}


class Reader:
    """Makes copies of functions that read only what was looked at. Raises NotTraced where one does more.

    ``refusal``: what a copy wanted while it was called and must not have, which holds also where it went on.
    """

    def __init__(self) -> None:
        self.refusal: str | None = None
        self._copies: dict[int, Callable[..., Any]] = {}

    def function(self, function: Any) -> Any:
        """A copy of a function, and of those that it calls."""
        if isinstance(function, partial):
            parts = [self.value("argument", one) for one in (*function.args, *function.keywords.values())]
            named = dict(zip(function.keywords, parts[len(function.args) :], strict=True))
            return partial(self.function(function.func), *parts[: len(function.args)], **named)
        if _is_of_core(function):
            return function
        if not isinstance(function, FunctionType):
            raise NotTraced(f"its meaning calls {name_of(function)}, which native code does not know")
        if id(function) not in self._copies:
            self._copy(function)
        return self._copies[id(function)]

    def _copy(self, function: FunctionType) -> None:
        names: dict[str, Any] = {"__builtins__": builtins, "__name__": function.__module__}
        cells = [CellType() for _ in function.__closure__ or ()]
        found = FunctionType(function.__code__, names, function.__name__, None, tuple(cells))
        self._copies[id(function)] = found  # before others are looked at, which may call it
        check_code(function.__code__)
        for name, cell, own in zip(function.__code__.co_freevars, cells, function.__closure__ or (), strict=True):
            cell.cell_contents = self.value(name, own.cell_contents)
        defaults = [self.value(function.__name__, one) for one in function.__defaults__ or ()]
        found.__defaults__ = tuple(defaults)
        found.__kwdefaults__ = {n: self.value(n, one) for n, one in (function.__kwdefaults__ or {}).items()}
        read = _globals_of(function.__code__)
        changed = _changed_globals(function, read)
        for name in read:
            if name == "isinstance" and name not in function.__globals__:
                names[name] = _isinstance
            elif name in function.__globals__:
                if name in changed:
                    raise NotTraced(f"its meaning reads the global `{name}`, which a function of its module changes")
                names[name] = self.value(name, function.__globals__[name])
            elif not self._is_known_builtin(name):
                raise NotTraced(f"its meaning calls {name}, which native code does not know")

    def _is_known_builtin(self, name: str) -> bool:
        value = getattr(builtins, name, None)
        raises = isinstance(value, type) and issubclass(value, BaseException)
        return name in _BUILTINS or raises or not hasattr(builtins, name)  # who reads what is not there says so himself

    def value(self, name: str, value: Any) -> Any:
        """What a meaning reads by a name: itself, or what it may read in its place."""
        if isinstance(value, ModuleType):
            return _Module(self, value)
        if stays(value):
            return value
        if isinstance(value, type):
            return self._type(value)
        if callable(value):
            return self._callable(value)
        raise NotTraced(f"its meaning reads `{name}`, a {type(value).__name__}, which may change")

    def _type(self, value: Any) -> Any:
        kinds: Any = (np.generic, np.dtype, BaseException, Enum, TypedOp)
        if issubclass(value, kinds) or value in (np.finfo, np.iinfo, np.errstate, np.ndarray) or _is_builtin(value):
            return value
        raise NotTraced(f"its meaning calls {name_of(value)}, which native code does not know")

    def _callable(self, value: Any) -> Any:
        module, own = str(getattr(value, "__module__", None) or ""), str(getattr(value, "__name__", ""))
        if value in _INSTEAD:
            return _INSTEAD[value]
        if module.startswith("numpy.random") or isinstance(getattr(value, "__self__", None), np.random.RandomState):
            raise NotTraced(f"its meaning draws random numbers: numpy.random.{own}")
        known = isinstance(value, np.ufunc) or value in FUNCTIONS.others or getattr(math, own, None) is value
        if known or (module.startswith("numpy") and own in _OF_NUMPY) or _is_of_core(value) or _is_builtin(value):
            return value
        return self.function(value)


def _is_of_core(value: Any) -> bool:
    """Whether a function is of the core, which keeps to this by itself."""
    return isinstance(value, FunctionType) and value.__module__.startswith("tract_core.")


def _is_builtin(value: Any) -> bool:
    return value.__name__ in _BUILTINS and getattr(builtins, value.__name__) is value


class _Module:
    """A module of which only that is seen which a meaning may read."""

    def __init__(self, reader: Reader, module: ModuleType) -> None:
        self._reader, self._module = reader, module

    def __getattr__(self, name: str) -> Any:
        try:
            return self._reader.value(f"{self._module.__name__}.{name}", getattr(self._module, name))
        except NotTraced as error:
            self._reader.refusal = self._reader.refusal or error.reason
            raise


def stays(value: Any) -> bool:
    """Whether a value is one that nobody can change."""
    if isinstance(value, _PLAIN):
        return True
    if isinstance(value, (tuple, frozenset)):
        return all(map(stays, cast("Iterable[Any]", value)))
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        return not array.flags.writeable and not (isinstance(array.base, np.ndarray) and array.base.flags.writeable)
    frozen = getattr(cast("Any", type(value)), "__dataclass_params__", None)
    return frozen is not None and frozen.frozen and all(stays(getattr(value, one)) for one in field_names(value))


def check_code(code: CodeType, outer: frozenset[str] | None = None) -> None:
    """Raises NotTraced for code that changes anything but its own variables, those of functions inside it too."""
    outer = frozenset(code.co_freevars) if outer is None else outer
    for one in dis.get_instructions(code):
        told = _CHANGES.get(one.opname)
        if one.opname in ("STORE_DEREF", "DELETE_DEREF") and one.argval in outer:
            told = "changes `{}`, which is not its own"
        if told is not None:
            raise NotTraced(f"its meaning {told.format(one.argval)}")
    for inner in _inside(code):
        check_code(inner, outer & frozenset(inner.co_freevars))


def _inside(code: CodeType) -> Iterator[CodeType]:
    return (one for one in code.co_consts if isinstance(one, CodeType))


def names_in(code: CodeType) -> frozenset[str]:
    """All names of globals and attributes that code reads, that of functions inside it too."""
    return frozenset(code.co_names).union(*map(names_in, _inside(code)))


def _globals_of(code: CodeType) -> set[str]:
    own = {one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    return own.union(*map(_globals_of, _inside(code)))


def _changed_globals(function: FunctionType, names: set[str]) -> set[str]:
    """Which globals of these names functions of the module say that they change, methods too."""
    values = list(function.__globals__.values())
    own = [one for one in values if isinstance(one, type) and one.__module__ == function.__module__]
    values += [one for kind in own for one in vars(kind).values()]
    functions = [one for one in values if isinstance(one, FunctionType) and one.__globals__ is function.__globals__]
    return set[str]().union(*(_stored(one.__code__, names) for one in functions))


def _stored(code: CodeType, names: set[str]) -> set[str]:
    own = set[str]()
    if not names.isdisjoint(code.co_names):
        own = {str(one.argval) for one in dis.get_instructions(code) if one.opname in ("STORE_GLOBAL", "DELETE_GLOBAL")}
    return (own & names).union(*(_stored(one, names) for one in _inside(code)))


def check_operator(op: TypedOp, names: frozenset[str], reader: Reader) -> None:
    """Raises NotTraced where a meaning reads something of its operator, by one of these names, that may change."""
    for name in field_names(op):
        if not stays(getattr(op, name)):
            found = type(getattr(op, name)).__name__
            raise NotTraced(f"its meaning may read the field `{name}`, a {found}, which may change")
    for name in sorted(names - set(field_names(op))):
        found = next((vars(one)[name] for one in type(op).__mro__ if name in vars(one) and one is not TypedOp), None)
        if isinstance(found, property):
            reader.function(found.fget)
        elif isinstance(found, (staticmethod, classmethod)):
            reader.function(cast("Any", found).__func__)
        elif isinstance(found, FunctionType):
            reader.function(found)
        elif found is not None and not hasattr(found, "__get__"):
            reader.value(name, found)
