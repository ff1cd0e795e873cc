"""Tensors in which steps count what a later stage of the run writes."""

from __future__ import annotations

from tract_llvm.language.types import INDEX
from tract_llvm.program.views import View

from tract_core.frozen import frozen


@frozen
class Counted:
    """``x``: a tensor without gaps, in which something was counted: elements that are not zero, or what was put there.

    ``counts``: for each part of it, where what was found there begins among all; at the end, how much all is.
    """

    x: View
    counts: View

    @property
    def total(self) -> View:
        """How much all is."""
        (size,) = self.counts.shape
        return View(self.counts.storage, INDEX, (1,), (1,), size - 1)
