"""Kernels as code in memory: compiled at most once per process, and once per machine where the cache is kept."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from tract_core.cache.cache import Cache, Key, cache_here
from tract_core.frozen import frozen
from tract_core.limits import check_time
from tract_llvm.llvm import LOCK, ir, let_forks_wait
from tract_llvm.objects.linker import Linked, linked
from tract_llvm.objects.relocations import CannotLink

if TYPE_CHECKING:
    from tract_llvm.isa import Isa

PERF: Final = "TRACT_PERF"
"""The variable that has kernels named in the output of ``perf``."""

EmitFn = Callable[[Any], None]
"""Writes a function into a module of llvmlite."""


@frozen
class Code:
    """A native function. ``key``: what tells its code from any other; ``name``: that of the function in its module.

    ``emit`` is only called where neither this process nor the cache has the code.
    """

    key: Key
    name: str
    emit: EmitFn


class Library:
    """The code that this process has for one instruction set. May be used by many threads."""

    def __init__(self, isa: Isa, cache: Cache) -> None:
        self.isa = isa
        self._cache = cache
        self._loaded: dict[Key, Linked] = {}

    def address(self, code: Code) -> int:
        """The address of a function."""
        return self.addresses([code])[0]

    def addresses(self, codes: Sequence[Code]) -> list[int]:
        """The addresses of functions. While some are compiled, the next one is written."""
        missing = [one for one in codes if one.key not in self._loaded]
        if missing:
            with LOCK:
                self._load({one.key: one for one in missing if one.key not in self._loaded})
        return [self._loaded[one.key].address for one in codes]

    def kept(self, functions: Sequence[tuple[Key, str]]) -> list[int] | None:
        """The addresses of functions, by their keys and names; ``None`` where the code of one is not here, nor kept."""
        with LOCK:
            missing = {key: name for key, name in functions if key not in self._loaded}
            found = self._cache.find(missing) if missing else {}
            if len(found) < len(missing):
                return None
            objects = [(name, found[key]) for key, name in missing.items()]
            self._loaded |= zip(missing, link(objects, self.isa), strict=True)
        return [self._loaded[key].address for key, _ in functions]

    def _load(self, codes: Mapping[Key, Code]) -> None:
        kept = self._cache.find(codes)
        missing = {key: code for key, code in codes.items() if key not in kept}
        if missing:
            kept |= self._compiled(missing)
        objects = [(code.name, kept[key]) for key, code in codes.items()]
        self._loaded |= zip(codes, link(objects, self.isa), strict=True)

    def _compiled(self, codes: Mapping[Key, Code]) -> dict[Key, bytes]:
        """The object files of kernels that are not kept yet. While some are compiled, the next one is written."""
        from tract_llvm.objects.batch import Batch
        from tract_llvm.objects.compilers import compiler

        with self._cache.claims() as claims, ExitStack() as stack:
            compiles = functools.cache(lambda: stack.enter_context(compiler(len(codes), self.isa)))
            batch = Batch(self._cache, claims, lambda key: compiles().start(_text_in_time(codes[key].emit)))
            return batch.compiled(codes)


def _text_in_time(emit: EmitFn) -> str:
    """As `module_text`. Raises LimitExceeded when the time to prepare a model is up."""
    check_time()
    return module_text(emit)


def link(objects: Sequence[tuple[str, bytes]], isa: Isa) -> list[Linked]:
    """The functions of these names, each out of its object file."""
    try:
        found = linked(objects)
    except CannotLink:
        from tract_llvm.objects import target

        found = [target.linked(name, code, isa) for name, code in objects]
    if os.environ.get(PERF):
        _tell_perf([name for name, _ in objects], found)
    return found


def _tell_perf(names: Sequence[str], functions: Sequence[Linked]) -> None:
    """Add functions to the map in which the profiler ``perf`` looks up what has no file."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    with os.fdopen(os.open(f"/tmp/perf-{os.getpid()}.map", flags, 0o600), "w", encoding="ascii") as file:
        for name, one in zip(names, functions, strict=True):
            file.write(f"{one.address:x} {one.size:x} tract:{name}\n")  # it looks in this file


def module_text(emit: EmitFn) -> str:
    """The text of the module that ``emit`` writes."""
    module: Any = ir.Module()
    emit(module)
    return str(module)


_LIBRARIES: Final[dict[tuple[Isa, Cache], Library]] = {}


def library_of(isa: Isa) -> Library:
    """The library of this process for an instruction set."""
    with LOCK:
        cache = cache_here()
        found = _LIBRARIES.get((isa, cache))
        if found is None:
            found = _LIBRARIES[isa, cache] = Library(isa, cache)
        return found


let_forks_wait()
