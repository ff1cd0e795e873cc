"""Archives with machine code, which run without any analysis: for callers who trust them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.errors import PluginError
from tract_core.plugins.installing import how_to_install
from tract_ray.ports import Port, ScoredModel

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array


def scored_archive(path: str | os.PathLike[str], trust: bool | str) -> ScoredModel:
    """The machine code of an archive. Raises as `tract_cpu.load_compiled`, and PluginError without tract-cpu.

    Each thread that runs it has memory of its own. What a model keeps from run to run, it forgets after each.
    """
    try:
        from tract_cpu import compiled_in, load_compiled
    except ImportError as error:
        raise PluginError("machine code of archives is run by tract-cpu", hint=how_to_install("tract-cpu")) from error
    first = load_compiled(path, trust=trust)
    keeps = any(code.keeps for code in compiled_in(path).codes)
    free = [first]

    def run(arrays: Sequence[Array]) -> list[Array]:
        try:
            model = free.pop()
        except IndexError:
            model = first.another()
        try:
            if keeps:
                model.reset()
            return model.run(arrays)
        finally:
            free.append(model)

    return ScoredModel(_ports(first.inputs), _ports(first.outputs), run)


def _ports(arrays: Any) -> tuple[Port, ...]:
    return tuple(Port(name, np.dtype(kind), shape) for name, (shape, kind) in arrays.items())
