"""Random models for property tests, with hypothesis.

A model is grown step by step: each step picks some tensors that are there and wires one operator, or a small group of
them as frontends write them, that fits. Numbers stay moderate, and nothing jumps (no rounding, no comparison of
floats), so that two ways to compute the same differ by rounding only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st

from tract_core.data import DatumType
from tract_core.dims import Dim, evaluate, is_symbolic, product, symbol
from tract_core.model.axes import AxesMapping, letters
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops import binary, elementwise
from tract_core.ops.axis import AddAxis, MoveAxis, Reshape, RmAxis
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cast import Cast
from tract_core.ops.concat import TypedConcat
from tract_core.ops.conv import Conv
from tract_core.ops.cumsum import CumSum
from tract_core.ops.downsample import Downsample
from tract_core.ops.einsum import EinSum
from tract_core.ops.expect import is_one
from tract_core.ops.gather import Gather
from tract_core.ops.identity import Identity
from tract_core.ops.iff import Iff
from tract_core.ops.norm import RmsNorm
from tract_core.ops.pad import Pad, PadEdge
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.slice import Slice
from tract_core.ops.softmax import Softmax
from tract_core.ops.tile import Tile
from tract_core.ops.wiring import wire_binary, wire_one

Draw = Callable[[st.SearchStrategy[Any]], Any]

SIZES: Final = {"B": 2, "S": 3}
"""Values of the symbols that occur in random models."""

MAX_ELEMENTS: Final = 2000
MAX_RANK: Final = 5


@dataclass(frozen=True, slots=True)
class Grown:
    """A random model, and the sizes with which it may be run."""

    model: TypedModel
    sizes: dict[str, int]


@dataclass(slots=True)
class _Garden:
    """A model under construction, and the tensors that may be read."""

    draw: Draw
    model: TypedModel
    pool: list[OutletId]
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"n{self.count}"

    def fact(self, outlet: OutletId) -> TypedFact:
        return self.model.outlet_fact(outlet)

    def choose(self, options: list[Any]) -> Any:
        return self.draw(st.sampled_from(options))

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def any(self, fits: Callable[[TypedFact], bool] | None = None) -> OutletId | None:
        """One of the tensors that fit; the newest ones are likelier."""
        fitting = [outlet for outlet in self.pool if fits is None or fits(self.fact(outlet))]
        if not fitting:
            return None
        return self.choose(fitting[-3:] if self.integer(0, 2) else fitting)

    def wire(self, op: TypedOp, *inputs: OutletId) -> OutletId:
        return wire_one(self.model, self.name(), op, *inputs)

    def constant(self, shape: list[int], kind: DatumType) -> OutletId:
        """Few digits, so that neutral elements and equal constants occur."""
        size = int(np.prod(shape, dtype=int))
        values = self.draw(st.lists(st.sampled_from([-1, 0, 1, 2, 0.5, -0.25]), min_size=size, max_size=size))
        if self.integer(0, 1):
            values = values[:1] * size
        return self.model.add_const(self.name(), np.array(values).reshape(shape).astype(kind.numpy))


def _is_float(fact: TypedFact) -> bool:
    return fact.datum_type is DatumType.F32


def _is_integer(fact: TypedFact) -> bool:
    return fact.datum_type is DatumType.I32


_TAME: Final = [
    elementwise.Tanh(),
    elementwise.Sigmoid(),
    elementwise.Neg(),
    elementwise.Abs(),
    elementwise.Sin(),
    elementwise.LeakyRelu(0.1),
    elementwise.Silu(),
]


def _elementwise(g: _Garden) -> OutletId | None:
    x = g.any(_is_float)
    return None if x is None else g.wire(g.choose(_TAME), x)


def _of_integers(g: _Garden) -> OutletId | None:
    x = g.any(_is_integer)
    return None if x is None else g.wire(g.choose([elementwise.Neg(), elementwise.Abs()]), x)


def _with_constant(g: _Garden) -> OutletId | None:
    x = g.any(lambda fact: _is_float(fact) or _is_integer(fact))
    if x is None:
        return None
    fact = g.fact(x)
    shape = [int(size) if not is_symbolic(size) and g.integer(0, 1) else 1 for size in fact.shape]
    kind = fact.datum_type.storage
    ops = [binary.Add(), binary.Sub(), binary.Mul(), binary.Max(), binary.Min()]
    op = g.choose(ops)
    operands = [x, g.constant(shape, kind)]
    return g.wire(op, *(operands[::-1] if g.integer(0, 3) == 0 else operands))


def _of_two(g: _Garden) -> OutletId | None:
    a = g.any(lambda fact: _is_float(fact) or _is_integer(fact))
    if a is None:
        return None
    wanted = g.fact(a)

    def fits(fact: TypedFact) -> bool:
        pairs = zip(reversed(fact.shape), reversed(wanted.shape), strict=False)
        return fact.datum_type == wanted.datum_type and all(x == y or is_one(x) or is_one(y) for x, y in pairs)

    b = g.any(fits)
    op = g.choose([binary.Add(), binary.Sub(), binary.Mul(), binary.Max()])
    return None if b is None else wire_binary(g.model, g.name(), op, a, b)


def _bounded(g: _Garden) -> OutletId | None:
    """Brings large numbers back."""
    x = g.any(_is_float)
    return None if x is None else g.wire(elementwise.Tanh(), x)


def _axis_op(g: _Garden) -> OutletId | None:
    x = g.any()
    assert x is not None  # there always is some tensor
    shape = g.fact(x).shape
    rank = len(shape)
    options: list[TypedOp] = [AddAxis(g.integer(0, rank))] if rank < MAX_RANK else []
    if rank:
        options.append(MoveAxis(g.integer(0, rank - 1), g.integer(0, rank - 1)))
    options.extend(RmAxis(axis) for axis, size in enumerate(shape) if is_one(size))
    if rank > 1:
        at = g.integer(0, rank - 2)
        pair = tuple(shape[at : at + 2])
        options.append(Reshape(at, pair, (product(pair),)))
    options.extend(
        Reshape(axis, (size,), (2, size // 2))
        for axis, size in enumerate(shape)
        if not is_symbolic(size) and int(size) == 4 and rank < MAX_RANK
    )
    return g.wire(g.choose(options), x)


def _stretch(g: _Garden) -> OutletId | None:
    x = g.any(lambda fact: any(map(is_one, fact.shape)))
    if x is None:
        return None
    shape = [g.choose([1, 3, symbol("B")]) if is_one(size) else size for size in g.fact(x).shape]
    return g.wire(MultiBroadcastTo(tuple(shape)), x)


def _concrete_axis(g: _Garden, x: OutletId, least: int = 2) -> tuple[int, int] | None:
    axes = [(a, int(s)) for a, s in enumerate(g.fact(x).shape) if not is_symbolic(s) and int(s) >= least]
    return g.choose(axes) if axes else None


def _slice(g: _Garden) -> OutletId | None:
    x = g.any(lambda fact: fact.rank > 0)
    if x is None:
        return None
    found = _concrete_axis(g, x)
    if found is None:
        return None
    axis, size = found
    start = g.integer(0, size - 1)
    return g.wire(Slice(axis, start, g.integer(start + 1, size)), x)


def _split(g: _Garden) -> OutletId | None:
    """Several slices of one tensor, as gates are."""
    x = g.any(lambda fact: fact.rank > 0)
    found = None if x is None else _concrete_axis(g, x)
    if x is None or found is None:
        return None
    axis, size = found
    middle = g.integer(1, size - 1)
    g.pool.append(g.wire(Slice(axis, 0, middle), x))
    return g.wire(Slice(axis, middle, size), x)


def _concat(g: _Garden) -> OutletId | None:
    a = g.any(lambda fact: fact.rank > 0)
    if a is None:
        return None
    wanted = g.fact(a)
    axis = g.integer(0, wanted.rank - 1)

    def fits(fact: TypedFact) -> bool:
        same = fact.datum_type == wanted.datum_type and fact.rank == wanted.rank
        return same and all(
            x == y for at, (x, y) in enumerate(zip(fact.shape, wanted.shape, strict=True)) if at != axis
        )

    b = g.any(fits)
    return None if b is None else g.wire(TypedConcat(axis), *[a, b][: g.integer(1, 2)])


def _one_axis(g: _Garden) -> OutletId | None:
    x = g.any(lambda fact: _is_float(fact) and fact.rank > 0)
    if x is None:
        return None
    axis = g.integer(0, g.fact(x).rank - 1)
    reducer = g.choose([Reducer.SUM, Reducer.MAX, Reducer.MEAN_OF_SQUARES])
    ops = [Softmax((axis,)), Reduce((axis,), reducer), CumSum(axis), RmsNorm(axis, 1e-2), Downsample(axis, 2)]
    return g.wire(g.choose(ops), x)


def _grow_axis(g: _Garden) -> OutletId | None:
    x = g.any(lambda fact: fact.rank > 0)
    if x is None:
        return None
    rank = g.fact(x).rank
    axis = g.integer(0, rank - 1)
    amount = g.integer(0, 2)
    if g.integer(0, 1):
        return g.wire(Tile(tuple(amount + 1 if at == axis else 1 for at in range(rank))), x)
    return g.wire(Pad(tuple((amount, 1) if at == axis and amount else (0, 0) for at in range(rank)), PadEdge()), x)


def _gather(g: _Garden) -> OutletId | None:
    x = g.any(lambda fact: fact.rank > 0)
    found = None if x is None else _concrete_axis(g, x, 1)
    if x is None or found is None:
        return None
    axis, size = found
    indices = g.draw(st.lists(st.integers(-size, size - 1), min_size=1, max_size=3))
    value = np.array(indices[0]) if g.integer(0, 1) else np.array(indices)
    return g.wire(Gather(axis), x, g.model.add_const(g.name(), value))


def _matmul(g: _Garden) -> OutletId | None:
    """A product with constant weights along one axis."""
    x = g.any(lambda fact: _is_float(fact) and fact.rank > 0)
    found = None if x is None else _concrete_axis(g, x, 1)
    if x is None or found is None:
        return None
    axis, size = found
    names = "".join(letter for letter, _ in zip(letters(), range(g.fact(x).rank), strict=False))
    to = g.integer(1, 4)
    output = g.choose([names.replace(names[axis], "z"), "z" + names.replace(names[axis], "")])
    mapping = AxesMapping((names, names[axis] + "z"), (output,))
    return g.wire(EinSum(mapping, DatumType.F32), x, g.constant([size, to], DatumType.F32))


def _inner_product(g: _Garden) -> OutletId | None:
    """A product of two tensors over their last axis."""
    a = g.any(lambda fact: _is_float(fact) and 0 < fact.rank < 4)
    b = (
        None
        if a is None
        else g.any(lambda fact: _is_float(fact) and fact.rank > 0 and fact.shape[-1] == g.fact(a).shape[-1])
    )
    if a is None or b is None or g.fact(a).rank + g.fact(b).rank > 2 + MAX_RANK:
        return None
    left, right = "abcd"[: g.fact(a).rank - 1], "efghi"[: g.fact(b).rank - 1]
    return g.wire(EinSum(AxesMapping((left + "k", right + "k"), (left + right,)), DatumType.F32), a, b)


def _image(fact: TypedFact) -> bool:
    return _is_float(fact) and fact.rank in (3, 4) and not is_symbolic(fact.shape[1])


def _conv(g: _Garden) -> OutletId | None:
    x = g.any(_image)
    if x is None:
        return None
    fact = g.fact(x)
    spatial = fact.rank - 2
    kernel, stride, pad = g.choose([(1, 1, 0), (1, 2, 0), (3, 1, 1), (3, 2, 1)])
    channels, to = int(fact.shape[1]), g.integer(1, 3)
    ends = (pad,) * spatial
    pool = PoolSpec(DataFormat.NCHW, (kernel,) * spatial, Explicit(ends, ends), (), (stride,) * spatial, channels, to)
    weights = g.constant([to, channels, *[kernel] * spatial], DatumType.F32)
    return g.wire(Conv(pool), x, weights, g.constant([to] if g.integer(0, 1) else [], DatumType.F32))


def _pool(g: _Garden) -> OutletId | None:
    x = g.any(_image)
    if x is None:
        return None
    spatial = g.fact(x).rank - 2
    spec = PoolSpec(DataFormat.NCHW, (3,) * spatial, Explicit((1,) * spatial, (1,) * spatial))
    return g.wire(g.choose([MaxPool(spec), SumPool(spec)]), x)


def _cast(g: _Garden) -> OutletId | None:
    x = g.any(_is_integer)
    if x is None:
        return None
    return g.wire(Cast(DatumType.F32), g.wire(Cast(DatumType.I64), x) if g.integer(0, 1) else x)


def _choice(g: _Garden) -> OutletId | None:
    x = g.any(_is_integer)
    y = None if x is None else g.any(lambda fact: _is_integer(fact) and fact.rank == g.fact(x).rank)
    if x is None or y is None:
        return None
    shapes = zip(g.fact(x).shape, g.fact(y).shape, strict=True)
    if not all(a == b or is_one(a) or is_one(b) for a, b in shapes):
        return None
    return g.wire(Iff(), g.wire(binary.Lt(), x, y), x, y)


def _gelu(g: _Garden) -> OutletId | None:
    """As PyTorch exports it."""
    x = g.any(_is_float)
    if x is None:
        return None

    def number(value: float) -> OutletId:
        return g.model.add_const(g.name(), np.array(value, np.float32))

    inner = wire_binary(g.model, g.name(), binary.Div(), x, number(2**0.5))
    gate = wire_binary(g.model, g.name(), binary.Add(), g.wire(elementwise.Erf(), inner), number(1))
    return wire_binary(
        g.model, g.name(), binary.Mul(), wire_binary(g.model, g.name(), binary.Mul(), x, gate), number(0.5)
    )


def _same(g: _Garden) -> OutletId | None:
    x = g.any()
    return None if x is None else g.wire(Identity(), x)


def _again(g: _Garden) -> OutletId | None:
    """The last operator once more."""
    node = g.model.nodes[-1]
    if not node.inputs or len(node.outputs) != 1:
        return None
    return g.wire(node.op, *node.inputs)


_STEPS: Final[list[Callable[[_Garden], OutletId | None]]] = [
    _elementwise,
    _of_integers,
    _with_constant,
    _with_constant,
    _with_constant,
    _of_two,
    _bounded,
    _axis_op,
    _axis_op,
    _axis_op,
    _axis_op,
    _stretch,
    _slice,
    _split,
    _concat,
    _one_axis,
    _grow_axis,
    _gather,
    _matmul,
    _inner_product,
    _conv,
    _pool,
    _cast,
    _choice,
    _gelu,
    _same,
    _again,
]


@st.composite
def typed_models(draw: Draw, *, steps: int = 12) -> Grown:
    """Models of up to ``steps`` steps, with one to three inputs and outputs, and fixed or symbolic sizes."""
    model = TypedModel()
    garden = _Garden(draw, model, [])
    symbolic = draw(st.booleans())
    for number in range(garden.integer(1, 3)):
        shape: list[Dim] = garden.draw(st.lists(st.sampled_from([1, 2, 3, 4, *_symbols(symbolic)]), max_size=4))
        kind = garden.choose([DatumType.F32, DatumType.F32, DatumType.I32])
        garden.pool.append(model.add_source(f"input{number}", TypedFact.of(kind, shape)))
    if symbolic:  # both symbols get their values from an input, whatever the others look like
        anchor = TypedFact.of(DatumType.F32, (symbol("B"), symbol("S"), 4))
        garden.pool.append(model.add_source("anchor", anchor))
    for name in SIZES if symbolic else ():
        model.symbols.add(name)
    for _ in range(garden.integer(steps // 2, steps)):
        _step(garden, garden.choose(_STEPS), symbolic=symbolic)
    last = garden.pool[-1]
    others = draw(st.lists(st.sampled_from(garden.pool), max_size=2))
    model.set_outputs(dict.fromkeys([last, *others]))
    return Grown(model, dict(SIZES) if symbolic else {})


def _symbols(symbolic: bool) -> list[Dim]:
    return [symbol("B"), symbol("S"), 2 * symbol("S")] if symbolic else []


def _step(garden: _Garden, step: Callable[[_Garden], OutletId | None], *, symbolic: bool) -> None:
    found = step(garden)
    if found is None:
        return
    fact = garden.fact(found)
    shape_symbols = fact.shape.symbols()
    if fact.rank > MAX_RANK or (shape_symbols and not symbolic):
        return
    if evaluate(fact.shape.volume, SIZES) <= MAX_ELEMENTS:
        garden.pool.append(found)
