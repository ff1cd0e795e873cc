"""What turns need of a compiled model as long as nobody looks at its nodes: what is kept of a plan on disk."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any, TypeAlias

from tract_core.frozen import frozen

if TYPE_CHECKING:
    import numpy as np

    from tract_core.cache.cache import Key
    from tract_core.dims import Dim
    from tract_core.runtime.turn import Turn
    from tract_cpu.binding import ArgumentLayout
    from tract_cpu.program.kept import Kept

FunctionName: TypeAlias = "tuple[Key, str]"
"""The key under which a native function is kept, and its name."""

Filled: TypeAlias = "Mapping[int, tuple[tuple[Dim, ...], np.dtype[Any]]]"
"""Shapes and types of outputs, by their numbers."""


@frozen
class Ready:
    """A compiled model, without its nodes.

    ``turn``: what is checked in every run; ``inner_turns``: the same for bodies that run, with how often each does at
    most, and its place, by the stages in which their sizes are known. ``layout``: of the arguments; ``kernels``: of
    the native steps. ``run``, ``steps``, ``help``, ``repeat``: what goes through all of them, through some, what other
    threads call, and what does a turn again. ``filled``: the outputs that native code fills, by stages. ``inputs``:
    the types of inputs. ``outputs``: how many there are; ``lent``: those that come from the host. ``is_one_call``:
    whether a turn is one call of native code; ``is_in_stages``: whether it is one for each stage, with nothing done
    between but to read sizes. ``lasts``: whether a turn may be done by the same call again. ``kept``: what stays from
    turn to turn. ``stages``: the symbols that have values from each stage on, after the first.
    """

    turn: Turn
    inner_turns: tuple[tuple[tuple[Turn, Dim, str], ...], ...]
    layout: ArgumentLayout
    kernels: tuple[FunctionName, ...]
    run: FunctionName
    steps: FunctionName
    help: FunctionName
    repeat: FunctionName
    filled: tuple[Filled, ...]
    inputs: tuple[np.dtype[Any], ...]
    outputs: int
    lent: tuple[int, ...]
    is_one_call: bool
    is_in_stages: bool
    lasts: bool
    kept: tuple[Kept, ...]
    stages: tuple[frozenset[str], ...]

    @property
    def needs_nodes(self) -> bool:
        """Whether turns may look at nodes: the host has a part, a kernel may refuse, or one is told when time is up."""
        return not self.is_one_call or any(self.layout.may_refuse) or self.turn.seconds < inf

    @property
    def functions(self) -> tuple[FunctionName, ...]:
        """All native functions: those of kernels, then the others."""
        return (*self.kernels, self.run, self.steps, self.help, self.repeat)
