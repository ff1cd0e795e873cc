"""The gates of recurrent networks: what is computed of them, for programs for rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tract_core.compile.gates import COUNTS
from tract_core.ops.binary import Add, Mul, Sub
from tract_core.ops.elementwise import Sigmoid, Tanh
from tract_core.ops.recurrent import Epilogue, GruEpilogue, LstmEpilogue
from tract_llvm.fuse.nest import Nest, Unknown
from tract_llvm.language.types import ElementType
from tract_llvm.nests.softmax import narrowed, widened
from tract_llvm.program.views import View


def parts_of(op: Epilogue, view: View, count: int) -> list[View]:
    """The gates, or the state, of an input of an epilogue that has so many side by side."""
    axis = len(view.shape) - 1
    return [view] if count == 1 else [view.part(axis, op.hidden * gate, op.hidden) for gate in range(count)]


def new_state(op: Epilogue, nest: Nest, inputs: Sequence[View], result: ElementType | None) -> list[int]:
    """The outputs of an epilogue, by the numbers of their values in a nest.

    ``inputs``: those of the operator. ``result``: the type of the outputs. Raises Unknown where that is no float.
    """
    if result is None or result.kind != "f":
        raise Unknown
    gates = [part for view, count in zip(inputs, COUNTS[type(op)], strict=True) for part in parts_of(op, view, count)]
    loaded = [nest.load(view.stretched(nest.shape), view.element) for view in gates]
    return state_of(op, nest, loaded, result)


def state_of(op: Epilogue, nest: Nest, gates: Sequence[int], result: ElementType) -> list[int]:
    """The outputs of an epilogue. ``gates``: the values of all that its inputs hold, in order, by their numbers."""
    return _STATE[type(op)](nest, [widened(nest, one) for one in gates], result)


def _lstm(nest: Nest, x: Sequence[int], result: ElementType) -> list[int]:
    gate_i, gate_o, gate_f, candidate, before = x
    kept = nest.apply(Mul(), nest.apply(Sigmoid(), gate_f), before)
    new = nest.apply(Mul(), nest.apply(Sigmoid(), gate_i), nest.apply(Tanh(), candidate))
    c = nest.apply(Add(), kept, new)
    h = nest.apply(Mul(), nest.apply(Sigmoid(), gate_o), nest.apply(Tanh(), c))
    return [narrowed(nest, h, result), narrowed(nest, c, result)]


def _gru(nest: Nest, x: Sequence[int], result: ElementType) -> list[int]:
    x_z, x_r, x_g, r_z, r_r, r_g, before = x
    z, r = (nest.apply(Sigmoid(), nest.apply(Add(), a, b)) for a, b in ((x_z, r_z), (x_r, r_r)))
    candidate = nest.apply(Tanh(), nest.apply(Add(), x_g, nest.apply(Mul(), r, r_g)))
    less = nest.apply(Sub(), nest.constant(1, nest.type_of(z)), z)
    h = nest.apply(Add(), nest.apply(Mul(), less, candidate), nest.apply(Mul(), z, before))
    return [narrowed(nest, h, result)]


_STATE: Final[Mapping[type, Callable[[Nest, Sequence[int], ElementType], list[int]]]] = {
    LstmEpilogue: _lstm,
    GruEpilogue: _gru,
}
"""For each epilogue, what adds the values of the outputs to a nest."""
