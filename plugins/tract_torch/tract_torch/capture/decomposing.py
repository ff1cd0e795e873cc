"""Having PyTorch decompose the operators of a program that have no row.

`ExportedProgram.run_decompositions` puts a rule for every composed operator of PyTorch into its dispatcher, and takes
it out again. That takes ten times as long as decomposing a small program, and only operators that are to be kept need a
rule: the others fall apart by themselves. So those that are kept are told to PyTorch, and nothing else, where it has
the functions for that (`private`); else it is given a table of decompositions, which gives the same program.
"""

from __future__ import annotations

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, cast

import torch

from tract_core.errors import TractError, Unsupported
from tract_core.plugins import Registry
from tract_core.plugins.tables import Table
from tract_torch import private
from tract_torch.alone import alone
from tract_torch.capture.shared_buffers import obstacle
from tract_torch.private import Composed, Ways
from tract_torch.wiring.rows import ATEN, AtenFn, find


def decomposed(program: torch.export.ExportedProgram, registry: Registry) -> torch.export.ExportedProgram:
    """The program without operators that PyTorch can decompose and that have no row. Raises Unsupported."""
    try:
        with alone():
            return _decomposed(program, registry)
    except TractError:
        raise
    except Exception as error:  # whatever it is, it is PyTorch's
        error.__traceback__ = error.__context__ = None
        text = " ".join(str(error).split())[:300]
        found = obstacle(program, text)
        if found is not None:
            raise Unsupported(found[0], hint=found[1]) from error
        raise Unsupported(f"PyTorch cannot decompose the program: {type(error).__name__}: {text}") from error


def _decomposed(program: torch.export.ExportedProgram, registry: Registry) -> torch.export.ExportedProgram:
    composed, writing, table = private.composed(), _writing(program), registry[ATEN]
    if composed is None:
        every = cast("Ways", torch.export.default_decompositions())
        ways = {target: way for target, way in every.items() if target in writing or not _has_row(table, target)}
        return program.run_decompositions(ways)
    ways, kept = _decompositions(registry, composed)
    with _keeping(composed, ways, (kept | _kept_of_others(table, composed)) - writing):
        return program.run_decompositions({})


def ways_apart(registry: Registry) -> Ways:
    """PyTorch's functions for operators that have no row, composed ones aside."""
    composed = private.composed()
    return {} if composed is None else _decompositions(registry, composed)[0]


def kept_whole(registry: Registry) -> Ways:
    """Composed operators that have a row, and what leaves each of them as it is."""
    composed = private.composed()
    if composed is None:
        return {}
    kept = _decompositions(registry, composed)[1] | _kept_of_others(registry[ATEN], composed)
    return dict.fromkeys(kept, composed.keep)


@lru_cache(maxsize=2)
def _decompositions(registry: Registry, composed: Composed) -> tuple[Ways, frozenset[Any]]:
    """PyTorch's functions for operators that have no row, and the composed operators of PyTorch that are kept."""
    every = cast("Ways", torch.export.default_decompositions())
    ways = {target: way for target, way in every.items() if not _has_row(registry[ATEN], target)}
    those = composed.every()
    functions = {target: way for target, way in ways.items() if target not in those}
    return functions, frozenset(target for target in those if target not in ways)


def _has_row(table: Table[str, AtenFn], target: Any) -> bool:
    """Whether an operator has a row: one that writes in place, as `aten.silu_`, has that of the one which does not."""
    name = str(target)
    return find(table, name) is not None or find(table, name.replace("_.", ".")) is not None


def _kept_of_others(table: Table[str, AtenFn], composed: Composed) -> frozenset[Any]:
    """Composed operators of other libraries, which come and go, that have a row."""
    keys = (key for key in table.names() if not key.startswith(("aten.", "complex.", "higher_order.")))
    return frozenset(target for key in keys for target in _overloads(key) if composed.is_one(target))


def _overloads(key: str) -> Iterator[Any]:
    """What the key of a row names, as far as it is there."""
    library, operator, *overload = key.split(".")
    packet = getattr(getattr(torch.ops, library), operator, None)
    names = overload or (packet.overloads() if packet is not None else ())
    return (getattr(packet, name) for name in names if hasattr(packet, name))


def _writing(program: torch.export.ExportedProgram) -> frozenset[Any]:
    """Operators that change their arguments in this program, which PyTorch sees only in what they decompose to."""
    norm = torch.ops.aten.instance_norm.default
    nodes = program.graph.find_nodes(op="call_function", target=norm)
    return frozenset(norm for node in nodes if node.args[3] is not None and node.args[5])


@contextmanager
def _keeping(composed: Composed, ways: Ways, kept: frozenset[Any]) -> Generator[None]:
    """Inside of it, PyTorch decomposes by ``ways`` in this thread, and keeps of the composed operators these.

    `alone` is to be held, so that one thread at a time puts its own function there, and takes it away again.
    """
    split, thread = getattr(composed.module, composed.splitter), threading.get_ident()
    rules = dict.fromkeys(kept, composed.keep)

    def ours(table: Ways) -> tuple[Ways, Ways]:
        return (rules, dict(ways)) if threading.get_ident() == thread else split(table)

    setattr(composed.module, composed.splitter, ours)
    try:
        yield
    finally:
        setattr(composed.module, composed.splitter, split)
