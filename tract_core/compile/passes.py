"""A compiler as a list of passes, each from one frozen value to the next, so that one can look between any two.

A compiler has its passes by name, in order; a pass is a function ``(value, target) -> value``, where the target is all
that is asked of it besides, as the machine. Values have a ``text()``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

CHECK: Final = "TRACT_CHECK_PROGRAMS"
"""Where this variable is set, what each pass gives is looked through for faults."""

TargetT = TypeVar("TargetT")
PassFn: TypeAlias = "Callable[[Any, TargetT], Any]"


def through(passes: Iterable[PassFn[TargetT]], value: Any, target: TargetT) -> Any:
    """What passes make of a value, one after the other."""
    for one in passes:
        value = one(value, target)
    return value


def up_to(name: str, passes: Mapping[str, PassFn[TargetT]]) -> list[PassFn[TargetT]]:
    """The passes up to the one of this name, and that one. Raises ValueError where there is none."""
    return list(passes.values())[: list(passes).index(name) + 1]


def checking() -> bool:
    """Whether what passes give is looked through, as in all tests."""
    return bool(os.environ.get(CHECK))
