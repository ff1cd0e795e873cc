"""Kernels of the runtime, each in a small model: what faults are planted in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
from planted import Subject
from tract_transformers.ops.paged_attention import PagedAttention

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import MoveAxis
from tract_core.ops.binary import Add, Mul
from tract_core.ops.conv import Conv
from tract_core.ops.cumsum import CumSum
from tract_core.ops.deconv import Deconv
from tract_core.ops.einsum import EinSum
from tract_core.ops.fft import Fft
from tract_core.ops.gather import Gather
from tract_core.ops.grid_sample import GridSample
from tract_core.ops.indexed_matmul import IndexedMatMul
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.lrn import Lrn
from tract_core.ops.norm import RmsNorm
from tract_core.ops.pad import Pad, PadReflect
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.resize import Resize, Sampling, Sizes
from tract_core.ops.scatter import ScatterElements
from tract_core.ops.softmax import Softmax
from tract_core.ops.topk import Topk
from tract_core.ops.trilu import Trilu

_ROUNDED: Final = 1e-5
_HALVES: Final = 4e-3


def _whole(shape: Sequence[int], kind: str = "f4", seed: int = 0) -> np.ndarray:
    """Few whole numbers, so that no sum is rounded."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(kind)


def _normal(shape: Sequence[int], kind: str = "f4", seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(kind)


def _fact(array: np.ndarray) -> str:
    return ",".join([*map(str, array.shape), DatumType.from_numpy(array.dtype).short])


def _node(
    op: TypedOp, *inputs: np.ndarray, constants: Mapping[int, np.ndarray] | None = None
) -> Callable[[], TypedModel]:
    """A model of one operator. ``constants``: inputs that are part of it, by their numbers."""

    def make() -> TypedModel:
        model, known, given = TypedModel(), constants or {}, iter(inputs)
        outlets = [
            model.add_const(f"c{slot}", known[slot])
            if slot in known
            else model.add_source(f"x{slot}", parse_typed_fact(_fact(next(given)), model.symbols))
            for slot in range(len(inputs) + len(known))
        ]
        model.set_outputs(model.wire_node("y", op, outlets))
        return model

    return make


def _of(kernel: str, op: TypedOp, *inputs: np.ndarray, tolerance: float = 0.0, **options) -> Subject:
    return Subject(kernel, _node(op, *inputs, **options), inputs, tolerance)


def _turned(*inputs: np.ndarray) -> Callable[[], TypedModel]:
    """The sum of a matrix and of another one that lies the other way round."""

    def make() -> TypedModel:
        model = TypedModel()
        x, y = (
            model.add_source(name, parse_typed_fact(_fact(one), model.symbols))
            for name, one in zip("xy", inputs, strict=True)
        )
        (y,) = model.wire_node("turned", MoveAxis(0, 1), [y])
        model.set_outputs(model.wire_node("sum", Add(), [x, y]))
        return model

    return make


def _attention(*inputs: np.ndarray) -> Callable[[], TypedModel]:
    """Queries, keys, values and a mask: [batch, rows, heads, depth], the mask [batch, heads, queries, keys]."""

    def make() -> TypedModel:
        model, acc = TypedModel(), DatumType.from_numpy(inputs[0].dtype)
        q, k, v, mask = (
            model.add_source(f"x{n}", parse_typed_fact(_fact(one), model.symbols)) for n, one in enumerate(inputs)
        )
        (scores,) = model.wire_node("scores", EinSum(AxesMapping.parse("bqhd,bkhd->bhqk"), acc), [q, k])
        scale = model.add_const("scale", np.full((1, 1, 1, 1), 0.5, acc.numpy))
        (scores,) = model.wire_node("scaled", Mul(), [scores, scale])
        (scores,) = model.wire_node("masked", Add(), [scores, mask])
        (shares,) = model.wire_node("shares", Softmax((3,)), [scores])
        model.set_outputs(model.wire_node("mixed", EinSum(AxesMapping.parse("bhqk,bkhd->bqhd"), acc), [shares, v]))
        return model

    return make


def _attended(kernel: str, sizes: Sequence[int], kind: str, tolerance: float) -> Subject:
    """``sizes``: how many queries and keys there are, and their depth."""
    queries, keys, depth = sizes
    shapes = [(1, queries, 2, depth), (1, keys, 2, depth), (1, keys, 2, depth), (1, 2, queries, keys)]
    inputs = tuple(_normal(shape, kind, seed) for seed, shape in enumerate(shapes))
    return Subject(kernel, _attention(*inputs), inputs, tolerance)


def _product(left: Sequence[int], right: Sequence[int], kind: str = "f4", term: str = "ij,jk->ik") -> tuple:
    return (
        EinSum(AxesMapping.parse(term), DatumType.from_numpy(np.dtype(kind))),
        _whole(left, kind),
        _whole(right, kind, 1),
    )


def _bytes(left: Sequence[int], right: Sequence[int]) -> tuple:
    """A product of bytes of both kinds, which lie along what is summed."""
    rng = np.random.default_rng(2)
    first, second = rng.integers(0, 256, left, "u1"), rng.integers(-128, 128, right[::-1], "i1")
    return EinSum(AxesMapping.parse("ij,kj->ik"), DatumType.I32), first, second


def _paged(kernel: str, op: PagedAttention, tolerance: float = _ROUNDED) -> Subject:
    """One turn: four tokens of a text far behind its begin, and three at the begin of another one."""
    new = [_normal(shape, seed=seed) for seed, shape in enumerate([(7, 2, 3, 13), (7, 2, 13), (7, 2, 37)])]
    numbers = [
        [66, 67, 68, 69, 0, 1, 2],
        [0, 4, 7],
        [[7, 2, 5, 1, 3], [6, 0, 0, 0, 0]],
        [[4, 7]],
        [0] * 8,
    ]
    return _of(kernel, op, *new, *(np.array(one, "i8") for one in numbers), tolerance=tolerance)


_PADDED = Explicit((1, 1), (1, 1))
_IMAGE = _whole((1, 5, 9, 11))
_PAGED = PagedAttention(0.3, cap=5.0, page=16)
_EACH = PoolSpec(DataFormat.NCHW, (3, 3), _PADDED, (1, 1), (2, 1), 12, 12)
_CONV = PoolSpec(DataFormat.NCHW, (3, 3), _PADDED, (1, 1), (1, 1), 8, 12)
_POOL = PoolSpec(DataFormat.NCHW, (3, 2), _PADDED, (1, 1), (2, 1))
_SHUFFLED = np.random.default_rng(3).permuted(np.tile(np.arange(700, dtype="f4"), (3, 1)), axis=1)
_INDICES = np.random.default_rng(4).permutation(40)[:33].astype("i8").reshape(3, 11)
_PLACES = np.random.default_rng(5).integers(0, 6, (40, 11)).astype("i8")

SUBJECTS: Final[Mapping[str, Subject]] = {
    "turned": Subject(
        "turned", _turned(_normal((45, 67)), _normal((67, 45), seed=1)), (_normal((45, 67)), _normal((67, 45), seed=1))
    ),
    "softmax": _of("rows", Softmax((1,)), _normal((5, 300)), tolerance=_ROUNDED),
    "norm": _of("rows", RmsNorm(1, 1e-5), _normal((9, 96), "f2"), tolerance=_HALVES),
    "sum across": _of("rows", Reduce((0,), Reducer.SUM), _whole((50, 37))),
    "argmax": _of("rows", Reduce((1,), Reducer.ARG_MAX_FIRST), _SHUFFLED),
    "sum in pieces": _of("rows_pieces", Reduce((0,), Reducer.SUM), _whole((100000,))),
    "pieces merged": _of("rows_merged", Reduce((0,), Reducer.SUM), _whole((100000,))),
    "tile": _of("tile", *_product((33, 70), (70, 45))),
    "tile, turned": _of("tile", *_product((33, 72), (44, 72), term="ij,kj->ik")),
    "windows": _of(
        "tile",
        Conv(_CONV),
        _whole((1, 8, 9, 7)),
        constants={1: _whole((12, 8, 3, 3), seed=1), 2: _whole((12,), seed=2)},
    ),
    "merge": _of("merge", *_product((20, 600), (600, 24))),
    "vector": _of("vector", *_product((2, 131), (131, 33))),
    "vector, turned": _of("vector", *_product((2, 136), (33, 136), term="ij,kj->ik")),
    "dot": _of("dot", *_product((20, 9), (9, 17), "i1")),
    "mma": _of("mma", *_product((40, 80), (80, 72), "f2"), tolerance=_HALVES),
    "attention": _attended("attention", (19, 70, 20), "f4", _ROUNDED),
    "mma of bytes": _of("mma", *_bytes((40, 80), (80, 72))),
    "attention_mma": _attended("attention_mma", (35, 70, 16), "f2", _HALVES),
    "depthwise": _of(
        "depthwise",
        Conv(_EACH, group=12),
        _whole((4, 12, 9, 8)),
        constants={1: _whole((12, 1, 3, 3), seed=1), 2: _whole((12,), seed=2)},
    ),
    "deconv": _of(
        "deconv",
        Deconv(PoolSpec(DataFormat.NCHW, (3, 2), _PADDED, (1, 1), (2, 2))),
        _IMAGE,
        constants={1: _whole((6, 5, 3, 2), seed=1), 2: _whole((6,), seed=2)},
    ),
    "running": _of("running", CumSum(0), _whole((30, 50))),
    "scan": _of("scan", CumSum(1), _whole((3, 3000))),
    "topk": _of("topk", Topk(1, True, 5), _normal((3, 300)), constants={1: np.array(5)}),
    "gather": _of("gather", Gather(0), _normal((40, 20)), _INDICES),
    "scatter_link": _of("scatter_link", ScatterElements(0, "add"), _whole((6, 11)), _PLACES, _whole((40, 11), seed=1)),
    "scatter_sort": _of("scatter_sort", ScatterElements(0, "add"), _whole((6, 11)), _PLACES, _whole((40, 11), seed=1)),
    "scatter": _of("scatter", ScatterElements(0, "add"), _whole((6, 11)), _PLACES, _whole((40, 11), seed=1)),
    "max pool": _of("pool", MaxPool(_POOL, DatumType.I64), _IMAGE),
    "mean pool": _of("pool", SumPool(_POOL, count_include_pad=False), _IMAGE, tolerance=_ROUNDED),
    "pad": _of("pad", Pad(((0, 0), (0, 0), (2, 3), (4, 1)), PadReflect()), _IMAGE),
    "fft": _of("fft", Fft(1), _normal((3, 64, 2)), tolerance=1e-4),
    "resize": _of(
        "resize",
        Resize((2, 3), Sizes((14, 7)), Sampling(Interpolator.LINEAR)),
        _normal((1, 5, 9, 11)),
        tolerance=_ROUNDED,
    ),
    "lrn": _of("lrn", Lrn(3), _normal((1, 5, 9, 11)), tolerance=_ROUNDED),
    "grid_sample": _of(
        "grid_sample",
        GridSample(Interpolator.LINEAR),
        _normal((1, 5, 9, 11)),
        np.random.default_rng(6).uniform(-1, 1, (1, 6, 7, 2)).astype("f4"),
        tolerance=1e-4,
    ),
    "indexed_matmul": _of(
        "indexed_matmul", IndexedMatMul(), _whole((6, 70)), _whole((3, 19, 70), seed=1), _INDICES[0, :6] % 3
    ),
    "check_pages": _paged("check_pages", _PAGED),
    "page_places": _paged("page_places", _PAGED),
    "copy_pages": _paged("copy_pages", _PAGED),
    "store_pages": _paged("store_pages", replace(_PAGED, kept=DatumType.F16), _HALVES),
    "store_bytes": _paged("store_bytes", replace(_PAGED, kept=DatumType.I8), _HALVES),
    "paged_attention": _paged("paged_attention", _PAGED),
    "trilu": _of("trilu", Trilu(upper=True), _normal((20, 23)), constants={1: np.array(1)}),
}
