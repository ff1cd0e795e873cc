"""Arithmetic, comparisons and reductions of tensors: those of NumPy, whose results are NumPy's arrays and scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from tract_core.errors import InputError

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array


def _of_array(name: str) -> Callable[..., Any]:
    """A method that arrays have."""

    def method(self: Computing, *arguments: Any, **named: Any) -> Any:
        return getattr(self._numbers(), name)(*arguments, **named)  # pyright: ignore[reportPrivateUsage]: of its own class

    method.__name__, method.__doc__ = name, f"What `numpy.ndarray.{name}` gives."
    return method


class Computing(NDArrayOperatorsMixin):
    """What computes with its elements as an array does. Nothing of it changes: results are arrays of their own."""

    __slots__ = ()

    def _numbers(self) -> Array:
        """The elements, read-only. Raises FactError where they are no numbers to compute with."""
        raise NotImplementedError

    def __array_ufunc__(self, function: np.ufunc, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
        """What a function of NumPy gives for the elements. Raises InputError where it is told to change them."""
        if any(isinstance(one, Computing) for one in out):
            raise InputError(
                "a tensor does not change", hint="write x = x + 1, which gives an array, or take x.numpy()"
            )
        arrays = [one._numbers() if isinstance(one, Computing) else one for one in inputs]
        return getattr(function, method)(*arrays, **options, **({"out": out} if out else {}))

    def __pow__(self, exponent: Any) -> Any:
        return self._numbers() ** exponent  # which squares, where that is what it is

    def __contains__(self, value: Any) -> bool:
        return value in self._numbers()

    def __format__(self, spec: str) -> str:
        """As a number where ``spec`` says how, of a tensor of one element."""
        return format(self._numbers().item(), spec) if spec else str(self)

    @property
    def T(self) -> Array:  # noqa: N802 (as NumPy and PyTorch have it)
        """The elements with the axes in reverse order."""
        return self._numbers().T

    all = _of_array("all")
    any = _of_array("any")
    argmax = _of_array("argmax")
    argmin = _of_array("argmin")
    argsort = _of_array("argsort")
    astype = _of_array("astype")
    clip = _of_array("clip")
    cumsum = _of_array("cumsum")
    dot = _of_array("dot")
    flatten = _of_array("flatten")
    max = _of_array("max")
    mean = _of_array("mean")
    min = _of_array("min")
    prod = _of_array("prod")
    ravel = _of_array("ravel")
    reshape = _of_array("reshape")
    round = _of_array("round")
    squeeze = _of_array("squeeze")
    std = _of_array("std")
    sum = _of_array("sum")
    swapaxes = _of_array("swapaxes")
    tolist = _of_array("tolist")
    transpose = _of_array("transpose")
    var = _of_array("var")
