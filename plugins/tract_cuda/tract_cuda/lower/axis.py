"""Axes added, removed, moved and reshaped: the same memory, looked at in another way."""

from __future__ import annotations

from tract_llvm.program.views import View

from tract_core.ops.axis import AddAxis, AxisOp, MoveAxis, RmAxis
from tract_core.plugins.tables import Rows
from tract_cuda.lowering import Site
from tract_cuda.table import CUDA

ROWS = Rows()


@ROWS.row(CUDA, AxisOp)
def lower_axes(op: AxisOp, site: Site) -> None:
    """A view; a copy where the elements do not lie as the new shape would have them."""
    (x,) = site.inputs()
    if isinstance(op, MoveAxis):
        site.place(x.transposed(op.permutation(len(x.shape))))
        return
    if isinstance(op, AddAxis | RmAxis):
        site.place(with_ones(op, x))
        return
    shape = tuple(site.node.facts[0].shape)
    found = x.shaped(shape) or site.lowering.compact(x).shaped(shape)
    assert found is not None, "what has no gaps has any shape"
    site.place(found)


def with_ones(op: AddAxis | RmAxis, x: View) -> View:
    """With one more axis of size 1, or one less."""
    shape, strides = list(x.shape), list(x.strides)
    if isinstance(op, AddAxis):
        shape.insert(op.axis, 1)
        strides.insert(op.axis, 0)
    else:
        del shape[op.axis], strides[op.axis]
    return View(x.storage, x.element, tuple(shape), tuple(strides), x.offset)
