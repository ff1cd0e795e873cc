"""Tensors in blocks: where they lie, and what reads them so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import gcd
from typing import Final

import numpy as np
from tract_llvm.language.types import F16, F32, I8, U4, U16, U32, ElementType, element_type
from tract_llvm.program.loops import collapsed
from tract_llvm.program.views import View

from tract_core.compile.products import ProductAxes
from tract_core.data import DatumType
from tract_core.data.stored import BITS, pack
from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.ops.blocks import UnpackBlocks
from tract_core.ops.einsum import EinSum
from tract_core.ops.gather import Gather
from tract_core.ops.quantize import DequantizeLinear
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cuda.blocks import BlockRecord, BlockTensor, Written, launch_of_words
from tract_cuda.group.einsum import sums_of
from tract_cuda.group.groups import Packed
from tract_cuda.kernels.blocks import BlockForm
from tract_cuda.lowering import Site
from tract_cuda.maps import is_multiple
from tract_cuda.products.product import BLOCK_TILES, FLAT, FLAT_MMA, MMA_TILES, BlocksOf
from tract_cuda.table import BLOCKS, KINDS

ROWS = Rows()

_DEEP: Final = gcd(*(tile.depth for tile in (*BLOCK_TILES, FLAT, *MMA_TILES, FLAT_MMA)))
"""Of how many numbers along the depth tiles are made, which words have to fill."""


_OF_ARCHIVES: Final = {
    "q4_0": BlockRecord(BlockForm(32, U4, True, U16, F16, 8, F16), 18, codes=2, scale=0),
    "q8_0": BlockRecord(BlockForm(32, I8, False, U16, F16, 0, F16), 34, codes=2, scale=0),
    "q8_1": BlockRecord(BlockForm(32, I8, False, U32, F16, 0, F16), 36, codes=4, scale=0),
}
"""The formats of archives, but for the type of the numbers."""


@ROWS.row(BLOCKS, UnpackBlocks)
def blocks_of_archives(op: UnpackBlocks) -> BlockRecord | None:
    """The formats that archives have; ``None`` for numbers in f64."""
    record, to = _OF_ARCHIVES.get(op.form), element_type(op.to)
    if record is None or to is None or to.is_carried or to.bits > U32.bits:
        return None
    return replace(record, form=replace(record.form, to=to))


@ROWS.row(KINDS, Packed)
def lower_packed(site: Site) -> None:
    """Nothing is launched until a kernel wants the numbers in memory."""
    group, shape = site.group, tuple(site.node.facts[0].shape)
    assert isinstance(group, Packed), "as the table says"
    if group.record is None:
        tensor = _of_constants(site, group.form)
    else:
        tensor = group.record.tensor(_aligned(site, group.record), shape)
    site.lowering.put_blocks(site.outlet, tensor, group.nodes)


def _aligned(site: Site, record: BlockRecord) -> View:
    """The bytes that blocks are, without gaps, from where their parts can be read: a copy where they lie elsewhere."""
    (data,) = site.compact_inputs()
    if is_multiple(data.offset, record.alignment):
        return data
    copy = site.lowering.scratch(data.element, data.shape)
    site.lowering.copy(data, copy)
    return copy


def _of_constants(site: Site, form: BlockForm) -> BlockTensor:
    """The inputs of a `DequantizeLinear`: its integers in words along the axis, the parameters as they lie."""
    op, lowering, (x, *parameters) = site.node.op, site.lowering, site.node.inputs
    assert isinstance(op, DequantizeLinear), "other operators have a record"
    integers = lowering.constant_array(x)
    assert integers is not None, "groups are made of constants"
    codes = lowering.constant(_in_words(integers, op.axis, form))
    codes = View(codes.storage, codes.element, codes.shape[:-1], codes.strides[:-1])
    order = [*range(op.axis), integers.ndim - 1, *range(op.axis, integers.ndim - 1)]
    others = zip(form.parts(), parameters, strict=False)  # zero points that are all the same are none
    return BlockTensor(
        form, op.axis, integers.shape, codes.transposed(order), tuple(lowering.view(one) for _, one in others)
    )


def _in_words(integers: Array, axis: int, form: BlockForm) -> Array:
    """Integers as words of their bits: [other axes, blocks along that axis, words of a block]; what is amiss is 0."""
    turned = np.moveaxis(integers, axis, -1)
    *others, size = turned.shape
    blocks = -(-size // form.length)
    if size % form.length:
        filled = np.zeros((*others, blocks * form.length), turned.dtype)
        filled[..., :size] = turned
        turned = filled
    kind = DatumType.from_numpy(integers.dtype)
    bits = pack(kind, np.ascontiguousarray(turned)) if kind in BITS else np.ascontiguousarray(turned)
    return bits.reshape(-1).view(np.uint8).view("<u4").reshape(*others, blocks, form.words)


# ---- slices that positions name


def lower_slices(op: Gather, site: Site, tensor: BlockTensor) -> None:
    """Slices of a tensor, picked along another axis than that along which blocks are: only these are unpacked."""
    numbers, (result,) = site.lowering.view(site.node.inputs[1]), site.results()
    axis, added = op.axis, len(numbers.shape)
    along = tensor.axis + (added - 1 if tensor.axis > axis else 0)

    def strides(view: View) -> tuple[Dim, ...]:
        return (*view.strides[:axis], *(0,) * added, *view.strides[axis + 1 :])

    steps = {name: strides(part) for name, part in tensor.parts.items()}
    steps["numbers"] = (*(0,) * axis, *numbers.strides, *(0,) * (len(tensor.shape) - axis - 1))
    named: dict[str, View | Dim] = {"numbers": numbers, "step": 0, "places0": tensor.shape[axis], "apart0": 1}
    named |= {f"{name}.apart": part.strides[axis] for name, part in tensor.parts.items()}
    named["status"] = site.lowering.status()
    site.lowering.steps.append(launch_of_words(tensor, Written(result, along, steps, named), site.group.nodes))


# ---- factors of products


@frozen
class BlockFactor:
    """A factor that lies in blocks along the axis that is summed. ``axes``: of the product, with it as the right one.

    ``view``: its codes, as [pairs, blocks, columns]; ``blocks``: the rest of it.
    """

    axes: ProductAxes
    view: View
    blocks: BlocksOf


def block_factor(op: EinSum, site: Site, axes: ProductAxes, sizes: Mapping[str, Dim]) -> BlockFactor | None:
    """A factor of a product that is read in blocks; ``None`` where there is none.

    ``sizes``: of all axes, by the names that the operator has for them.
    """
    if sums_of(op) != F32:
        return None
    for slot in (axes.right, axes.left):
        tensor = site.lowering.in_blocks(site.node.inputs[slot])
        other = site.lowering.element(site.node.inputs[1 - slot])
        if tensor is None or other is None or _DEEP % tensor.form.span or not _is_summed_in_f32(other):
            continue
        found = _factor(tensor, op.axes.inputs[slot], axes.with_right(slot), sizes)
        if found is not None:
            return found
    return None


def _is_summed_in_f32(element: ElementType) -> bool:
    return element.kind == "f" and element.bits <= F32.bits and not element.is_carried


def _factor(tensor: BlockTensor, term: str, axes: ProductAxes, sizes: Mapping[str, Dim]) -> BlockFactor | None:
    """The right factor, whose axes are called ``term``; ``None`` where its blocks do not lie as those of a matrix."""
    name, form = term[tensor.axis], tensor.form
    if name not in axes.inner or any(sizes[one] != size for one, size in zip(term, tensor.shape, strict=True)):
        return None
    axes = replace(axes, inner="".join(one for one in axes.inner if one != name) + name)
    if axes.inner != name and tensor.is_ragged:
        return None
    counts = {**sizes, name: tensor.codes.shape[tensor.axis]}
    found = [_grouped(part, term, (axes.pairs, axes.inner, axes.columns), counts) for part in tensor.parts.values()]
    whole = [one for one in found if one is not None]
    if len(whole) < len(found):
        return None
    codes, *others = whole
    depth = tensor.shape[tensor.axis] if axes.inner == name else codes.shape[1] * form.length
    return BlockFactor(axes, codes, BlocksOf(form, depth, tuple(others)))


def _grouped(view: View, term: str, groups: Sequence[str], sizes: Mapping[str, Dim]) -> View | None:
    """A tensor with the axes of each group as one; ``None`` where they do not lie beside each other."""
    strides, loops = dict(zip(term, view.strides, strict=True)), list[tuple[Dim, Dim]]()
    for group in groups:
        found = collapsed([sizes[one] for one in group], [[strides.get(one, 0) for one in group]])
        if len(found) > 1:
            return None
        loops.append((found[0].size, found[0].strides[0]) if found else (1, 0))
    shape, steps = zip(*loops, strict=True)
    return replace(view, shape=shape, strides=steps)
