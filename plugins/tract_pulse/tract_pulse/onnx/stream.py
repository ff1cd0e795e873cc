"""Operators that keep something between pulses, as nodes of ONNX with what they keep as inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence

from tract_onnx.writing.elements import is_narrow
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.ops.pad import PadConstant, PadEdge
from tract_core.plugins.tables import Rows
from tract_pulse.ops.concat import PulseConcat
from tract_pulse.ops.delay import Delay
from tract_pulse.ops.mask import PulseMask
from tract_pulse.ops.pad import PulsePad
from tract_pulse.ops.past import Past
from tract_pulse.ops.range import PulseRange

ROWS = Rows()

_REST = 2**63 - 1


@ROWS.row(ONNX_WRITE, Delay)
def delay(op: Delay, node: Spelling) -> str:
    """What was kept, and the pulse behind it; the last positions are kept"""
    fact = node.fact()
    if not op.kept:
        return node.input()
    kept = node.state("past", fact.with_shape(_with(fact.shape, op.axis, op.kept)))
    whole = node.add("Concat", kept, node.input(), axis=op.axis)
    node.keep(kept, _slice(node, whole, op.axis, -op.kept, _REST))
    return _slice(node, whole, op.axis, 0, -op.delay) if op.delay else whole


@ROWS.row(ONNX_WRITE, Past)
def past(op: Past, node: Spelling) -> str:
    """As for a delay, but nothing is forgotten; before the first pulse there are zeros"""
    fact = node.fact()
    sizes = _with(fact.shape, op.axis, op.before + op.overlap + op.delay)
    kept = node.state("past", fact.with_shape(sizes))
    whole = node.add("Concat", kept, node.input(), axis=op.axis)
    node.keep(kept, whole, fact.with_shape(_with(fact.shape, op.axis, sizes[op.axis] + fact.shape[op.axis])))
    return _slice(node, whole, op.axis, 0, -op.delay) if op.delay else whole


@ROWS.row(ONNX_WRITE, PulseMask)
def mask(op: PulseMask, node: Spelling) -> str:
    """The value where the position is outside of the signal"""
    places = _Places(node, op.axis, node.fact().shape[op.axis])
    made = node.input()
    for outside in (places.before(op.begin) if op.begin else "", places.from_on(op.end)):
        made = node.where(outside, node.held(op.value), made, node.fact().datum_type) if outside else made
    return made


@ROWS.row(ONNX_WRITE, PulsePad)
def pad(op: PulsePad, node: Spelling) -> str:
    """What is put around the signal where the position is outside of it"""
    kind = node.fact().datum_type
    places = _Places(node, op.axis, node.fact().shape[op.axis], repeated=op.overlap)
    made = node.input()
    if op.before:
        made = node.where(places.before(op.begin), _outside(op, node, places, behind=False), made, kind)
    if op.after != 0:
        made = node.where(places.from_on(op.end), _outside(op, node, places, behind=True), made, kind)
    return made


def _outside(op: PulsePad, node: Spelling, places: _Places, *, behind: bool) -> str:
    """What stands outside of the signal, in a shape that the pulse's is stretched to."""
    x, axis = node.input(), op.axis
    if isinstance(op.mode, PadConstant):
        return node.held(op.mode.value)
    if isinstance(op.mode, PadEdge):
        return _last(op, node, places) if behind else places.picked(x, places.local(places.number(op.begin)))
    ahead = node.add("Sub", places.all, places.number(op.begin))
    if not behind:
        mirrored = node.add("Abs", ahead)
    else:
        length = node.add("Sub", places.number(op.end), places.number(op.begin + 1))
        period = node.add("Max", node.add("Mul", length, node.ints([2])), node.ints([1]))
        ahead = node.add("Mod", ahead, period)
        mirrored = node.add("Min", ahead, node.add("Sub", period, ahead))
    read = places.local(node.add("Add", mirrored, places.number(op.begin)))
    return node.add("Gather", x, read, axis=axis)


def _last(op: PulsePad, node: Spelling, places: _Places) -> str:
    """The last slice of the signal so far, which is kept."""
    fact = node.fact()
    kept = node.state("last", fact.with_shape(_with(fact.shape, op.axis, 1)))
    end = node.add("Min", places.number(op.end), places.end)
    is_here = node.add("Greater", end, node.add("Max", places.begin, places.number(op.begin)))
    here = places.picked(node.input(), places.local(node.add("Sub", end, node.ints([1]))))
    last = node.where(is_here, here, kept, fact.datum_type)
    node.keep(kept, last)
    return last


@ROWS.row(ONNX_WRITE, PulseConcat)
def concat(op: PulseConcat, node: Spelling) -> str:
    """Each piece in its place of the stream"""
    made, size = node.input(op.stream), node.fact(op.stream).shape[op.axis]
    places = _Places(node, op.axis, size, slot=op.stream)
    sizes = [node.fact(slot).shape[op.axis] for slot in range(len(node.inputs))]
    at = op.begin - sum(sizes[: op.stream], start=0)
    starts: dict[int, Dim] = {}
    for slot in range(op.stream):
        starts[slot], at = at, at + sizes[slot]
    at = op.end
    for slot in range(op.stream + 1, len(sizes)):
        starts[slot], at = at, at + sizes[slot]
    for slot, start in starts.items():
        place = node.add("Sub", places.all, places.number(start))
        zero, count = node.ints([0]), places.number(sizes[slot])
        is_here = node.add("And", node.add("GreaterOrEqual", place, zero), node.add("Less", place, count))
        inside = node.add("Max", node.add("Min", place, node.add("Sub", count, node.ints([1]))), zero)
        piece = node.add("Gather", node.input(slot), inside, axis=op.axis)
        made = node.where(places.along(is_here), piece, made, node.fact().datum_type)
    return made


@ROWS.row(ONNX_WRITE, PulseRange)
def arange(op: PulseRange, node: Spelling) -> str:
    """The positions times the step, and the start"""
    start, step = node.inputs
    kind = node.fact().datum_type
    narrow = is_narrow(kind)
    wide = DatumType.F32 if narrow else kind
    if narrow:
        start, step = node.cast(start, wide), node.cast(step, wide)
    places = _Places(node, 0, op.length, shape=(op.length,))
    steps = places.all if kind in (DatumType.I64, DatumType.TDIM) else node.cast(places.all, wide)
    made = node.add("Add", node.add("Mul", steps, step), start)
    return node.cast(made, kind) if narrow else made


class _Places:
    """The positions of the stream that a pulse has, along one of its axes."""

    def __init__(
        self,
        node: Spelling,
        axis: int,
        size: Dim,
        *,
        repeated: int = 0,
        slot: int = 0,
        shape: tuple[Dim, ...] | None = None,
    ) -> None:
        """``repeated``: how many of the positions were in the pulse before already."""
        self._node, self._axis, self._size = node, axis, size
        self._rank = len(node.fact(slot).shape if shape is None else shape)
        new = size if not repeated else size - repeated
        self.begin = node.position(new if not isinstance(new, int) else max(new, 0))
        self.end = node.add("Add", self.begin, node.sizes([size]))
        zero, one = node.constant(0, DatumType.I64), node.constant(1, DatumType.I64)
        count = (
            node.constant(size, DatumType.I64) if isinstance(size, int) else node.without_axes(node.sizes([size]), [0])
        )
        self.all = node.add("Add", node.add("Range", zero, count, one), self.begin)

    def number(self, size: Dim) -> str:
        """A position that is a size, [1]."""
        return self._node.sizes([size])

    def along(self, name: str) -> str:
        """A tensor of the positions, along the axis."""
        behind = list(range(1, self._rank - self._axis))
        return self._node.with_axes(name, behind)

    def before(self, position: int) -> str:
        """Which are in front of a position."""
        return self.along(self._node.add("Less", self.all, self.number(position)))

    def from_on(self, position: Dim) -> str:
        """Which are a position, or behind it."""
        return self.along(self._node.add("GreaterOrEqual", self.all, self.number(position)))

    def local(self, position: str) -> str:
        """Positions as places of the pulse, the nearest where they are outside of it."""
        node = self._node
        place = node.add("Sub", position, self.begin)
        most = node.add("Sub", node.sizes([self._size]), node.ints([1]))
        return node.add("Max", node.add("Min", place, most), node.ints([0]))

    def picked(self, x: str, place: str) -> str:
        """The slice at one place of the pulse."""
        return self._node.add("Gather", x, place, axis=self._axis)


def _with(shape: Sequence[Dim], axis: int, size: Dim) -> list[Dim]:
    return [size if place == axis else other for place, other in enumerate(shape)]


def _slice(node: Spelling, name: str, axis: int, start: int, end: int) -> str:
    return node.add("Slice", name, node.ints([start]), node.ints([end]), node.ints([axis]))
