"""What torch-to-nnef 0.24 refuses, one by one: what becomes an archive here, and what is refused here too.

Each case that works is exported, which compares the archive with the module at several sizes, and then compared with
PyTorch once more, at sizes of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
import torch
from agreement import same
from calling import Calling
from torch.nn import functional as F  # noqa: N812 - as everybody calls it
from torch.utils import _pytree as pytree
from tract_torch import KhronosNNEF, TractNNEF, export_model_to_nnef
from tract_torch.tensors import array_of

import tract_core as tract
from tract_core.errors import Unsupported


class Case(NamedTuple):
    """``example``: what the function is called with; ``axes``: which sizes are dynamic; ``others``: other inputs."""

    function: Callable[..., Any]
    example: list[torch.Tensor]
    axes: Mapping[str, Mapping[int, str]] = MappingProxyType({})
    others: list[torch.Tensor] | None = None


def floats(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def whole(*values: int) -> torch.Tensor:
    return torch.tensor(values)


def rows(function: Callable[..., Any], *, columns: int = 4) -> Case:
    """A function of a matrix that may have any number of rows."""
    return Case(function, [floats(5, columns)], {"input_0": {0: "B"}}, [floats(9, columns, seed=1)])


def image(function: Callable[..., Any], **axes: int) -> Case:
    """A function of an image; ``axes``: which are dynamic, by their symbols."""
    named = {axis: name for name, axis in axes.items()}
    other = floats(1, 2, 9 if 2 in named else 7, 12 if 3 in named else 8, seed=1)
    return Case(function, [floats(1, 2, 7, 8)], {"input_0": named}, [other])


def spd(x: torch.Tensor) -> torch.Tensor:
    """A symmetric positive definite matrix of a square one, which factorisations are well conditioned for."""
    return x @ x.mT + 3 * torch.eye(x.shape[-1])


def filled(x: torch.Tensor) -> torch.Tensor:
    held = torch.zeros(x.shape[0], 3, 4)
    held.copy_(x.unsqueeze(1))
    return held


def bag(*, mode: str = "sum", **options: Any) -> Callable[..., Any]:
    table = floats(10, 3, seed=7)
    return lambda places, offsets, *rest: F.embedding_bag(
        places, table, offsets, mode=mode, **({"per_sample_weights": rest[0]} if rest else {}), **options
    )


PLACES = whole(1, 3, 3, 7, 0, 9)
SPLITS = whole(0, 2, 5)
MASK = floats(5, 4, seed=3) > 0
STEPS = torch.tensor([0.1, 0.02, 0.3, 0.004])
BOUNDS = floats(3, 6, seed=4).sort(-1).values

WORKS: dict[str, Case] = {
    # pooling
    "avg_pool with ceil_mode": image(lambda x: F.avg_pool2d(x, 3, 2, ceil_mode=True)),
    "avg_pool with count_include_pad=False": image(
        lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), H=2, W=3
    ),
    "avg_pool with divisor_override": image(lambda x: F.avg_pool2d(x, 2, divisor_override=3), H=2, W=3),
    "max_pool whose indices are used": image(lambda x: F.max_pool2d(x, 2, return_indices=True), H=2, W=3),
    "adaptive pooling of a dynamic size": image(lambda x: F.adaptive_avg_pool2d(x, 1), H=2, W=3),
    # shapes
    "flip of a dynamic axis": rows(lambda x: x.flip(0)),
    "roll of a dynamic axis": rows(lambda x: x.roll(2, 0)),
    "channel_shuffle": image(lambda x: F.channel_shuffle(torch.cat([x, x + 1], 1), 2), H=2),
    "tensor_split": rows(lambda x: torch.tensor_split(x, 3, 1)),
    "tensor_split at places": rows(lambda x: torch.tensor_split(x, [1, 3], 1)),
    "diff of a dynamic axis": rows(lambda x: torch.diff(x, n=2, dim=0)),
    "cummax of a dynamic axis": rows(lambda x: torch.cummax(x, 0)),
    "cummin of a dynamic axis": rows(lambda x: torch.cummin(x, 0)),
    "cumsum of a dynamic axis": rows(lambda x: torch.cumsum(x, 0)),
    "cumprod of a dynamic axis": rows(lambda x: torch.cumprod(x, 0)),
    "logcumsumexp of a dynamic axis": rows(lambda x: torch.logcumsumexp(x, 0)),
    "view with several unknown sizes": Case(
        lambda x: x.view(x.shape[0], x.shape[1], 2, 2),
        [floats(3, 5, 4)],
        {"input_0": {0: "B", 1: "T"}},
        [floats(2, 7, 4, seed=1)],
    ),
    "slices with several begins": Case(
        lambda x: x[1:-1, 2:, ::3], [floats(4, 6, 7)], {"input_0": {0: "B", 1: "T"}}, [floats(6, 5, 7, seed=1)]
    ),
    "repeat_interleave that flattens": rows(lambda x: torch.repeat_interleave(x, 3)),
    "repeat_interleave with a tensor of counts": rows(lambda x: torch.repeat_interleave(x, whole(2, 0, 1, 3), 1)),
    "negative padding on the right of a dynamic axis": rows(lambda x: F.pad(x, (0, 0, 0, -2))),
    # places
    "a mask that data decides": rows(lambda x: x[x > 0]),
    "masked_select": rows(lambda x: torch.masked_select(x, x > 0)),
    "index_put over several axes": Case(
        lambda x, i, j: x.index_put((i, j), torch.tensor(7.0)),
        [floats(5, 4), whole(0, 2), whole(3, 1)],
        {"input_0": {0: "B"}},
        [floats(9, 4, seed=1), whole(3, 2), whole(0, 0)],
    ),
    "index_put with a mask": rows(lambda x: x.index_put((x > 0,), torch.tensor(7.0))),
    "take_along_dim without an axis": Case(torch.take_along_dim, [floats(3, 4), PLACES]),
    "index_add of a dynamic length": Case(
        lambda x, i, y: x.index_add(0, i, y),
        [floats(10, 4), PLACES, floats(6, 4)],
        {"input_1": {0: "N"}, "input_2": {0: "N"}},
        [floats(10, 4, seed=1), whole(1, 1), floats(2, 4, seed=2)],
    ),
    "index_copy of a dynamic length": Case(
        lambda x, i, y: x.index_copy(0, i, y),
        [floats(10, 4), whole(1, 5, 3), floats(3, 4)],
        {"input_0": {0: "B"}},
        [floats(12, 4, seed=1), whole(0, 7, 2), floats(3, 4, seed=2)],
    ),
    "select_scatter into a dynamic axis": Case(
        lambda x, y: torch.select_scatter(x, y, 0, 1),
        [floats(5, 4), floats(4)],
        {"input_0": {0: "B"}},
        [floats(9, 4, seed=1), floats(4, seed=2)],
    ),
    "slice_scatter with a step, of a dynamic axis": rows(
        lambda x: torch.slice_scatter(x, torch.zeros(x.shape[0], 2), 1, 0, 4, 2)
    ),
    "slice_scatter along a dynamic axis": rows(lambda x: torch.slice_scatter(x, x[1:] * 2, 0, 1)),
    "searchsorted in several axes": Case(
        lambda x: torch.searchsorted(BOUNDS, x),
        [floats(3, 5)],
        {"input_0": {1: "N"}},
        [floats(3, 8, seed=1)],
    ),
    "searchsorted with a sorter": Case(
        lambda x: torch.searchsorted(BOUNDS.flip(-1), x, sorter=torch.arange(5, -1, -1).expand(3, 6).contiguous()),
        [floats(3, 5)],
        {"input_0": {1: "N"}},
        [floats(3, 8, seed=1)],
    ),
    "topk without an order": rows(lambda x: torch.topk(x, 2, sorted=False).values.sort(-1).values),
    "scatter_reduce of means": Case(
        lambda x, i, y: x.scatter_reduce(0, i, y, "mean"), [floats(10), PLACES, floats(6, seed=1)]
    ),
    "scatter_reduce without what is there": Case(
        lambda x, i, y: x.scatter_reduce(0, i, y, "amax", include_self=False), [floats(10), PLACES, floats(6, seed=1)]
    ),
    # bags
    "embedding_bag with weights": Case(bag(), [PLACES, SPLITS, floats(6)]),
    "embedding_bag with padding_idx": Case(bag(mode="mean", padding_idx=3), [PLACES, SPLITS]),
    "embedding_bag with the last offset": Case(bag(include_last_offset=True), [PLACES, whole(0, 2, 5, 6)]),
    "embedding_bag with an empty bag": Case(bag(mode="max"), [PLACES, whole(0, 2, 2, 5)]),
    "embedding_bag with dynamic offsets": Case(
        bag(), [PLACES, SPLITS], {"input_1": {0: "N"}}, [PLACES.flip(0), whole(0, 1, 1, 4)]
    ),
    # matrices
    "diag with an offset": Case(lambda x: torch.diag(x, 1), [floats(3, 5)]),
    "diag_embed with an offset": rows(lambda x: torch.diag_embed(x, -1)),
    "inner of three axes": Case(torch.inner, [floats(2, 3, 4), floats(5, 4)]),
    "kron of three axes": Case(torch.kron, [floats(2, 3, 2), floats(3, 1, 2)]),
    "pdist of any p": Case(lambda x: F.pdist(x, 3.0), [floats(5, 4)]),
    "cdist of any p": Case(
        lambda x, y: torch.cdist(x, y, p=0.5),
        [floats(5, 4), floats(3, 4)],
        {"input_0": {0: "B"}},
        [floats(7, 4, seed=1), floats(3, 4, seed=2)],
    ),
    "dist of infinity": rows(lambda x: torch.dist(x, x * 2 + 1, p=float("inf"))),
    "tensordot of many axes": Case(
        lambda x, y: torch.tensordot(x, y, dims=([5, 1], [0, 2])),
        [floats(1, 2, 1, 2, 1, 3), floats(3, 1, 2, 1, 1, 2)],
    ),
    "linalg_matrix_norm of columns": Case(lambda x: torch.linalg.matrix_norm(x, ord=1), [floats(3, 4)]),
    # transforms
    "fft of n points, normalised": rows(lambda x: torch.fft.rfft(x, n=6, norm="ortho")),
    "irfft of n points, normalised": rows(lambda x: torch.fft.irfft(torch.complex(x, x * 2), n=5, norm="forward")),
    "istft of both sides, normalised, of a length": Case(
        lambda x: torch.istft(
            torch.complex(x, x * 0), 8, onesided=False, normalized=True, length=30, window=torch.hann_window(8)
        ),
        [floats(8, 16)],
    ),
    # sums
    "var of a dynamic axis": rows(lambda x: torch.cat([x, -x]).var(0)),
    "std of a dynamic axis": rows(lambda x: x.std(0, correction=0)),
    "logsumexp of several axes": rows(lambda x: torch.logsumexp(x, (0, 1))),
    # others
    "isclose with equal_nan": rows(lambda x: torch.isclose(x / 0, x / 0 * x, equal_nan=True)),
    "copy_ of a source that is broadcast": rows(filled),
    "qr": Case(torch.linalg.qr, [floats(5, 3)]),
    "inv": Case(lambda x: torch.linalg.inv(spd(x)), [floats(3, 3)]),
    "solve": Case(lambda x, y: torch.linalg.solve(spd(x), y), [floats(3, 3), floats(3, 2)]),
    "cholesky": Case(lambda x: torch.linalg.cholesky(spd(x)), [floats(3, 3)]),
    "det": Case(lambda x: torch.linalg.det(spd(x)), [floats(3, 3)]),
    "unique": rows(lambda x: torch.unique(x.round())),
    "nonzero": rows(lambda x: torch.nonzero(x > 0)),
    "fake_quantize": rows(lambda x: torch.fake_quantize_per_tensor_affine(x, 0.1, 0, -128, 127)),
    "special functions": rows(lambda x: (torch.special.ndtri(torch.sigmoid(x)), torch.special.erfcx(x))),
    "fake_quantize of channels": rows(
        lambda x: torch.fake_quantize_per_channel_affine(x, STEPS, whole(0, 1, -2, 3).int(), 1, -128, 127)
    ),
    "random numbers": rows(lambda x: x + 0 * torch.rand(x.shape)),
}

ITERATED = "singular values and eigenvalues are found by iterations"

REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "packed sequences": (
        lambda x: torch.nn.utils.rnn.pack_padded_sequence(x, whole(4), batch_first=True).data,
        "(?s)the module packs sequences.*hint: run the layer on the padded tensor",
    ),
    "dropout that is active": (
        lambda x: F.dropout(x, training=True),
        "(?s)dropout in training mode.*hint: .*training=self.training",
    ),
    "attention with dropout": (
        lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.5),
        "(?s)attention with dropout.*hint: call eval",
    ),
    "svd": (torch.linalg.svdvals, ITERATED),
    "eig": (torch.linalg.eigvals, ITERATED),
    "eigh": (torch.linalg.eigvalsh, ITERATED),
    "linalg_matrix_norm of singular values": (lambda x: torch.linalg.matrix_norm(x, ord=2), ITERATED),
    "sparse tensors": (lambda x: x.to_sparse().to_dense(), "there is no importer for aten._to_sparse"),
    "ctc_loss": (
        lambda x: F.ctc_loss(x.mT.log_softmax(-1), whole(1, 2).reshape(1, 2), whole(4), whole(2)),
        "aten._ctc_loss.Tensor has a result that only a run knows",
    ),
}


@pytest.mark.parametrize("name", WORKS)
def test_what_others_refuse_becomes_an_archive(name: str, tmp_path: Path) -> None:
    case = WORKS[name]
    module = Calling(case.function)
    target = TractNNEF(None, dynamic_axes=case.axes)
    path = export_model_to_nnef(module, case.example, tmp_path / "m.nnef", target)
    runnable = tract.load(path).into_runnable()
    for inputs in (case.example, case.others or case.example):
        wanted = pytree.tree_leaves(module(*inputs))
        same(runnable.run([array_of(x) for x in inputs]), wanted, 1e-4)


def test_a_range_of_sizes_for_the_standard_is_a_constant(tmp_path: Path) -> None:
    module = Calling(lambda x: x + torch.arange(x.shape[1]))
    path = export_model_to_nnef(module, floats(3, 4), tmp_path / "m.nnef", KhronosNNEF())
    same(tract.load(path).into_runnable().run([floats(3, 4).numpy()]), [module(floats(3, 4))])


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_here_too_is_told(name: str, tmp_path: Path) -> None:
    function, says = REFUSED[name]
    with pytest.raises(Unsupported, match=says):
        export_model_to_nnef(Calling(function), floats(1, 4, 4), tmp_path / "m.nnef", TractNNEF(None))
    assert not list(tmp_path.iterdir())
