"""What nodes keep from turn to turn, as a program says it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tract_llvm.language.types import ElementType
from tract_llvm.program.keeping import Keeping

from tract_core.frozen import frozen

if TYPE_CHECKING:
    from tract_core.dims import Dim


@frozen
class Kept:
    """What a node keeps from turn to turn, in memory of the state. ``first``: the number of its first storage.

    ``tensors``: what is in that one and in those that follow, zeros before the first turn. ``keeping``: what they are
    as a snapshot.
    """

    node: int
    first: int
    tensors: tuple[tuple[ElementType, tuple[Dim, ...]], ...]
    keeping: Keeping
