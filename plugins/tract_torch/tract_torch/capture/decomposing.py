"""Having PyTorch decompose the operators of a program that have no row.

`ExportedProgram.run_decompositions` puts a rule for every composed operator of PyTorch into its dispatcher, and takes
it out again. That takes ten times as long as decomposing a small program, and only operators that are to be kept need a
rule: the others fall apart by themselves. So those that are kept are told to PyTorch, and nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, Final, TypeAlias, cast

import torch
from torch._export import utils
from torch.export import exported_program as theirs

from tract_core.errors import TractError, Unsupported
from tract_core.plugins import Registry
from tract_core.plugins.tables import Table
from tract_torch.capture.alone import alone
from tract_torch.capture.shared_buffers import obstacle
from tract_torch.registry import ATEN, AtenFn, find

Ways: TypeAlias = Mapping[Any, Callable[..., Any]]
"""For operators, the functions that compute them by others."""
_SPLIT: Final = "_split_decomp_table_to_cia_and_python_decomp"
"""The function of PyTorch that tells composed operators from those that have a function."""


def decomposed(program: torch.export.ExportedProgram, registry: Registry) -> torch.export.ExportedProgram:
    """The program without operators that PyTorch can decompose and that have no row. Raises Unsupported."""
    ways, kept = _decompositions(registry)
    kept = (kept | _kept_of_others(registry[ATEN])) - _writing(program)
    try:
        with alone(), _keeping(ways, kept):
            return program.run_decompositions({})
    except TractError:
        raise
    except Exception as error:  # whatever it is, it is PyTorch's
        error.__traceback__ = error.__context__ = None
        text = " ".join(str(error).split())[:300]
        found = obstacle(program, text)
        if found is not None:
            raise Unsupported(found[0], hint=found[1]) from error
        raise Unsupported(f"PyTorch cannot decompose the program: {type(error).__name__}: {text}") from error


@lru_cache(maxsize=2)
def _decompositions(registry: Registry) -> tuple[Ways, frozenset[Any]]:
    """PyTorch's functions for operators that have no row, and the composed operators of PyTorch that are kept.

    Operators that write in place, as `aten.silu_` does, have the row of those that do not.
    """
    table = registry[ATEN]
    every = cast("Ways", torch.export.default_decompositions())
    ways = {target: way for target, way in every.items() if not any(find(table, name) for name in _names(target))}
    composed = utils._collect_all_valid_cia_ops()
    functions = {target: way for target, way in ways.items() if target not in composed}
    return functions, frozenset(target for target in composed if target not in ways)


def _names(target: Any) -> tuple[str, str]:
    """An operator's name, and that of the one which does the same but not in place."""
    return str(target), str(target).replace("_.", ".")


def _kept_of_others(table: Table[str, AtenFn]) -> frozenset[Any]:
    """Composed operators of other libraries, which come and go, that have a row."""
    keys = (key for key in table.names() if not key.startswith(("aten.", "complex.")))
    found = (overload for key in keys for overload in _overloads(key))
    return frozenset(target for target in found if utils._is_preservable_cia_op(target))


def _overloads(key: str) -> Iterator[Any]:
    """What the key of a row names, as far as it is there."""
    library, operator, *overload = key.split(".")
    packet = getattr(getattr(torch.ops, library), operator, None) if library in torch.ops._dir else None
    names = overload or (packet.overloads() if packet is not None else ())
    return (getattr(packet, name) for name in names if hasattr(packet, name))


def _writing(program: torch.export.ExportedProgram) -> frozenset[Any]:
    """Operators that change their arguments in this program, which PyTorch sees only in what they decompose to."""
    norm = torch.ops.aten.instance_norm.default
    nodes = program.graph.find_nodes(op="call_function", target=norm)
    return frozenset(norm for node in nodes if node.args[3] is not None and node.args[5])


@contextmanager
def _keeping(ways: Ways, kept: frozenset[Any]) -> Generator[None]:
    """Inside of it, PyTorch decomposes by ``ways`` in this thread, and keeps of the composed operators these."""
    split, thread = getattr(theirs, _SPLIT), threading.get_ident()
    rules = dict.fromkeys(kept, utils._special_op_to_preserve_cia)

    def ours(table: Ways) -> tuple[Any, Any]:
        return (rules, dict(ways)) if threading.get_ident() == thread else split(table)

    setattr(theirs, _SPLIT, ours)
    try:
        yield
    finally:
        setattr(theirs, _SPLIT, split)
