"""Programs for rows on tensors in blocks of channels."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.fuse.nest import Nest

from tract_core.dims import Dim
from tract_core.plugins.registry import Registry
from tract_cpu.program.form import Form


class NestInBlocks(Nest):
    """``form``: how channels are cut into blocks; ``shape`` is that of views."""

    def __init__(self, registry: Registry, shape: Sequence[Dim], form: Form) -> None:
        super().__init__(registry, form.shape(shape))
        self.form = form

    @staticmethod
    def of(registry: Registry, shape: Sequence[Dim], form: Form) -> NestInBlocks | None:
        """``None`` where a tensor of that shape has no such channels."""
        fits = len(shape) > form.axis and shape[form.axis] == form.channels
        return NestInBlocks(registry, shape, form) if fits else None

    def shape_in(self, shape: Sequence[Dim]) -> tuple[Dim, ...]:
        """That of a tensor that cannot be cut like the others is as it is."""
        fits = len(shape) == len(self.shape) - 1 and shape[self.form.axis] == self.form.channels
        return self.form.shape(shape) if fits else tuple(shape)

    def along(self, axes: Sequence[int]) -> bool:
        """Channels are not summed across blocks."""
        return self.form.axis not in axes and super().along(axes)
