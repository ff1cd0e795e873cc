"""What an operator gives is what it announces, whatever the element type, also without axes and without elements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import pytest

from tract_core.data import Constant, DatumType
from tract_core.errors import FactError, RunError
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops import binary, elementwise
from tract_core.ops.cast import Cast
from tract_core.ops.compress import Compress
from tract_core.ops.concat import TypedConcat
from tract_core.ops.cumsum import CumSum
from tract_core.ops.downsample import Downsample
from tract_core.ops.gather import Gather, GatherElements, GatherNd
from tract_core.ops.iff import Iff
from tract_core.ops.norm import RmsNorm
from tract_core.ops.pad import DynPad, Pad, PadConstant, PadEdge, PadReflect, PadWrap
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.scatter import ScatterElements
from tract_core.ops.slice import Slice
from tract_core.ops.softmax import LogSoftmax, Softmax
from tract_core.ops.tile import Tile
from tract_core.ops.topk import Topk
from tract_core.ops.trilu import Trilu
from tract_core.runtime.plan import TypedSimplePlan

Array = np.ndarray[Any, Any]
Trial = tuple[TypedOp, list[Array]]

UNHELD: Final = {"BLOB", "TDIM", "COMPLEX_I16", "COMPLEX_I32", "COMPLEX_I64", "COMPLEX_F16"}
KINDS: Final = [kind for kind in DatumType if kind.name not in UNHELD]
SHAPES: Final = [(), (0,), (3,), (2, 0, 3), (2, 3, 3)]


def elements(kind: DatumType, shape: tuple[int, ...]) -> Array:
    count = int(np.prod(shape))
    if kind is DatumType.STRING:
        texts: Array = np.empty(count, object)
        texts[:] = [str(number) for number in range(count)]
        return texts.reshape(shape)
    return (np.arange(count) % 2).astype(np.float32).reshape(shape).astype(kind.numpy)


def leaves(base: type) -> Iterator[type]:
    for kind in base.__subclasses__():
        yield from leaves(kind) if kind.__subclasses__() else (kind,)


def element_by_element(x: Array) -> Iterator[Trial]:
    fields = {elementwise.PowConst: (2.5,), elementwise.LeakyRelu: (0.1,)}
    for kind in leaves(elementwise.ElementWise):
        if kind.__module__ == elementwise.__name__:
            yield kind(*fields.get(kind, ())), [x]
    for kind in leaves(binary.Binary):
        if kind.__module__ == binary.__name__:
            yield kind(), [x, x]
    yield Iff(), [np.ones(x.shape, np.bool_), x, x]
    yield from ((Cast(to), [x]) for to in KINDS)


def of_any_rank(x: Array) -> Iterator[Trial]:
    rank = x.ndim
    yield from ((Reduce(axes, how), [x]) for how in Reducer for axes in {(), tuple(range(rank))})
    yield Tile((2,) * rank), [x]
    yield Trilu(upper=True), [x, np.array(0)]
    pads = np.array([1] * rank + [2] * rank, np.int64)
    value = PadConstant(Constant(elements(DatumType.from_numpy(x.dtype), ())))
    for mode in (value, PadReflect(), PadEdge(), PadWrap()):
        yield Pad(((1, 2),) * rank, mode), [x]
        yield DynPad(mode, tuple(size + 3 for size in x.shape)), [x, pads]


def along(x: Array, axis: int) -> Iterator[Trial]:
    size = x.shape[axis]
    places = np.zeros(x.shape, np.int64)
    yield from ((Reduce((axis,), how), [x]) for how in Reducer)
    yield from ((op(axis, up), [x]) for op in (CumSum,) for up in (False, True))
    yield from ((op((axis,)), [x]) for op in (Softmax, LogSoftmax))
    yield from ((Topk(axis, up, size), [x, np.array(size)]) for up in (False, True))
    yield from ((Downsample(axis, stride), [x]) for stride in (-1, 2))
    yield from ((Gather(axis), [x, np.zeros(shape, np.int64)]) for shape in ((), (0,), (2, 1)))
    yield from ((ScatterElements(axis, how), [x, places, x]) for how in ("none", "add", "mul", "min", "max"))
    yield GatherElements(axis), [x, places]
    yield GatherNd(0), [x, np.zeros((x.ndim,), np.int64)]
    yield TypedConcat(axis), [x, x]
    yield Compress(axis, 0), [x, np.zeros(size, np.bool_)]
    yield Slice(axis, 0, min(1, size)), [x]
    yield RmsNorm(axis, 1e-5), [x]


def check(op: TypedOp, arrays: list[Array]) -> None:
    model = TypedModel()
    facts = [TypedFact.of(DatumType.from_numpy(array.dtype), array.shape) for array in arrays]
    sources = [model.add_source(f"input{slot}", fact) for slot, fact in enumerate(facts)]
    try:
        outlets = model.wire_node("op", op, sources)
    except FactError:
        return  # refused with a reason, which the families' own tests read
    model.set_outputs(outlets)
    for array in arrays:
        array.flags.writeable = False
    for found, outlet in zip(TypedSimplePlan(model).run(arrays), outlets, strict=True):
        fact = model.outlet_fact(outlet)
        assert isinstance(found, np.ndarray), op
        assert (found.dtype, found.shape) == (fact.datum_type.numpy, tuple(fact.shape)), op


NOTHING_THERE: Final = ("attempt to get arg", "there is nothing to repeat", "is outside axis")
"""Of nothing, no place can be told, and no element can be repeated or picked."""


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("trials", [element_by_element, of_any_rank, along], ids=lambda trials: trials.__name__)
def test_outputs_are_what_was_announced(trials: Callable[..., Iterator[Trial]], kind: DatumType, shape: Any) -> None:
    x = elements(kind, shape)
    axes = [(axis,) for axis in range(x.ndim)] if trials is along else [()]
    for op, arrays in (trial for axis in axes for trial in trials(x, *axis)):
        try:
            check(op, arrays)
        except RunError as error:
            if x.size or not any(text in str(error) for text in NOTHING_THERE):
                raise
