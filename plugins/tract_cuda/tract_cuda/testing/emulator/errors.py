"""The errors of the emulator."""

from __future__ import annotations

from tract_core.errors import TractError


class UnknownPtx(TractError):
    """PTX that the emulator does not know: the instruction, or the part of the text, is named."""

    advice = "the emulator executes what LLVM, NVRTC and Triton write for usual kernels; write it in other instructions"


class EmulationError(TractError):
    """A kernel did what no kernel may do.

    ``where``: the kernel, the block and the thread. The problem says what was done, and at which line of the PTX.
    """

    advice = "run the kernel with the same order again: everything happens as it did"
