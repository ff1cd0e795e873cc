"""How fast the CPU runtime moves data: transpositions, concatenations, pads and gathers, beside NumPy.

Run from the root of the repository: ``python bench/bench_moves.py``. Prints GB/s, read and written together, of this
project on one thread, of NumPy, and of a plain copy of as many bytes by NumPy: medians of rounds in which all three
take turns.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import numpy as np
from stopwatch import seconds
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import of_this_machine

from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import moves_for
from tract_core.ops.concat import TypedConcat
from tract_core.ops.gather import Gather
from tract_core.ops.pad import Pad, PadReflect

_ROUNDS = 15
_LONG_ENOUGH_S = 0.004

TRANSPOSED: dict[str, tuple[tuple[int, ...], tuple[int, ...], str]] = {
    "matrix 1024x1024 f32": ((1024, 1024), (1, 0), "f4"),
    "matrix 1000x3000 f32": ((1000, 3000), (1, 0), "f4"),
    "matrix 1024x1024 u8": ((1024, 1024), (1, 0), "u1"),
    "matrix 1024x1024 i16": ((1024, 1024), (1, 0), "i2"),
    "matrix 1024x1024 f64": ((1024, 1024), (1, 0), "f8"),
    "small matrix 128x64 f32": ((128, 64), (1, 0), "f4"),
    "heads 128x12x64 to 12x128x64": ((1, 128, 12, 64), (0, 2, 1, 3), "f4"),
    "keys 128x12x64 to 12x64x128": ((1, 128, 12, 64), (0, 2, 3, 1), "f4"),
    "channels last 64x56x56 to 56x56x64": ((1, 64, 56, 56), (0, 2, 3, 1), "f4"),
    "channels first 56x56x64 to 64x56x56": ((1, 56, 56, 64), (0, 3, 1, 2), "f4"),
    "image 224x224x3 u8 to 3x224x224": ((1, 224, 224, 3), (0, 3, 1, 2), "u1"),
    "image 224x224x3 f32 to 3x224x224": ((1, 224, 224, 3), (0, 3, 1, 2), "f4"),
}


def _plan(ops: list[TypedOp], *inputs: np.ndarray) -> Callable[[], object]:
    model = TypedModel()
    names = {"f": "f", "i": "i", "u": "u"}
    facts = [parse_typed_fact(",".join([*map(str, x.shape), f"{names[x.dtype.kind]}{x.itemsize * 8}"])) for x in inputs]
    outlets = [model.add_source(f"x{slot}", fact) for slot, fact in enumerate(facts)]
    for place, op in enumerate(ops):
        outlets = model.wire_node(f"op{place}", op, outlets)
    model.set_outputs(outlets)
    state = CpuPlan(model, of_this_machine()[-1]).spawn()
    given = list(inputs)
    out = state.run(given)
    return lambda: state.run(given, out)


def _row(name: str, ours: Callable[[], object], numpy: Callable[[], object], moved: int) -> None:
    source, target = np.ones(moved // 2, np.uint8), np.ones(moved // 2, np.uint8)

    def plain() -> None:
        target[:] = source

    rounds = [[seconds(run, _LONG_ENOUGH_S) for run in (ours, numpy, plain)] for _ in range(_ROUNDS)]
    speeds = [moved / median(one) / 1e9 for one in zip(*rounds, strict=True)]
    ratios = [median(other / mine for mine, *others in rounds for other in [others[k]]) for k in range(2)]
    print(f"{name:38} {speeds[0]:7.1f} {speeds[1]:7.1f} {speeds[2]:7.1f} {ratios[0]:9.2f} {ratios[1]:9.2f}", flush=True)


def main() -> None:
    print(f"{'GB/s':38} {'ours':>7} {'NumPy':>7} {'copy':>7} {'x NumPy':>9} {'x copy':>9}")
    for name, (shape, order, kind) in TRANSPOSED.items():
        x = np.ones(shape, kind)
        target = np.empty([shape[axis] for axis in order], kind)
        view = x.transpose(order)
        _row(
            name, _plan([*moves_for(order)], x), lambda target=target, view=view: np.copyto(target, view), 2 * x.nbytes
        )
    for axis, shape in ((0, (1000, 256)), (1, (1000, 256)), (1, (1000, 8)), (1, (4, 64, 784))):
        parts = [np.ones(shape, "f4") for _ in range(3)]
        joined = np.concatenate(parts, axis)
        name = f"3 parts of {'x'.join(map(str, shape))} on axis {axis}"
        ours = _plan([TypedConcat(axis)], *parts)
        _row(
            name,
            ours,
            lambda parts=parts, joined=joined, axis=axis: np.concatenate(parts, axis, joined),
            2 * joined.nbytes,
        )
    x, pads = np.ones((64, 112, 112), "f4"), ((0, 0), (1, 1), (1, 1))
    padded = np.pad(x, pads, "reflect")
    _row(
        "reflect pad of 64x112x112 by 1",
        _plan([Pad(pads, PadReflect())], x),
        lambda: np.pad(x, pads, "reflect"),
        2 * padded.nbytes,
    )
    for width, count in ((768, 128), (64, 1024), (1, 4096)):
        table, places = np.ones((30000, width), "f4"), np.random.default_rng(0).integers(0, 30000, count)
        moved = 2 * count * width * 4
        _row(
            f"{count} rows of {width}",
            _plan([Gather(0)], table, places),
            lambda t=table, p=places: np.take(t, p, 0),
            moved,
        )


if __name__ == "__main__":
    main()
