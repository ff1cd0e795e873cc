"""Sums of products as matrix products: which axes are pairs, rows, columns and inner ones, and where matrices lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tract_llvm.fuse.chain import Chain
from tract_llvm.language.types import ElementType
from tract_llvm.program.loops import collapsed
from tract_llvm.program.views import View

from tract_core.compile.products import ProductAxes, moves_only, stretched_shapes
from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.model.fact import TypedFact
from tract_core.ops.einsum import EinSum
from tract_core.plugins.tables import Rows
from tract_cuda.group.einsum import product_of, sums_of
from tract_cuda.group.groups import Products
from tract_cuda.lower.blocks import block_factor
from tract_cuda.lowering import Lowering, Site
from tract_cuda.products.choose import add_product
from tract_cuda.products.product import Product
from tract_cuda.table import CUDA, KINDS

ROWS = Rows()


@ROWS.row(CUDA, EinSum)
def lower_einsum(op: EinSum, site: Site) -> str | None:
    """A view, where there is one factor; a product of two that nothing is computed behind."""
    lowering = site.lowering
    facts = [lowering.model.outlet_fact(outlet) for outlet in site.node.inputs]
    if op.q_output is not None:
        return "sizes of its parameters do not fit"
    if moves_only(op, facts, site.node.facts[0]):
        return _lower_view(op, site)
    start = product_of(op, lowering.model, lowering.model.nodes[site.node.node])
    if start is None:
        return "it is no product of two factors that kernels sum"
    lower_product(op, site, start)
    return None


@ROWS.row(KINDS, Products)
def lower_products(site: Site) -> None:
    """A product of two, and what is computed behind it."""
    group, op = site.group, site.node.op
    assert isinstance(group, Products) and isinstance(op, EinSum)  # noqa: PT018 (as the tables say)
    lower_product(op, site, group.chain)


def _lower_view(op: EinSum, site: Site) -> None:
    """A diagonal goes on along all of its axes at once."""
    (x,), (term,), (output,) = site.inputs(), op.axes.inputs, op.axes.outputs
    strides: dict[str, Dim] = dict.fromkeys(term, 0)
    for name, stride in zip(term, x.strides, strict=True):
        strides[name] = strides[name] + stride
    shape = tuple(site.node.facts[0].shape)
    site.place(replace(x, shape=shape, strides=tuple(strides[name] for name in output)))


def lower_product(op: EinSum, site: Site, behind: Chain) -> None:
    """Add the launches of a product of two, and what is computed behind it."""
    lowering, facts = site.lowering, [site.lowering.model.outlet_fact(outlet) for outlet in site.node.inputs]
    shapes, (output,) = stretched_shapes(op, facts), op.axes.outputs
    axes, shape = _axes(op, facts, shapes), tuple(lowering.model.outlet_fact(site.outlet).shape)
    sizes = _sizes(op, axes, shapes) | dict(zip(output, shape, strict=True))
    packed = block_factor(op, site, axes, sizes)
    axes = axes if packed is None else packed.axes

    def factor(number: int, *groups: str) -> View:
        view = lowering.view(site.node.inputs[number]).stretched(shapes[number])
        return _matrices(lowering, view, op.axes.inputs[number], groups, sizes)

    left = factor(axes.left, axes.pairs, axes.rows, axes.inner)
    right = factor(axes.right, axes.pairs, axes.inner, axes.columns) if packed is None else packed.view
    groups = (axes.pairs, axes.rows, axes.columns)
    whole = (lowering.view(one).stretched(shape) for one in behind.operands)
    operands = tuple(_matrices(lowering, one, output, groups, sizes) for one in whole)
    sums = sums_of(op)
    assert sums is not None, "it was looked at"
    result = _result(lowering, behind, output, groups, sizes)
    blocks = None if packed is None else packed.blocks
    product = Product(left, right, operands, result, sums, behind.expression, blocks=blocks)
    add_product(lowering, product, site.group.nodes)


def _axes(op: EinSum, facts: Sequence[TypedFact], shapes: Sequence[Sequence[Dim]]) -> ProductAxes:
    """Which axes are rows, columns and summed. Weights of bytes are to the right.

    Tensor cores read bytes that lie along the depth: so results lie as convolutions read them.
    """
    axes = ProductAxes.of(op, shapes)
    small = all(fact.datum_type.storage in (DatumType.I8, DatumType.U8) for fact in facts)
    weights, data = (facts[slot].constant is not None for slot in (axes.left, axes.right))
    return axes.with_right(axes.left) if small and weights and not data else axes


def _sizes(op: EinSum, axes: ProductAxes, shapes: Sequence[Sequence[Dim]]) -> dict[str, Dim]:
    """Of the axes that are summed."""
    pairs = (pair for term, shape in zip(op.axes.inputs, shapes, strict=True) for pair in zip(term, shape, strict=True))
    return {name: size for name, size in pairs if name in axes.inner}


def _matrices(lowering: Lowering, view: View, term: str, groups: Sequence[str], sizes: Mapping[str, Dim]) -> View:
    """A tensor with the axes of each group as one: a copy where they do not lie beside each other."""
    strides = dict(zip(term, view.strides, strict=True))
    found = _grouped(view, strides, groups, sizes)
    if found is not None:
        return found
    order = [name for group in groups for name in group if name in strides]
    order += [name for name in term if name not in order]  # of size 1
    turned = view.transposed([term.index(name) for name in order])
    repeated = {name: 0 for name, stride in strides.items() if stride == 0}
    # All of it where it repeats along some axes of a group only, as a mask does along heads and not along the batch
    for kept, also in ((_unrepeated(turned), repeated), (turned, {})):
        steps = View.contiguous(kept.storage, kept.element, kept.shape).strides
        again = dict(zip(order, steps, strict=True)) | also
        if _grouped(kept, again, groups, sizes) is not None:
            found = _grouped(lowering.compact(kept), again, groups, sizes)
            break
    assert found is not None, "axes that lie in order go on from one to the next"
    return found


def _unrepeated(view: View) -> View:
    """Without the repetitions along axes that are."""
    shape = tuple(1 if stride == 0 else size for size, stride in zip(view.shape, view.strides, strict=True))
    return replace(view, shape=shape)


def _grouped(view: View, strides: Mapping[str, Dim], groups: Sequence[str], sizes: Mapping[str, Dim]) -> View | None:
    shape, steps = list[Dim](), list[Dim]()
    for group in groups:
        loops = collapsed([sizes[name] for name in group], [[strides.get(name, 0) for name in group]])
        if len(loops) > 1:
            return None
        shape.append(loops[0].size if loops else 1)
        steps.append(loops[0].strides[0] if loops else 0)
    return replace(view, shape=tuple(shape), strides=tuple(steps))


def _result(lowering: Lowering, behind: Chain, output: str, groups: Sequence[str], sizes: Mapping[str, Dim]) -> View:
    """New memory for the result as [pairs, rows, columns]: what is read of it later has its axes in the right order."""
    order = "".join(groups)
    order += "".join(name for name in output if name not in order)  # of size 1
    element: ElementType = behind.expression.result
    found = lowering.scratch(element, [sizes[name] for name in order])
    lowering.put(behind.outlet, found.transposed([order.index(name) for name in output]))
    shaped = _grouped(found, dict(zip(order, found.strides, strict=True)), groups, sizes)
    assert shaped is not None, "new memory has no gaps"
    return shaped
