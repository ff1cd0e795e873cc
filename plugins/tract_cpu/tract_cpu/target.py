"""What a model is compiled for."""

from __future__ import annotations

from tract_llvm.isa import Isa

from tract_core.frozen import frozen


@frozen
class Target:
    """What a model is compiled for.

    ``threads``: how many there may be, which changes no result. ``known``: symbols that no input gives, but whoever
    runs the model. ``winograd``: whether convolutions may be computed by Winograd's method.
    """

    isa: Isa
    threads: int = 1
    known: frozenset[str] = frozenset()
    winograd: bool = True
