"""Random chains of what changes sizes, each a program that is wired with symbols, and again with numbers for these."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np

from tract_core.data import Constant
from tract_core.dims import Dim
from tract_core.errors import TractError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import Reshape, RmAxis
from tract_core.ops.binary import Add, Mul
from tract_core.ops.concat import TypedConcat
from tract_core.ops.conv import Conv
from tract_core.ops.deconv import Deconv
from tract_core.ops.downsample import Downsample
from tract_core.ops.elementwise import Tanh
from tract_core.ops.pad import Pad, PadConstant, PadEdge, PadMode, PadReflect
from tract_core.ops.pool import MaxPool
from tract_core.ops.pool_spec import DataFormat, Explicit, Padding, PoolSpec, SameLower, SameUpper, Valid
from tract_core.ops.resize import Resize, Scales
from tract_core.ops.slice import Slice, wire_slice
from tract_core.ops.wiring import wire_one

AXIS = 2
CHANNELS = 2

Step = Callable[[TypedModel, str, list[OutletId]], OutletId]
"""One tensor more, from those that there are."""


def conv(draw: random.Random) -> Step:
    spec, deconvolved, which = _window(draw), draw.random() < 0.2, draw.random()
    kernel = spec.kernel_shape[0]

    def step(model: TypedModel, name: str, pool: list[OutletId]) -> OutletId:
        weights = model.add_const(f"{name}.w", np.ones((CHANNELS, CHANNELS, kernel), np.float32))
        bias = model.add_const(f"{name}.b", np.ones(CHANNELS, np.float32))
        op = Deconv(spec, adjustments=(0,)) if deconvolved else Conv(spec)
        return wire_one(model, name, op, _pick(pool, which), weights, bias)

    return step


def pool(draw: random.Random) -> Step:
    spec, which = _window(draw), draw.random()
    return lambda model, name, pool: wire_one(model, name, MaxPool(spec), _pick(pool, which))


def crop(draw: random.Random) -> Step:
    which, step = draw.random(), draw.choice([1, 1, 1, 2, 3, -1])
    start = draw.choice([None, *range(6), -4, -3, -2, -1])
    end = draw.choice([None, None, None, 3, 5, 9, -4, -3, -2, -1])
    return lambda model, name, pool: wire_slice(model, name, _pick(pool, which), AXIS, start=start, end=end, step=step)


def strict_crop(draw: random.Random) -> Step:
    """A range that is a mistake where it is not inside."""
    which, before, behind = draw.random(), draw.randint(0, 3), draw.randint(0, 3)

    def step(model: TypedModel, name: str, pool: list[OutletId]) -> OutletId:
        x = _pick(pool, which)
        return wire_one(model, name, Slice(AXIS, before, _size(model, x) - behind), x)

    return step


def centre_crop(draw: random.Random) -> Step:
    """As much from the middle of one tensor as another one has, as U-Nets do it."""
    one, other = draw.random(), draw.random()

    def step(model: TypedModel, name: str, pool: list[OutletId]) -> OutletId:
        x, like = _pick(pool, one), _pick(pool, other)
        size, wanted = _size(model, x), _size(model, like)
        before = (size - wanted) // 2
        return wire_slice(model, name, x, AXIS, start=before, end=before + wanted)

    return step


def stride(draw: random.Random) -> Step:
    which, op = draw.random(), Downsample(AXIS, draw.choice([2, 2, 3, 4]), draw.randint(0, 1))
    return lambda model, name, pool: wire_one(model, name, op, _pick(pool, which))


def pad(draw: random.Random) -> Step:
    modes: list[PadMode] = [PadConstant(Constant(np.float32(0))), PadEdge(), PadReflect()]
    op = Pad(((0, 0), (0, 0), (draw.randint(0, 4), draw.randint(0, 4))), draw.choice(modes))
    which = draw.random()
    return lambda model, name, pool: wire_one(model, name, op, _pick(pool, which))


def resize(draw: random.Random) -> Step:
    which, factor = draw.random(), draw.choice([2.0, 2.0, 3.0, 0.5, 1.5, 4.0])
    op = Resize((AXIS,), Scales((factor,)))
    return lambda model, name, pool: wire_one(model, name, op, _pick(pool, which))


def reshape(draw: random.Random) -> Step:
    """Blocks of which one element each is taken, or which are laid one after the other again."""
    which, block, together = draw.random(), draw.choice([2, 2, 3, 4]), draw.random() < 0.5

    def step(model: TypedModel, name: str, pool: list[OutletId]) -> OutletId:
        x = _pick(pool, which)
        size = _size(model, x)
        cut = (size // block, block)
        blocks = wire_one(model, f"{name}.blocks", Reshape(AXIS, (size,), cut), x)
        if together:
            return wire_one(model, name, Reshape(AXIS, cut, (cut[0] * block,)), blocks)
        one = wire_slice(model, f"{name}.one", blocks, AXIS + 1, start=0, end=1)
        return wire_one(model, name, RmAxis(AXIS + 1), one)

    return step


def concat(draw: random.Random) -> Step:
    one, other = draw.random(), draw.random()
    return lambda model, name, pool: wire_one(model, name, TypedConcat(AXIS), _pick(pool, one), _pick(pool, other))


def joined(draw: random.Random) -> Step:
    """The sum or the product of two tensors, of which one may be stretched."""
    one, other, op = draw.random(), draw.random(), draw.choice([Add(), Add(), Mul()])
    return lambda model, name, pool: wire_one(model, name, op, _pick(pool, one), _pick(pool, other))


def residual(draw: random.Random) -> Step:
    """A valid convolution, with what it leaves of its input added, cut first or last, before or behind."""
    which, kernel, cut_first, swapped = draw.random(), draw.randint(2, 4), draw.random() < 0.5, draw.random() < 0.5
    behind = draw.randint(0, kernel - 1)

    def step(model: TypedModel, name: str, pool: list[OutletId]) -> OutletId:
        x = _pick(pool, which)

        def cut() -> OutletId:
            end = -behind if behind else None
            return wire_slice(model, f"{name}.cut", x, AXIS, start=kernel - 1 - behind, end=end)

        def convolved() -> OutletId:
            weights = model.add_const(f"{name}.w", np.ones((CHANNELS, CHANNELS, kernel), np.float32))
            bias = model.add_const(f"{name}.b", np.ones(CHANNELS, np.float32))
            spec = PoolSpec(DataFormat.NCHW, (kernel,), Valid(), (1,), (1,))
            return wire_one(model, f"{name}.conv", Conv(spec), x, weights, bias)

        parts = [cut(), convolved()] if cut_first else [convolved(), cut()]
        return wire_one(model, name, Add(), *(reversed(parts) if swapped else parts))

    return step


def element_wise(draw: random.Random) -> Step:
    which = draw.random()
    return lambda model, name, pool: wire_one(model, name, Tanh(), _pick(pool, which))


STEPS: list[Callable[[random.Random], Step]] = [
    conv,
    conv,
    pool,
    crop,
    strict_crop,
    centre_crop,
    stride,
    pad,
    resize,
    reshape,
    concat,
    joined,
    joined,
    residual,
    residual,
    element_wise,
]


def program(seed: int, length: int) -> list[Step]:
    """So many steps, each of which may use whatever the ones before it made, the latest most often."""
    draw = random.Random(seed)
    kinds = draw.sample(STEPS, k=draw.randint(2, len(STEPS)))
    return [draw.choice(kinds)(draw) for _ in range(length)]


def wired(steps: Sequence[Step], sizes: Sequence[Dim]) -> tuple[TypedModel, list[OutletId | None]]:
    """A model with inputs of these lengths, and what each step gave, ``None`` for one that is refused."""
    model = TypedModel()
    given = [
        model.add_source(f"x{number}", parse_typed_fact(f"1,{CHANNELS},{size},f32", model.symbols))
        for number, size in enumerate(sizes)
    ]
    pool, made = list(given), list[OutletId | None]()
    for number, step in enumerate(steps):
        nodes, conditions = len(model.nodes), len(model.conditions)
        try:
            found = step(model, f"step{number}", pool)
        except TractError:
            model.rewind(nodes)
            model.conditions.rewind(conditions)
            made.append(None)
        else:
            pool.append(found)
            made.append(found)
    return model, made


def _window(draw: random.Random) -> PoolSpec:
    kernel, dilation, stride = draw.randint(1, 4), draw.randint(1, 3), draw.choice([1, 1, 2, 3])
    paddings: list[Padding] = [Valid(), Valid(), Explicit((draw.randint(0, 3),), (draw.randint(0, 3),))]
    padding = draw.choice([*paddings, SameUpper(), SameLower()])
    return PoolSpec(DataFormat.NCHW, (kernel,), padding, (dilation,), (stride,))


def _pick(pool: Sequence[OutletId], which: float) -> OutletId:
    """One of the last few tensors, mostly the last one."""
    return pool[-1] if which < 0.6 else pool[-1 - int((which - 0.6) / 0.4 * min(len(pool), 6))]


def _size(model: TypedModel, outlet: OutletId) -> Dim:
    return model.outlet_fact(outlet).shape[AXIS]
