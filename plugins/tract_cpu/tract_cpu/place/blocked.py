"""Bring tensors into blocks of channels, give them borders of zeros, and find operands for what is computed so."""

from __future__ import annotations

from dataclasses import replace

from tract_llvm.language.types import ElementType
from tract_llvm.program.storages import NOWHERE
from tract_llvm.program.views import View

from tract_core.dims import Dim, is_one, less_or_equal, product
from tract_core.model.graph import OutletId
from tract_cpu.draft.copies import convert_step
from tract_cpu.draft.lowering import Lowering
from tract_cpu.kernels.border import BorderPlan
from tract_cpu.place.chain import PlaceFn
from tract_cpu.program.arguments import Given, arguments
from tract_cpu.program.form import Blocked, Border, Form
from tract_cpu.program.program import NativeStep


def element_view(lowering: Lowering, outlet: OutletId, form: Form) -> View:
    """The shape and the type of a tensor in blocks, in no memory of its own yet."""
    fact = lowering.model.outlet_fact(outlet)
    element = lowering.element(fact.datum_type.storage)
    assert element is not None  # there is a form
    return View.contiguous(NOWHERE, lowering.held(element), form.shape(fact.shape))


def bordered(lowering: Lowering, like: View, border: Border, fill: int = 0, *, behind: Dim = 0) -> View:
    """Memory for a tensor of the shape and type of a view, for whoever writes it, with elements around it.

    ``fill``: the bits of each of these; ``behind``: how many bytes behind all of it are read, whatever they are.
    """
    wide = tuple(size + before + after for size, (before, after) in zip(like.shape, border, strict=True))
    whole = View.contiguous(lowering.room(product(wide) * like.element.bytes + behind), like.element, wide)
    if has_border(border):
        fill_around(lowering, whole, border, fill)
    inside: Dim = 0
    for stride, (before, _) in zip(whole.strides, border, strict=True):
        inside = inside + stride * before
    return replace(whole, shape=like.shape, offset=inside)


def has_border(border: Border) -> bool:
    """Whether there are elements around a tensor."""
    return any(end != 0 for pair in border for end in pair)


def fill_around(lowering: Lowering, whole: View, border: Border, fill: int) -> None:
    """Add the call that fills a border. ``whole``: the elements and the border, without gaps; ``fill``: bits."""
    whole = whole.as_bits()
    around = [axis for axis, ends in enumerate(border) if ends != (0, 0)]
    first, last = around[0], around[-1]
    plan = BorderPlan(whole.element, lowering.isa.lanes(whole.element.bits), last + 1 - first, fill)
    each = product(whole.shape[first:])
    axes = list[dict[str, Given]]()
    work: Dim = 0
    for axis in range(first, last + 1):
        before, after = border[axis]
        inside = whole.shape[axis] - before - after
        axes.append({"before": before, "inside": inside, "after": after, "stride": whole.strides[axis]})
        work = work + product(whole.shape[:axis]) * (before + after) * whole.strides[axis]
    given = arguments(plan, tensor=whole.address, whole=each, axes=axes)
    step = NativeStep(plan, given, product(whole.shape[:first]), (), (whole.storage,), work=work)
    lowering.steps.append(step)


def converted_blocks(lowering: Lowering, blocks: View, element: ElementType, border: Border) -> View:
    """Blocks with their elements in another type, and zeros around them."""
    target = bordered(lowering, replace(blocks, element=element), border)
    lowering.steps.append(convert_step(blocks, target, lowering.isa, ()))
    return target


def covers(border: Border, wanted: Border) -> bool:
    """Whether there are surely as many zeros as are wanted."""
    pairs = [pair for one, other in zip(border, wanted, strict=True) for pair in zip(one, other, strict=True)]
    return all(want == have or less_or_equal(want, have) is True for have, want in pairs)


def to_blocks(lowering: Lowering, outlet: OutletId, form: Form, border: Border) -> View:
    """A tensor in blocks with so many zeros around it, which is copied where it is not there like this already."""
    there = in_blocks(lowering, outlet, form)
    if there is not None and covers(there.border, border):
        return there.view
    if there is not None:
        target = bordered(lowering, there.view, border)
        pairs = [(target, there.view)]
    else:
        like = element_view(lowering, outlet, form)
        plain = lowering.converted(lowering.known_view(outlet), like.element)
        around = (*lowering.around.get(outlet, ((0, 0),) * len(plain.shape)), (0, 0))
        as_it_is = form.as_it_is(plain) if covers(around, border) else None
        target = as_it_is or bordered(lowering, like, border)
        pairs = [] if as_it_is is not None else form.parts(target, plain)
    for into, out_of in pairs:
        lowering.copy(out_of, into)
    lowering.blocked[outlet] = Blocked(form, target, border)
    return target


def in_blocks(lowering: Lowering, outlet: OutletId, form: Form) -> Blocked | None:
    """A tensor as it is there in blocks of a form, if it is."""
    found = (lowering.blocked.get(outlet), lowering.born_in_blocks.get(outlet))
    return next((one for one in found if one is not None and one.form == form), None)


def operands_in_blocks(lowering: Lowering, form: Form) -> PlaceFn:
    """Where the operands of a chain on tensors of a form are.

    The channels of a block lie side by side; what does not lie so is copied. One channel is for all of them.
    """

    def operand(outlet: OutletId, shape: tuple[Dim, ...]) -> View:
        there = in_blocks(lowering, outlet, form)
        if there is not None:
            return there.view.stretched(form.shape(shape))
        array, own = lowering.constant_array(outlet), lowering.model.outlet_fact(outlet).shape
        if is_one(own[form.axis]):
            plain = lowering.known_view(outlet)
            single = replace(plain, shape=(*plain.shape, 1), strides=(*plain.strides, 0))
            return single.stretched(form.shape(shape))
        if array is not None:
            constant = lowering.constant(form.blocked_array(array))
            assert constant is not None  # kernels know its type
            return constant.stretched(form.shape(shape))
        return to_blocks(lowering, outlet, form, ((0, 0),) * (len(shape) + 1)).stretched(form.shape(shape))

    return operand
