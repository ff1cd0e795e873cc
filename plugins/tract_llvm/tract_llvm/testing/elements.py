"""Functions of elements written in the language of kernels, called from Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, c_int64
from typing import Any

import numpy as np

from tract_core.cache.cache import Cache, Key
from tract_core.data import DatumType
from tract_llvm.isa import Isa
from tract_llvm.language.function import Function
from tract_llvm.language.types import INDEX, POINTER, ElementType, element_type
from tract_llvm.objects.library import Code, Library, module_text


class ElementRunner:
    """Runs functions that read one array, and write another, element by element or vector by vector."""

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self.library = Library(isa, Cache(None))
        self.count = 0
        self.text = ""

    def __call__(
        self, emit: Callable[..., Any], x: np.ndarray | tuple[np.ndarray, ...], to: Any, lanes: int = 0
    ) -> np.ndarray:
        """``emit(value, ...)`` of the elements of ``x``, or of several arrays, as ``to``. There are whole vectors."""
        operands = x if isinstance(x, tuple) else (x,)
        found = np.empty(operands[0].shape, to)
        self.function(emit, operands, found, lanes)()
        return found

    def function(
        self, emit: Callable[..., Any], operands: Sequence[np.ndarray], to: np.ndarray, lanes: int
    ) -> Callable[[], None]:
        """What writes ``emit(value, ...)`` of the elements of the operands into an array, at every call."""
        self.count += 1
        name, arrays = f"f{self.count}", (*operands, to)

        def write(module: Any) -> None:
            f = Function(module, name, self.isa, [*[POINTER] * len(arrays), INDEX])
            *read, written = (f.buffer(number, _element(one.dtype)) for number, one in enumerate(arrays))
            with f.loop("i", f.argument(len(arrays)), step=max(lanes, 1)) as i:
                written.put(i, emit(*(one.vector(i, lanes) for one in read)))
            f.finish()

        self.text = module_text(write)
        address = self.library.address(Code(Key(name, kept=False), name, write))
        call = CFUNCTYPE(None, *[c_int64] * (len(arrays) + 1))(address)
        places = [one.__array_interface__["data"][0] for one in arrays]
        kept = self.library, arrays  # as long as it can be called
        return lambda: call(*places, kept[1][-1].size)


def _element(dtype: np.dtype) -> ElementType:
    found = element_type(DatumType.from_numpy(dtype))
    assert found is not None
    return found
