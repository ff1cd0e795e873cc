"""What the tests of the compiler share: functions written in its language, called from Python."""

from __future__ import annotations

import sys
from collections.abc import Callable
from ctypes import CFUNCTYPE, c_int64
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tract_cpu.isa import Isa, of_this_machine
from tract_cpu.language.function import POINTER, Function
from tract_cpu.language.types import INDEX, ElementType, element_type
from tract_cpu.native.cache import Cache
from tract_cpu.native.library import Library

from tract_core.data import DatumType

sys.path.insert(0, str(Path(__file__).parent))  # modules that tests share


@pytest.fixture(params=of_this_machine(), ids=lambda isa: isa.name)
def isa(request: pytest.FixtureRequest) -> Isa:
    """Every instruction set that this machine has."""
    return request.param


class Elements:
    """Runs functions that read one array, and write another, element by element or vector by vector."""

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self.library = Library(isa, Cache(None))
        self.count = 0

    def __call__(
        self, emit: Callable[..., Any], x: np.ndarray | tuple[np.ndarray, ...], to: Any, lanes: int = 0
    ) -> np.ndarray:
        """``emit(value, ...)`` of the elements of ``x``, or of several arrays, as ``to``. There are whole vectors."""
        self.count += 1
        name = f"f{self.count}"
        operands = x if isinstance(x, tuple) else (x,)
        sources, target = [_element(one.dtype) for one in operands], _element(np.dtype(to))

        def write(module: Any) -> None:
            f = Function(module, name, self.isa, [*[POINTER] * (len(operands) + 1), INDEX])
            read = [f.buffer(number, source) for number, source in enumerate(sources)]
            written = f.buffer(len(read), target)
            with f.loop("i", f.argument(len(read) + 1), step=max(lanes, 1)) as i:
                written.put(i, emit(*(one.vector(i, lanes) for one in read)))
            f.finish()

        found = np.empty(operands[0].shape, to)
        call = CFUNCTYPE(None, *[c_int64] * (len(operands) + 2))(self.library.address(name, name, write))
        call(*(one.__array_interface__["data"][0] for one in (*operands, found)), found.size)
        return found


@pytest.fixture
def elements(isa: Isa) -> Elements:
    return Elements(isa)


def _element(dtype: np.dtype) -> ElementType:
    found = element_type(DatumType.from_numpy(dtype))
    assert found is not None
    return found
