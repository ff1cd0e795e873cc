"""Kernels as code in memory: compiled at most once per process, and once per machine where the cache is kept."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Lock
from typing import Any, Final

from tract_cpu.isa import Isa
from tract_cpu.llvm import binding as llvm
from tract_cpu.llvm import ir
from tract_cpu.native.cache import Cache, Key, named_folder
from tract_cpu.native.target import machine, object_code


class Library:
    """The code that this process has for one instruction set. May be used by many threads."""

    def __init__(self, isa: Isa, cache: Cache) -> None:
        self.isa = isa
        self._cache = cache
        self._lock = Lock()
        self._linker: Any = None
        self._loaded: dict[Key, tuple[int, Any]] = {}

    def address(self, key: Key, name: str, emit: Callable[[Any], None]) -> int:
        """The address of the function ``name``.

        ``key``: what tells its code from any other. ``emit``: writes it into a module of llvmlite; only called where
        neither this process nor the cache has the code.
        """
        found = self._loaded.get(key)
        if found is None:
            with self._lock:
                found = self._loaded.get(key) or self._load(key, name, emit)
                self._loaded[key] = found
        return found[0]

    def _load(self, key: Key, name: str, emit: Callable[[Any], None]) -> tuple[int, Any]:
        code = self._cache.get(key)
        if code is None:
            code = object_code(module_text(emit), self.isa)
            self._cache.put(key, code)
        if self._linker is None:
            self._linker = llvm.create_lljit_compiler(machine(self.isa))
        builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(name)
        tracker = builder.link(self._linker, f"{len(self._loaded)}.{name}")
        return tracker[name], tracker


def module_text(emit: Callable[[Any], None]) -> str:
    """The text of the module that ``emit`` writes."""
    module: Any = ir.Module()
    emit(module)
    return str(module)


_LIBRARIES: Final[dict[tuple[Isa, Path | None], Library]] = {}
_LOCK: Final = Lock()


def library_of(isa: Isa) -> Library:
    """The library of this process for an instruction set."""
    folder = named_folder()
    with _LOCK:
        found = _LIBRARIES.get((isa, folder))
        if found is None:
            found = _LIBRARIES[isa, folder] = Library(isa, Cache.at(folder))
        return found
