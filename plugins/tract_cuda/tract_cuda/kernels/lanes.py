"""Neighbours that one thread has of a tensor: ``next`` to each other, one that ``stays`` for all, or ``far`` apart.

Tensors are parameters by their numbers: ``tensor0``, and how far apart its neighbours are, ``apart0``.
"""

from __future__ import annotations

from tract_llvm.language.values import Value

from tract_cuda.language.kernel import Kernel


def read_lanes(k: Kernel, tensor: int, move: str, place: Value, lanes: int) -> Value:
    """So many neighbours from a place on, which is a multiple of them where they lie side by side; 0 for one number."""
    memory = k.memory(f"tensor{tensor}")
    if not lanes:
        return memory[place]
    if move == "next":
        return k.read(memory, place, lanes)
    if move == "stays":
        return memory[place].splat(lanes)
    apart = k.size(f"apart{tensor}")
    return k.vector_of([memory[place + apart * lane] for lane in range(lanes)])


def write_lanes(k: Kernel, tensor: int, move: str, place: Value, value: Value) -> None:
    """Write the lanes of a vector, or one number, from a place on."""
    memory = k.memory(f"tensor{tensor}")
    if not value.lanes or move == "next":
        k.write(memory, place, value)
        return
    apart = k.size(f"apart{tensor}")
    for lane in range(value.lanes):
        memory[place + apart * lane] = value.lane(lane)
