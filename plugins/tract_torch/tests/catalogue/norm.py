"""Normalisations and norms of PyTorch in the catalogue."""

from __future__ import annotations

from math import inf

import torch
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from catalogue.entry import A_NUMBER, Entry

L = torch.linalg
AFFINE = ("S,4,3,f32", "4,f32", "4,f32")
STATISTICS = ("S,4,3,f32", "4,f32:positive", "4,f32:positive", "4,f32", "4,f32")
BY_SIZE = "PyTorch computes it in two ways, by the size"

ENTRIES = [
    Entry("layer_norm", lambda x, w, b: F.layer_norm(x, (3,), w, b), ("S,4,3,f32", "3,f32", "3,f32")),
    Entry("layer_norm, two axes", lambda x: F.layer_norm(x, (4, 3)), ("S,4,3,f32",)),
    Entry("layer_norm, no bias", lambda x, w: F.layer_norm(x, (3,), w, eps=0.1), ("S,3,f32", "3,f32")),
    Entry(
        "native_layer_norm",
        lambda x, w, b: torch.native_layer_norm(x, [3], w, b, 1e-5),
        ("S,4,3,f32", "3,f32", "3,f32"),
    ),
    Entry("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), AFFINE),
    Entry("group_norm, no weights", lambda x: F.group_norm(x, 2, eps=0.1), ("S,4,f32",)),
    Entry(
        "native_group_norm",
        lambda x, w, b: torch.native_group_norm(x, w, b, 2, 4, 3, 2, 1e-5),
        ("2,4,3,f32", "4,f32", "4,f32"),
    ),
    Entry("rms_norm", lambda x, w: F.rms_norm(x, (3,), w), ("S,4,3,f32", "3,f32")),
    Entry("rms_norm, two axes", lambda x: (F.rms_norm(x, (4, 3)), F.rms_norm(x, (4, 3), eps=0.5)), ("S,4,3,f32",)),
    Entry("instance_norm", F.instance_norm, ("S,4,9,f32",)),
    Entry(
        "instance_norm, weights", lambda x, w, b: F.instance_norm(x, weight=w, bias=b), ("S,4,9,f32", "4,f32", "4,f32")
    ),
    Entry(
        "instance_norm, statistics",
        lambda x, m, v: F.instance_norm(x, m, v, use_input_stats=False),
        ("S,4,3,f32", "4,f32", "4,f32:positive"),
    ),
    Entry("batch_norm", F.batch_norm, STATISTICS),
    Entry("batch_norm, no weights", F.batch_norm, ("S,4,f32", "4,f32", "4,f32:positive")),
    Entry("batch_norm, by the batch", lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), AFFINE),
    Entry(
        "_native_batch_norm_legit",
        lambda x, w, b: torch.ops.aten._native_batch_norm_legit.no_stats(x, w, b, True, 0.1, 1e-5),
        AFFINE,
    ),
    Entry(
        "_native_batch_norm_legit_no_training",
        lambda x, m, v, w, b: torch.ops.aten._native_batch_norm_legit_no_training(x, w, b, m, v, 0.1, 1e-5)[0],
        STATISTICS,
    ),
    Entry(
        "_batch_norm_no_update",
        lambda x, m, v, w, b: torch.ops.aten._batch_norm_no_update(x, w, b, m, v, 0.1, 1e-5)[0],
        STATISTICS,
    ),
    Entry("local_response_norm", lambda x: F.local_response_norm(x, 3), ("S,5,4,f32",)),
    Entry("normalize", lambda x: (F.normalize(x, dim=1), F.normalize(x, 1, 0), F.normalize(x, inf)), ("S,4,f32",)),
    Entry("renorm, orders", lambda x: (x.renorm(2, 0, 0.7), x.renorm(1, 1, 0.5)), ("S,4,3,f32",)),
    Entry("_weight_norm", lambda v, g: torch._weight_norm(v, g, 0), ("4,S,3,f32", "4,1,1,f32")),
    Entry("weight_norm_interface", lambda v, g: torch._weight_norm(v, g, 1), ("S,4,f32", "1,4,f32")),
    Entry(
        "linalg_vector_norm",
        lambda x: tuple(L.vector_norm(x, order, dim=1) for order in (2, 1, 0, inf, -inf, 3, 0.5, -1, -2)),
        ("S,4,f32",),
    ),
    Entry(
        "linalg_vector_norm, axes",
        lambda x: (L.vector_norm(x), L.vector_norm(x, dim=(0, 2), keepdim=True)),
        ("S,4,3,f32",),
    ),
    Entry("linalg_vector_norm, dtype", lambda x: L.vector_norm(x, dtype=torch.float64, dim=-1), ("S,4,f32",)),
    Entry("linalg_vector_norm, a number", lambda x: (L.vector_norm(x), x.norm()), ("f32",)),
    Entry(
        "linalg_matrix_norm",
        lambda x: tuple(L.matrix_norm(x, order) for order in ("fro", 1, -1, inf, -inf)),
        ("S,4,3,f32",),
        fixed=A_NUMBER,
    ),
    Entry("linalg_matrix_norm, axes", lambda x: L.matrix_norm(x, 1, (0, 2), keepdim=True), ("S,4,3,f32",)),
    Entry("linalg_norm", lambda x: (L.norm(x), L.norm(x, "fro"), L.norm(x, 1), L.norm(x, inf, dim=0)), ("S,3,f32",)),
    Entry(
        "frobenius_norm", lambda x: (x.norm("fro"), torch.frobenius_norm(x, (0, 1)), x.norm(dim=(0, 1))), ("S,3,f32",)
    ),
    Entry("norm, dtype", lambda x: (x.norm(2, 1, dtype=torch.float64), x.norm(1, dim=1, keepdim=True)), ("S,4,f32",)),
    Entry("dist", lambda a, b: tuple(torch.dist(a, b, p) for p in (2, 1, 0, inf, 3)), ("S,3,f32", "3,f32")),
    Entry(
        "cdist",
        lambda a, b: tuple(torch.cdist(a, b, p) for p in (1.0, 0.0, inf, 3.0, 0.5)),
        ("2,S,3,f32", "2,4,3,f32"),
    ),
    Entry(
        "cdist, compute_mode",
        lambda a, b: torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist"),
        ("S,3,f32", "4,3,f32"),
    ),
    Entry("cdist, broadcast", torch.cdist, ("2,1,S,3,f32", "3,4,3,f32"), fixed=BY_SIZE),
    Entry("_cdist_forward", lambda a, b: torch.ops.aten._cdist_forward(a, b, 2.0, None), ("S,3,f32", "4,3,f32")),
    Entry("pdist", lambda x: tuple(F.pdist(x, p) for p in (2.0, 1.0, 0.0, inf, 3.0)), ("5,S,f32",)),
    Entry("_pdist_forward", lambda x: torch.ops.aten._pdist_forward(x, 2.0), ("5,S,f32",)),
    Entry(
        "pairwise_distance",
        lambda a, b: (
            F.pairwise_distance(a, b),
            F.pairwise_distance(a, b, 1, keepdim=True),
            F.pairwise_distance(a, b, inf),
        ),
        ("S,4,f32", "1,4,f32"),
    ),
    Entry(
        "cosine_similarity",
        lambda a, b: (F.cosine_similarity(a, b), F.cosine_similarity(a, b, 0)),
        ("S,4,f32", "1,4,f32"),
    ),
]
