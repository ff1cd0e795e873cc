"""Take ranges of axes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from tract_core.dims import Dim, exact_div, is_symbolic
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.axis import RmAxis
from tract_core.ops.downsample import Downsample
from tract_core.ops.slice import DynSlice, Slice, wire_dyn_slice
from tract_core.ops.wiring import require_shape
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, STANDARD, fragments, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(
    ROWS,
    STANDARD,
    "slice<?>(input: tensor<?>, axes: integer[], begin: integer[], end: integer[], stride: integer[] = [])"
    " -> (output: tensor<?>)",
)
def read_slice(call: Call) -> OutletId:
    """Every ``stride``-th element from ``begin`` up to and without ``end``, axis by axis.

    Negative numbers count from the end, numbers beyond the ends stop there; with a stride of 1, an ``end`` of 0 is the
    end of the axis. What has symbols in it is a place as it is, unless it cannot be positive.
    """
    x = call.input("input")
    axes = call.axes("axes", call.rank(x))
    steps = call.integers("stride") or (1,) * len(axes)
    if call.computed("begin") is not None or call.computed("end") is not None:
        return _between_computed(call, x, axes, steps)
    begins, ends = call.dims("begin"), call.dims("end")
    if not len(axes) == len(begins) == len(ends) == len(steps):
        counts = f"{len(axes)}, {len(begins)}, {len(ends)} and {len(steps)}"
        raise CorruptModel(f"slice: axes, begin, end and stride have {counts} elements, wanted as many of each")
    for axis, begin, end, step in zip(axes, begins, ends, steps, strict=True):
        first, last = _range(call, call.shape(x)[axis], begin, end, step)
        if step == 1 or (first, last) != (0, call.shape(x)[axis]):
            x = call.op(Slice(axis, first, last), x)
        if step != 1:
            x = call.op(Downsample(axis, step), x)
    return x


def _between_computed(call: Call, x: OutletId, axes: Sequence[int], steps: Sequence[int]) -> OutletId:
    """The same where a run decides: bounds that are negative count from the end, those outside stop at the ends."""
    bounds = [_each(call, "begin", len(axes)), _each(call, "end", len(axes))]
    for axis, start, end, step in zip(axes, *bounds, steps, strict=True):
        x = wire_dyn_slice(call.model, call.unique("slice"), x, axis, start=start, end=end, step=step)
    return x


def _each(call: Call, name: str, count: int) -> list[OutletId]:
    """The bounds of an argument, each of rank 0."""
    computed = call.computed(name)
    x = call.constant_sizes(call.dims(name)) if computed is None else computed
    if call.rank(x) != 1 or call.shape(x)[0] != count:
        raise CorruptModel(f"slice: {name} is {call.fact(x)}, wanted {count} elements, as many as there are axes")
    return [call.op(RmAxis(0), call.op(Slice(0, place, place + 1), x)) for place in range(count)]


def _range(call: Call, size: Dim, begin: Dim, end: Dim, step: int) -> tuple[Dim, Dim]:
    """Which part of an axis the steps go over, forwards or backwards."""
    if step == 0:
        raise CorruptModel("slice: the stride is 0")
    first = _place(call, begin, size)
    last = size if step == 1 and end == 0 else _place(call, end, size)
    if step < 0:
        first, last = last + 1, first + 1
    first, last = _inside(first, size), _inside(last, size)
    if isinstance(first, int) and isinstance(last, int) and first > last:
        raise CorruptModel(f"slice: {begin} to {end} by {step} is no range of an axis of size {size}")
    return first, last


def _place(call: Call, bound: Dim, size: Dim) -> Dim:
    """A bound counted from the front."""
    from_end = bound < 0 if isinstance(bound, int) else call.model.known.less_or_equal(bound, 0)
    return bound + size if from_end else bound


def _inside(place: Dim, size: Dim) -> Dim:
    """The nearest place on the axis, as far as numbers tell."""
    if not isinstance(place, int):
        return place
    return min(max(place, 0), size) if isinstance(size, int) else max(place, 0)


@reads(ROWS, STANDARD, "split<?>(value: tensor<?>, axis: integer, ratios: integer[]) -> (values: tensor<?>[])")
def read_split(call: Call) -> Sequence[OutletId]:
    """Parts of an axis whose sizes are to each other as ``ratios`` says.

    Raises CorruptModel for ratios that are none, FactError for a size that cannot be divided so.
    """
    x, ratios = call.input("value"), call.integers("ratios")
    axis = call.axis("axis", call.rank(x))
    if not ratios or min(ratios) < 1:
        raise CorruptModel(f"split: ratios are {list(ratios)}, wanted positive numbers")
    shape, total = call.shape(x), sum(ratios)
    unit = exact_div(shape[axis], total)
    if unit is None:
        unit = shape[axis] // total
        wanted = (*shape[:axis], unit * total, *shape[axis + 1 :])
        require_shape(call.model, call.node, "value", x, wanted)
    ends = list(accumulate(ratios))
    return [call.op(Slice(axis, unit * (end - ratio), unit * end), x) for ratio, end in zip(ratios, ends, strict=True)]


@reads(ROWS, STANDARD, "unstack<?>(value: tensor<?>, axis: integer) -> (values: tensor<?>[])")
def read_unstack(call: Call) -> Sequence[OutletId]:
    """The positions of an axis, each without it. Raises CorruptModel where their number is not known."""
    x = call.input("value")
    axis = call.axis("axis", call.rank(x))
    count = call.shape(x)[axis]
    if is_symbolic(count):
        raise CorruptModel(f"unstack: axis {axis} has size {count}, wanted one that is a number")
    return [call.op(RmAxis(axis), call.op(Slice(axis, place, place + 1), x)) for place in range(count)]


# A place on an axis, counted from the end where negative. torch-to-nnef calls it, and leaves it out of some files.
fragments(
    ROWS,
    CORE,
    """
fragment within_bound_index(
    index: tensor<scalar>, input_axis_size: tensor<scalar>
) -> (bounded_index: tensor<scalar>)
{
    from_start = select(index < 0, index + input_axis_size, index);
    bounded_index = tract_core_cast(min(max(from_start, 0), input_axis_size), to = 'tdim');
}
""",
)


@ROWS.row(NNEF_WRITE, Slice)
def write_slice(op: Slice, node: Spelling) -> Invocation | None:
    """By its range. Nothing at all is written as a range up to the start, counted from the end, as 0 is the end."""
    end = op.end
    if not is_symbolic(end) and end == 0:
        end = -node.input_fact(0).shape[op.axis]
    return node.invoke("slice", node.input(0), axes=[op.axis], begin=[op.start], end=[end])


@reads(
    ROWS,
    CORE,
    "tract_core_dyn_slice(input: tensor<?>, start: tensor<integer>, end: tensor<integer>, len: integer,"
    " axis: integer) -> (output: tensor<?>)",
)
def read_dyn_slice(call: Call) -> OutletId:
    """Between computed bounds; ``len`` says how many elements there will be."""
    start, end = (call.without_axes(call.whole(bound)) for bound in ("start", "end"))
    x = call.input("input")
    return call.op(DynSlice(call.axis("axis", call.rank(x)), call.dim("len")), x, start, end)


@ROWS.row(NNEF_WRITE, DynSlice)
def write_dyn_slice(op: DynSlice, node: Spelling) -> Invocation | None:
    """With the length that it announces."""
    return node.invoke("tract_core_dyn_slice", *node.inputs, axis=op.axis, len=op.length, registry=CORE)
