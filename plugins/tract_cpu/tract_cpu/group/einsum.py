"""Sums of products: what is a product of two matrices, with the chain, the attention or the gates behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tract_llvm.elements.expressions import Apply, Expression, element_of
from tract_llvm.language.types import ElementType

from tract_core.dims import Dim, is_one
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Mul
from tract_core.ops.einsum import EinSum
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.group.attention import attention_behind, waits
from tract_cpu.group.chain import Chain
from tract_cpu.group.conv import channels_of
from tract_cpu.group.groups import CpuGroup, Epilogue, Products
from tract_cpu.group.pairs import is_product_of_two
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


@frozen
class ProductAxes:
    """The axes by what they are: in both factors and the result, in the left one only, the right one only, summed.

    ``left``, ``right``: which input is which.
    """

    pairs: str
    rows: str
    columns: str
    inner: str
    left: int
    right: int

    def notes(self) -> Iterator[str]:
        """What they are."""
        named = {"pairs": self.pairs, "rows": self.rows, "columns": self.columns, "summed": self.inner}
        axes = ", ".join(f"{what} {names}" for what, names in named.items() if names)
        yield f"{axes or 'no axes'}; the left factor is input {self.left}"

    @staticmethod
    def of(op: EinSum, shapes: Sequence[Sequence[Dim]]) -> ProductAxes:
        """``shapes``: of the factors, as `stretched_shapes` says."""
        terms, (output,) = op.axes.inputs, op.axes.outputs
        a, b = (_long(term, shape) for term, shape in zip(terms, shapes, strict=True))
        pairs = "".join(name for name in output if name in a and name in b)
        only = [
            "".join(name for name in output if name in own and name not in other) for own, other in ((a, b), (b, a))
        ]
        inner = "".join(name for name in terms[0] if name in a and name in b and name not in output)
        last = last_axis(output, a | b)
        left = 1 if last and last in only[0] else 0
        return ProductAxes(pairs, only[left], only[1 - left], inner, left, 1 - left)


def _long(term: str, shape: Sequence[Dim]) -> set[str]:
    return {name for name, size in zip(term, shape, strict=True) if not is_one(size)}


def last_axis(output: str, names: set[str]) -> str:
    """The last axis of the result that is one of some."""
    return next((name for name in reversed(output) if name in names), "")


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
    return attention_behind(op, start, chain) or _product(op, start, chain, element)


def _product(op: EinSum, start: Start, chain: Chain, element: ElementType) -> CpuGroup:
    """A product of matrices; where nothing is summed, of elements."""
    axes = ProductAxes.of(op, stretched_shapes(op, start.facts()))
    kinds = {start.known.element_at(outlet) for outlet in start.node.inputs}
    if set(op.axes.inputs[0]) & set(op.axes.inputs[1]) <= set(op.axes.outputs[0]) and kinds == {element}:
        return _elements(start, element)
    if axes.columns and last_axis(op.axes.outputs[0], {*axes.pairs, *axes.rows, *axes.columns}) not in axes.columns:
        return start.host("the columns of the result do not lie beside each other")
    gates = gates_behind(start, chain) if is_of_state(op, start, axes) else None
    reads = (*start.read(), *read_along(chain, None))
    return gates or Product(chain.nodes, reads, None, chain, axes)


def _elements(start: Start, element: ElementType) -> CpuGroup:
    multiply = element_of(start.model.registry, Mul(), [element, element])
    if multiply is None:
        return start.host(f"native code does not multiply {element.name}")
    product = Expression((element, element), (Apply(Mul(), (0, 1), element, multiply.emit),))
    chain = start.behind(product, own=start.node.inputs)
    return Products(chain.nodes, (*start.read(), *read_along(chain, None)), None, chain)


def stretched_shapes(op: EinSum, facts: Sequence[TypedFact]) -> list[list[Dim]]:
    """The factors. An axis is repeated where its size is 1, or turns out to be, and another one in the other factor.

    Not one of size 1 that the result has, as such an axis is none; symbolic sizes of one that is summed over are equal.
    """
    sizes, (output,) = op.sizes(facts), op.axes.outputs
    return [
        [sizes[name] if is_one(size) != (name in output) else size for name, size in zip(term, fact.shape, strict=True)]
        for term, fact in zip(op.axes.inputs, facts, strict=True)
    ]


def moves_only(op: EinSum, facts: Sequence[TypedFact], result: TypedFact) -> bool:
    """Whether there is one factor of the type of the result, of whose axes only some of size 1 are left out."""
    (fact, *others), (output,) = facts, op.axes.outputs
    left_out = [size for name, size in zip(op.axes.inputs[0], fact.shape, strict=True) if name not in output]
    return not others and fact.datum_type == result.datum_type and all(map(is_one, left_out))


def sums_wider(op: EinSum, element: ElementType | None) -> bool:
    """Whether floats, of the type of ``element``, are summed in a wider type than kernels compute them in."""
    return element is not None and element.kind == "f" and op.acc.itemsize > element.computed.bytes


def is_of_state(op: EinSum, start: Start, axes: ProductAxes) -> bool:
    """Whether a product is one of rows and a matrix of the model: columns are the last axis of the result."""
    (output,), term = op.axes.outputs, op.axes.inputs[axes.right]
    one_each = not axes.pairs and len(axes.inner) == len(axes.columns) == 1 and output[-1:] == axes.columns
    return one_each and start.array(axes.right) is not None and sorted(term) == sorted(axes.inner + output[-1])


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
