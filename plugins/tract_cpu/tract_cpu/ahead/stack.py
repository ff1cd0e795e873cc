"""The stack of Windows, of which a thread has no more than the pages that were touched, one after the other.

Whoever needs several pages at once calls a function of Microsoft's library there, ``__chkstk``, which touches them.
Objects want nothing of that library: kernels go without, and whoever calls them touches as much as they need before.

Source: "x64 stack usage" and ``/Gs`` of the documentation of Microsoft's compiler.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from tract_llvm.isa import Isa
from tract_llvm.language.buffers import Buffer
from tract_llvm.language.function import Function
from tract_llvm.language.types import INDEX
from tract_llvm.llvm import ir

PAGE: Final = 4096

ROOM: Final = 8 * PAGE
"""Bytes that a kernel takes at most, besides memory of its own, for numbers that have no register."""

_OWN: Final = re.compile(r"= alloca \[(\d+) x ")
_WIDEST: Final = 8
"""Bytes of an element of that memory, at most."""

_DEFINED: Final = re.compile(r"^(define [^\n]*?\)) ", re.MULTILINE)


def stack_of(kernels: Iterable[str]) -> int:
    """Bytes of the stack that none of these modules goes beyond."""
    own = (sum(int(count) * _WIDEST for count in _OWN.findall(text)) for text in kernels)
    return ROOM + max(own, default=0)


def unprobed(text: str) -> str:
    """A module whose functions touch no pages in advance."""
    return _DEFINED.sub(r'\1 "no-stack-arg-probe" ', text)


def write_touch(module: Any, name: str, isa: Isa, size: int) -> Any:
    """``name()`` touches so many bytes of the stack, page by page, and gives them back. Returns the function."""
    f = Function(module, name, isa, [])
    f.function.linkage = "internal"
    f.function.attributes.add("noinline")
    with f.loop("page", -(-size // PAGE)):
        page = f.builder.alloca(ir.ArrayType(ir.IntType(8), PAGE))
        Buffer(f, page, INDEX).write_shared(f.index(0))  # as nobody may leave out what others could see
    f.finish()
    return f.function
