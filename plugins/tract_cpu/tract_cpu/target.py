"""What a model is compiled for."""

from __future__ import annotations

from typing import Final

from tract_llvm.isa import Isa

from tract_core.frozen import frozen


@frozen
class Rounding:
    """Where results may be rounded otherwise than by plain sums.

    ``winograd``: convolutions may be computed by Winograd's method. ``bytes``: what is multiplied with weights in
    blocks of 4 bits may be rounded to 8 bits before, each block of it with a scale of its own.
    """

    winograd: bool = True
    bytes: bool = False


USUAL: Final = Rounding()


@frozen
class Target:
    """What a model is compiled for.

    ``threads``: how many there may be, which changes no result. ``known``: symbols that no input gives, but whoever
    runs the model. ``rounding``: where results may be rounded otherwise.
    """

    isa: Isa
    threads: int = 1
    known: frozenset[str] = frozenset()
    rounding: Rounding = USUAL
