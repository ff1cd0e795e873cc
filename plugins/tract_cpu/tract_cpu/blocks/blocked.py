"""Bring tensors into blocks of channels, give them borders of zeros, and find operands for what is computed so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Final

from tract_core.dims import Dim, dim_max, is_one, is_symbolic, less_or_equal, product
from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedNode
from tract_core.ops.conv import Conv, Convolution
from tract_core.ops.deconv import Deconv
from tract_core.ops.pool_spec import AxisPlan
from tract_cpu.draft.lowering import Lowering
from tract_cpu.elements.chain import OperandFn
from tract_cpu.kernels.border import BorderPlan
from tract_cpu.products.phases import ends, phases
from tract_cpu.products.winograd import ends_of_tiles, tile_of
from tract_cpu.program.form import Blocked, Border, Form
from tract_cpu.program.program import Argument, NativeStep
from tract_cpu.program.views import View

_FAR: Final = 1 << 16
"""Zeros around the data, for each channel, that cost nobody anything."""


def form_of(lowering: Lowering, outlet: OutletId, axis: int) -> Form | None:
    """The form of a tensor whose channels are at an axis; ``None`` where their number is not known now."""
    fact = lowering.model.outlet_fact(outlet)
    element = lowering.element(fact.datum_type.storage)
    channels = fact.shape[axis]
    if element is None or not isinstance(channels, int) or not channels:
        return None
    return Form(axis, channels, lowering.isa.lanes(element.computed.bits))


def fills_blocks(op: Convolution, outputs: Dim, inputs: Dim, block: int) -> bool:
    """Whether the groups of a convolution, of so many channels each, are whole blocks, or single channels."""
    return op.group == 1 or (outputs, inputs) == (1, 1) or (outputs % block == 0 and inputs % block == 0)


def form_read(lowering: Lowering, node: TypedNode) -> Form | None:
    """The blocks in which a convolution wants its data; ``None`` for other nodes, and where it reads it as it lies."""
    op = node.op
    if not isinstance(op, Conv | Deconv) or lowering.why_unfit(node.id) is not None:
        return None
    if isinstance(op, Conv) and op.q_output is not None:
        return None  # what it is written out as reads other tensors
    facts = [lowering.model.outlet_fact(outlet) for outlet in node.inputs[:2]]
    axis, rank = op.pool.data_format.c_axis(facts[0].rank), facts[1].rank
    form, channels = form_of(lowering, OutletId(node.id), axis), facts[0].shape[axis]
    outputs, inputs = (facts[1].shape[place(rank)] for place in (op.kernel_format.o_axis, op.kernel_format.i_axis))
    if form is None or not isinstance(channels, int):
        return None
    many = channels >= form.block or op.group > 1
    whole = fills_blocks(op, outputs // op.group, inputs, form.block)
    return Form(axis, channels, form.block) if many and whole else None


def only_blocked(lowering: Lowering, outlet: OutletId) -> Blocked | None:
    """A tensor that is there in blocks, and not with its axes as its shape says."""
    return None if lowering.is_plain(outlet) else lowering.blocked.get(outlet)


def element_view(lowering: Lowering, outlet: OutletId, form: Form) -> View:
    """The shape and the type of a tensor in blocks, in no memory of its own yet."""
    fact = lowering.model.outlet_fact(outlet)
    element = lowering.element(fact.datum_type.storage)
    assert element is not None  # there is a form
    return View.contiguous(lowering.nowhere, element, form.shape(fact.shape))


def bordered(lowering: Lowering, like: View, border: Border, fill: int = 0) -> View:
    """Memory for a tensor of the shape and type of a view, for whoever writes it, with elements around it.

    ``fill``: the bits of each of these.
    """
    wide = tuple(size + before + after for size, (before, after) in zip(like.shape, border, strict=True))
    whole = View.contiguous(lowering.room(product(wide) * like.element.bytes), like.element, wide)
    if any(end != 0 for pair in border for end in pair):
        lowering.steps.append(_around(lowering, whole, border, fill))
    inside: Dim = 0
    for stride, (before, _) in zip(whole.strides, border, strict=True):
        inside = inside + stride * before
    return replace(whole, shape=like.shape, offset=inside)


def _around(lowering: Lowering, whole: View, border: Border, fill: int) -> NativeStep:
    """The call that fills the border. ``whole``: the elements and the border, without gaps."""
    whole = whole.as_bits()
    around = [axis for axis, ends in enumerate(border) if ends != (0, 0)]
    first, last = around[0], around[-1]
    plan = BorderPlan(whole.element, lowering.isa.lanes(whole.element.bits), last + 1 - first, fill)
    each = product(whole.shape[first:])
    arguments: list[Argument] = [whole.address, each]
    work: Dim = 0
    for axis in range(first, last + 1):
        before, after = border[axis]
        inside = whole.shape[axis] - before - after
        arguments += [before, inside, after, whole.strides[axis]]
        work = work + product(whole.shape[:axis]) * (before + after) * whole.strides[axis]
    return NativeStep(plan, tuple(arguments), product(whole.shape[:first]), (), (whole.storage,), work=work)


def border_for(lowering: Lowering, outlet: OutletId, form: Form) -> Border:
    """The zeros that convolutions which read a tensor want around it, in the axes of its view in blocks."""
    rank = lowering.model.outlet_fact(outlet).rank
    border: list[tuple[Dim, Dim]] = [(0, 0)] * (rank + 1)
    for reader in lowering.model.outlet(outlet).successors:
        op = lowering.model.nodes[reader.node].op
        if isinstance(op, Conv | Deconv) and reader.slot == 0 and op.pool.data_format.c_axis(rank) == form.axis:
            for place, ends in enumerate(ends_of(lowering, reader.node) or (), start=op.pool.data_format.h_axis):
                border[place] = (dim_max(border[place][0], ends[0]), dim_max(border[place][1], ends[1]))
    return tuple(border)


def ends_of(lowering: Lowering, number: int) -> list[tuple[Dim, Dim]] | None:
    """How far the windows of a convolution, or those of the phases of a deconvolution, reach beyond its input.

    For each spatial axis. ``None`` where it is known by now that they do not fit: a run that comes there is refused.
    Also where they reach so far that there would be much more memory for zeros than for data.
    """
    node = lowering.model.nodes[number]
    op, shape = node.op, lowering.model.outlet_fact(node.inputs[0]).shape
    found: list[tuple[Dim, Dim]]
    try:
        if isinstance(op, Deconv):
            plans = op.pool.transposed_plan(op, shape, op.adjustments)
            found = [ends(one) if one is not None else (0, 0) for one in map(phases, plans)]
        else:
            assert isinstance(op, Conv)  # the callers asked
            plans = op.pool.plan(op, shape)
            tile = tile_of(lowering, node) or (1,) * len(plans)
            found = [(before, dim_max(0, after)) for before, after in ends_of_tiles(plans, tile)]
    except FactError:
        return None
    return None if _reach_far(plans, found) else found


def _reach_far(plans: Sequence[AxisPlan], found: Sequence[tuple[Dim, Dim]]) -> bool:
    sizes = [size for plan in plans for size in (plan.input, plan.output)]
    if any(is_symbolic(size) for size in (*sizes, *(one for pair in found for one in pair))):
        return any(not is_symbolic(one) and int(one) > _FAR for pair in found for one in pair)
    whole = prod(int(plan.input) + int(a) + int(b) for plan, (a, b) in zip(plans, found, strict=True))
    return whole > _FAR + 4 * (prod(map(int, sizes[::2])) + prod(map(int, sizes[1::2])))


def covers(border: Border, wanted: Border) -> bool:
    """Whether there are surely as many zeros as are wanted."""
    pairs = [pair for one, other in zip(border, wanted, strict=True) for pair in zip(one, other, strict=True)]
    return all(want == have or less_or_equal(want, have) is True for have, want in pairs)


def to_blocks(lowering: Lowering, outlet: OutletId, form: Form, border: Border) -> View | None:
    """A tensor in blocks with so many zeros around it, which is copied where it is not there like this already."""
    blocked = lowering.blocked.get(outlet)
    if blocked is not None and blocked.form == form:
        if covers(blocked.border, border):
            return blocked.view
        target = bordered(lowering, blocked.view, border)
        pairs = [(target, blocked.view)]
    else:
        plain = lowering.view(outlet)
        if plain is None:
            return None
        target = bordered(lowering, element_view(lowering, outlet, form), border)
        pairs = form.parts(target, plain)
    for into, out_of in pairs:
        lowering.copy(out_of, into)
    lowering.blocked[outlet] = Blocked(form, target, border)
    return target


def operands_in_blocks(lowering: Lowering, form: Form) -> OperandFn:
    """Where the operands of a chain on tensors of a form are."""

    def operand(outlet: OutletId, shape: tuple[Dim, ...]) -> View | None:
        return _operand(lowering, outlet, shape, form)

    return operand


def _operand(lowering: Lowering, outlet: OutletId, shape: Sequence[Dim], form: Form) -> View | None:
    """An operand on a tensor of ``shape`` in blocks, stretched to that shape; the channels of a block lie side by side.

    One that does not lie so is copied.
    """
    blocked = lowering.blocked.get(outlet)
    if blocked is not None and blocked.form == form:
        return blocked.view.stretched(form.shape(shape))
    array = lowering.constant_array(outlet)
    own = lowering.model.outlet_fact(outlet).shape
    if len(own) != len(shape) or (own[form.axis] != form.channels and not is_one(own[form.axis])):
        return None
    if is_one(own[form.axis]):
        plain = lowering.view(outlet)
        single = plain and replace(plain, shape=(*plain.shape, 1), strides=(*plain.strides, 0))
        return single and single.stretched(form.shape(shape))
    if array is not None:
        view = lowering.constant(form.blocked_array(array))
    else:
        view = to_blocks(lowering, outlet, form, ((0, 0),) * (len(shape) + 1))
    return view and view.stretched(form.shape(shape))
