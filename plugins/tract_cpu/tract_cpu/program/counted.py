"""Tensors of which steps count the elements that are not zero."""

from __future__ import annotations

from tract_llvm.language.types import INDEX
from tract_llvm.program.views import View

from tract_core.frozen import frozen


@frozen
class Counted:
    """A tensor of which elements that are not zero were counted.

    ``x``: the tensor, without gaps. ``counts``: for each part of it, where the places of these elements begin among
    all; at the end, how many there are.
    """

    x: View
    counts: View

    @property
    def total(self) -> View:
        """How many there are."""
        (size,) = self.counts.shape
        return View(self.counts.storage, INDEX, (1,), (1,), size - 1)
