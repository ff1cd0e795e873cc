"""What llvmlite lacks of what LLVM can write. Imported where something is written, as it loads llvmlite."""

from __future__ import annotations

from typing import Any, Final

from tract_llvm.llvm import ir


class Splat(ir.Constant):
    """One number in all lanes, which takes no more text than one number."""

    def __init__(self, type_: Any, single: Any) -> None:
        self.type = type_
        self.constant = single

    def _get_reference(self) -> str:
        return f"splat ({self.constant})"


class _BrainFloat(ir.HalfType):
    """The type of LLVM that instructions on bf16 take, in vectors only."""

    intrinsic_name = "bf16"

    def __str__(self) -> str:
        return "bfloat"


_BrainFloat._create_instance()  # as llvmlite makes its own; without it, its class gives the half float
BRAIN_FLOAT: Final = _BrainFloat()
