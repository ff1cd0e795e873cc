"""CUDA's driver as a library: each call is checked, and each error says what to do."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

from tract_core.errors import RunError
from tract_cuda.driver.prototypes import PROTOTYPES

VARIABLE: Final = "TRACT_CUDA_DRIVER"
"""Names another driver than that of the machine: a file, or ``module:Class`` for what stands for one."""

OLDEST: Final = 12000
"""The oldest driver that reads our PTX, as it numbers itself: that of CUDA 12.0."""

OUT_OF_MEMORY: Final = 2
NO_DEVICE: Final = 100
NOT_INITIALIZED: Final = 3

LOST: Final = frozenset((214, 700, 702, 710, 714, 715, 716, 717, 718, 719))
"""Errors behind which a process can do nothing more on a device: its memory failed, or a kernel did what none may."""

_HINTS: Final = {
    OUT_OF_MEMORY: "other programs may hold memory of the device: nvidia-smi shows them; or run with smaller sizes",
    NOT_INITIALIZED: "the driver was made ready before this process was forked: start processes by 'spawn'",
    NO_DEVICE: "there is no GPU, or CUDA_VISIBLE_DEVICES hides it",
    **dict.fromkeys(LOST, "the context of this process is lost: a new process is needed"),
}
"""By the number of the error, what to do."""


class DriverError(RunError):
    """A function of the driver refused. ``code``: the number of the error."""

    def __init__(self, function: str, code: int, name: str, text: str) -> None:
        super().__init__(f"{function}: {name} ({code}): {text}", hint=_HINTS.get(code))
        self.code = code


class NoDriver(RunError):
    """There is no driver, or none that reads our PTX."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, hint="install the driver of the GPU, or a newer one: nvidia-smi shows its version")


class Driver:
    """The functions of a library that is CUDA's driver, or behaves as it, by their names without ``_v2``."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._functions: dict[str, Callable[..., None]] = {}
        for name, arguments in PROTOTYPES.items():
            function = getattr(library, name)
            function.argtypes, function.restype = arguments, ctypes.c_int
            self._functions[name.split("_v", 1)[0]] = self._checked(name, function)

    def __getattr__(self, name: str) -> Callable[..., None]:
        try:
            return self._functions[name]
        except KeyError:
            raise AttributeError(name) from None

    def _checked(self, name: str, function: Callable[..., int]) -> Callable[..., None]:
        def call(*arguments: Any) -> None:
            code = function(*arguments)
            if code:
                raise self.error(name, code)

        return call

    def error(self, function: str, code: int) -> DriverError:
        """The error for a code that a function returned."""
        texts = list[str]()
        for ask in (self._library.cuGetErrorName, self._library.cuGetErrorString):
            found = ctypes.c_char_p()
            ask(code, ctypes.byref(found))
            texts.append((found.value or b"unknown").decode())
        return DriverError(function, code, *texts)

    def number(self, name: str, *arguments: Any) -> int:
        """The number that a function writes to where its first argument points."""
        found = ctypes.c_int()
        self._functions[name](ctypes.byref(found), *arguments)
        return found.value

    def handle(self, name: str, *arguments: Any) -> int:
        """The handle, or the address, that a function writes to where its first argument points."""
        found = ctypes.c_uint64()
        self._functions[name](ctypes.byref(found), *arguments)
        return found.value


def _loaded(name: str) -> Any:
    """A library by its file, or what stands for one by ``module:Class``."""
    module, _, kind = name.partition(":")
    return getattr(import_module(module), kind)() if kind.isidentifier() else ctypes.CDLL(name)


@cache
def native() -> Driver:
    """The driver of this machine, made ready.

    Raises NoDriver where there is none, or it is too old, DriverError where it finds no device.
    """
    name = os.environ.get(VARIABLE) or ("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    try:
        driver = Driver(_loaded(name))
    except (OSError, AttributeError) as error:
        raise NoDriver(f"there is no driver of CUDA here: {error}") from None
    version = driver.number("cuDriverGetVersion")
    if version < OLDEST:
        found, wanted = (f"{one // 1000}.{one % 1000 // 10}" for one in (version, OLDEST))
        raise NoDriver(f"the driver is for CUDA {found}, {wanted} or newer is wanted")
    driver.cuInit(0)
    return driver
