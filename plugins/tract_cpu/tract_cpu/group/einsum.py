"""Sums of products: what is a product of two matrices, with the chain, the attention or the gates behind it."""

from __future__ import annotations

from collections.abc import Iterator

from tract_llvm.elements.expressions import Apply, Expression, element_of
from tract_llvm.fuse.chain import Chain
from tract_llvm.language.types import ElementType

from tract_core.compile.products import (
    ProductAxes,
    is_product_of_two,
    is_rows_by_matrix,
    last_axis,
    moves_only,
    stretched_shapes,
)
from tract_core.frozen import frozen
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Mul
from tract_core.ops.einsum import EinSum
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.group.attention import gathered, waits
from tract_cpu.group.conv import channels_of
from tract_cpu.group.groups import CpuGroup, Epilogue, Products
from tract_cpu.group.recurrent import gates_behind
from tract_cpu.group.start import GROUPS, Start, read_along

ROWS = Rows()


@frozen
class Product(Epilogue):
    """A product of two matrices, or of many pairs of them, and the chain behind it."""

    axes: ProductAxes

    def notes(self, model: TypedModel) -> Iterator[str]:
        """Its axes."""
        yield from self.axes.notes()
        yield from Epilogue.notes(self, model)


@ROWS.row(GROUPS, EinSum)
def group_einsum(op: EinSum, start: Start) -> CpuGroup | None:
    """What is no product of two is a view, or written out as several."""
    if op.q_output is not None or moves_only(op, start.facts(), start.node.facts[0]):
        return start.alone()
    if not is_product_of_two(op, start.facts()) or sums_wider(op, start.known.element_at(start.node.inputs[0])):
        return start.alone()
    if waits(start):
        return None
    element, kinds = start.result(), [start.known.element_at(outlet) for outlet in start.node.inputs]
    if element is None or any(one is None or one.kind == "b" for one in kinds):
        return start.host(
            f"native code does not know {op.acc.short}" if element is None else "booleans have no products"
        )
    channels = _channels(op, start)
    if channels is not None:
        return channels_of(start, *channels)
    chain = start.behind(Expression((element,)))
    return gathered(start, chain) or _product(op, start, chain, element)


def _product(op: EinSum, start: Start, chain: Chain, element: ElementType) -> CpuGroup:
    """A product of matrices; where nothing is summed, of elements."""
    axes = ProductAxes.of(op, stretched_shapes(op, start.facts()))
    kinds = {start.known.element_at(outlet) for outlet in start.node.inputs}
    if set(op.axes.inputs[0]) & set(op.axes.inputs[1]) <= set(op.axes.outputs[0]) and kinds == {element}:
        return _elements(start, element)
    if axes.columns and last_axis(op.axes.outputs[0], {*axes.pairs, *axes.rows, *axes.columns}) not in axes.columns:
        return start.host("the columns of the result do not lie beside each other")
    gates = gates_behind(start, chain) if is_rows_by_matrix(op, axes) and start.array(axes.right) is not None else None
    reads = (*start.read(), *read_along(chain, None))
    return gates or Product(chain.nodes, reads, None, chain, axes)


def _elements(start: Start, element: ElementType) -> CpuGroup:
    multiply = element_of(start.model.registry, Mul(), [element, element])
    if multiply is None:
        return start.host(f"native code does not multiply {element.name}")
    product = Expression((element, element), (Apply(Mul(), (0, 1), element, multiply.emit),))
    chain = start.behind(product, own=start.node.inputs)
    return Products(chain.nodes, (*start.read(), *read_along(chain, None)), None, chain)


def sums_wider(op: EinSum, element: ElementType | None) -> bool:
    """Whether floats, of the type of ``element``, are summed in a wider type than kernels compute them in."""
    return element is not None and element.kind == "f" and op.acc.itemsize > element.computed.bytes


def _channels(op: EinSum, start: Start) -> tuple[int, Array, int] | None:
    """The data, the matrix, and the axis, where the product mixes the channels of a tensor behind which more axes come.

    The data is the number of an input; the matrix is part of the model, [output channels, input channels].
    """
    (output,) = op.axes.outputs
    for slot in (0, 1):
        array, data, term = start.array(1 - slot), op.axes.inputs[slot], op.axes.inputs[1 - slot]
        if array is None or start.array(slot) is not None or len(term) != 2 or len(data) != len(output):
            continue
        changed = [axis for axis, (one, other) in enumerate(zip(data, output, strict=True)) if one != other]
        if len(changed) != 1 or changed[0] > 1 or changed[0] == len(data) - 1:
            continue
        axis = changed[0]
        fits = set(term) == {data[axis], output[axis]}
        if fits and start.facts()[slot].shape[axis] == array.shape[term.index(data[axis])]:
            return slot, array if term[0] == output[axis] else array.T, axis
    return None
