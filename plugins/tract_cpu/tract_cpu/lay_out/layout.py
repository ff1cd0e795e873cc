"""Where tensors had best be written, so that nobody need copy them: decided for all tensors that groups give.

That is memory of their own, with the zeros around them that windows read; or their part of a tensor that is put
together of several, which may be a part itself; or inside of what a `Pad` makes; or where the output lies that is a
view on them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate

from tract_core.compile.groups import given_by, outlet_text
from tract_core.dims import Dim, dim_max, is_one, product
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis, Reshape, RmAxis
from tract_core.ops.concat import TypedConcat
from tract_core.ops.pad import Pad
from tract_core.runtime.host import HostNode
from tract_cpu.group.einsum import Product
from tract_cpu.group.forms import forms_of_inputs, stays_in_blocks
from tract_cpu.group.groups import CpuGroup, Host
from tract_cpu.group.known import CpuKnown
from tract_cpu.group.reach import border_for
from tract_cpu.lay_out.around import pads_around, zeros_around
from tract_cpu.program.form import Border, Form, Forms


@frozen
class Own:
    """Memory of its own. ``border``: the zeros around a tensor, along each axis; a plain one may have none at all."""

    border: Border = ()

    def text(self, model: TypedModel) -> str:
        """What it is."""
        ends = ", ".join(f"{before} and {after}" for before, after in self.border)
        zeros = f", with zeros around it: {ends}" if any(end != (0, 0) for end in self.border) else ""
        return f"memory of its own{zeros}"


@frozen
class WantedOutput:
    """Where whoever runs the model, or the body, wants an output. ``number``: of the output."""

    number: int

    def text(self, model: TypedModel) -> str:
        """What it is."""
        return f"where output {self.number} is wanted"


@frozen
class PartOf:
    """A part of what a concatenation gives. ``whole``: that; ``slot``: which of its inputs it is.

    ``offset``: where it begins in a plain whole, in elements; in one in blocks, by blocks along the channels.
    """

    whole: OutletId
    slot: int
    offset: Dim

    def text(self, model: TypedModel) -> str:
        """What it is."""
        return f"part {self.slot} of {outlet_text(model, self.whole)}, from {self.offset} on"


@frozen
class Inside:
    """Inside of what a `Pad` gives, which is filled around it. ``whole``: that."""

    whole: OutletId

    def text(self, model: TypedModel) -> str:
        """What it is."""
        return f"inside of {outlet_text(model, self.whole)}"


@frozen
class SameAs:
    """Where a tensor of another shape is written that is a view on it. ``view``: that."""

    view: OutletId

    def text(self, model: TypedModel) -> str:
        """What it is."""
        return f"where {outlet_text(model, self.view)} is"


Placement = Own | WantedOutput | PartOf | Inside | SameAs


@frozen
class Layout:
    """Where tensors are written: ``plain``, and in ``blocks`` of channels.

    A tensor in blocks has a place among the plain ones too, for a copy that somebody may want to see.
    """

    plain: Mapping[OutletId, Placement]
    blocks: Mapping[OutletId, Placement]

    def text(self, model: TypedModel, groups: Sequence[CpuGroup]) -> str:
        """A line for each tensor that a group gives, in order."""
        lines: list[str] = []
        for group in groups:
            for outlet in given_by(model, group.nodes):
                found = (self.plain if group.form is None else self.blocks).get(outlet)
                if found is not None:
                    blocks = "" if group.form is None else f"{group.form}, "
                    lines.append(f"{outlet_text(model, outlet)}: {blocks}{found.text(model)}")
        return "\n".join(lines) + "\n"


def lay_out(
    known: CpuKnown, groups: Sequence[CpuGroup], nodes: Mapping[int, HostNode], wanted: Collection[OutletId]
) -> Layout:
    """Where the tensors of groups are written. ``wanted``: outputs whose place is given."""
    placing = _Placing(known, wanted)
    for group in groups:
        node = nodes[group.nodes[0]]
        if known.wants_reading(node):
            known.learn(node)
        for outlet in given_by(known.model, group.nodes):
            placing.place(outlet, group)
        if isinstance(group, Host) and node.binds:
            known.learn(node)
    return Layout(placing.plain, placing.blocks)


class _Placing:
    """The places of tensors, while they are found."""

    def __init__(self, known: CpuKnown, wanted: Collection[OutletId]) -> None:
        outputs = reversed(list(enumerate(known.model.outputs)))
        self._known, self._model = known, known.model
        self.plain: dict[OutletId, Placement] = {one: WantedOutput(number) for number, one in outputs if one in wanted}
        self.blocks: dict[OutletId, Placement] = {}
        self._filled = set[OutletId]()
        """What tensors are inside of."""
        self._offsets: dict[int, list[Dim]] = {}
        """Where the inputs of concatenations, by their nodes, begin in the whole, if they have no gaps there."""

    def place(self, outlet: OutletId, group: CpuGroup) -> None:
        """Find the place of a tensor that a group gives in blocks of a form, or plain."""
        plain = self._plain(outlet)
        if group.form is not None:
            self._in_blocks(outlet, group.form)
        elif isinstance(group, Product) and plain == Own():
            self._among_others(outlet)

    def _among_others(self, outlet: OutletId) -> None:
        """Inside of what is padded, or with zeros around it: of a tensor that is written with gaps as well."""
        found = pads_around(self._known, outlet)
        padded = next((one for one in found if one not in self._filled and one not in self.plain), None)
        if padded is None:
            self.plain[outlet] = Own(zeros_around(self._known, outlet))
            return
        self._filled.add(padded)
        self.plain[outlet] = Inside(padded)

    def _plain(self, outlet: OutletId) -> Placement:
        if outlet not in self.plain:
            self.plain[outlet] = self._beyond(outlet) or Own()
        return self.plain[outlet]

    def _beyond(self, outlet: OutletId) -> Placement | None:
        """Where the first of its readers would have it that minds; ``None`` where it can be anywhere."""
        for reader in sorted(self._model.outlet(outlet).successors):
            if self._known.why_unfit(reader.node) is not None:
                continue
            op, result, found = self._model.nodes[reader.node].op, OutletId(reader.node), None
            if isinstance(op, AddAxis | RmAxis | Reshape):
                found = SameAs(result) if result in self.plain or self._beyond(result) is not None else None
            elif isinstance(op, TypedConcat):
                found = self._part(op, result, reader.slot)
            if found is not None:
                return found
        return None

    def _part(self, op: TypedConcat, result: OutletId, slot: int) -> Placement | None:
        """The part of a tensor, where that has no gaps as it lies in the whole."""
        inputs = self._model.nodes[result.node].inputs
        if not all(is_one(size) for size in self._model.outlet_fact(inputs[slot]).shape[: op.axis]):
            return None
        offsets = self._offsets.get(result.node)
        if offsets is None:
            shapes = [self._model.outlet_fact(outlet).shape for outlet in inputs]
            sizes = [product(shape[op.axis :]) for shape in shapes]
            offsets = self._offsets[result.node] = list(accumulate(sizes, initial=0))
        self._plain(result)
        return PartOf(result, slot, offsets[slot])

    def _in_blocks(self, outlet: OutletId, form: Form) -> None:
        """A part of the largest whole that the tensor belongs to, inside of what is padded, or memory of its own."""
        if outlet in self.blocks:
            return
        wholes: list[tuple[OutletId, int, Forms]] = []
        for reader in self._model.outlet(outlet).successors:
            result = OutletId(reader.node)
            forms = forms_of_inputs(self._known, result)
            if forms is not None and forms.parts[reader.slot] == form:
                wholes.append((result, reader.slot, forms))
        if wholes:
            result, slot, forms = max(wholes, key=lambda one: one[2].whole.channels)
            self._in_blocks(result, forms.whole)
            self.blocks[outlet] = PartOf(result, slot, forms.firsts[slot])
            return
        padded = self._padded(outlet, form)
        self.blocks[outlet] = padded or Own(self._border(outlet, form))

    def _padded(self, outlet: OutletId, form: Form) -> Placement | None:
        """Inside of what the first `Pad` makes of it that nothing else is inside of."""
        for reader in self._model.outlet(outlet).successors:
            op, result = self._model.nodes[reader.node].op, OutletId(reader.node)
            free = isinstance(op, Pad) and result not in self._filled and self._known.why_unfit(reader.node) is None
            if free and stays_in_blocks(op, form):
                self._filled.add(result)
                return Inside(result)
        return None

    def _border(self, outlet: OutletId, form: Form) -> Border:
        """What is wanted around a tensor and around its parts."""
        border, forms = border_for(self._known, outlet, form), forms_of_inputs(self._known, outlet)
        for one, part in zip(self._model.nodes[outlet.node].inputs, forms.parts, strict=True) if forms else ():
            pairs = zip(border, self._border(one, part), strict=True)
            border = tuple((dim_max(a, c), dim_max(b, d)) for (a, b), (c, d) in pairs)
        return border
