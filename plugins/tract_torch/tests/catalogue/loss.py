"""Losses of PyTorch in the catalogue, each with every way of reducing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from catalogue.entry import Entry


def reduced(loss: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The loss of each element, their mean, and their sum."""
    return lambda *inputs: tuple(loss(*inputs, **options, reduction=way) for way in ("none", "mean", "sum"))


PAIR = ("S,4,f32", "S,4,f32")
SHARES = ("S,4,f32:share", "S,4,f32:share")
CLASSES = ("S,4,f32", "S,i64:below 4")
PLANES = ("S,4,2,3,f32", "S,2,3,i64:below 4")
SIGNS = ("S,4,f32", "S,4,f32:sign")

ENTRIES = [
    Entry("l1_loss", reduced(F.l1_loss), PAIR),
    Entry("mse_loss", reduced(F.mse_loss), PAIR),
    Entry("smooth_l1_loss", reduced(F.smooth_l1_loss), PAIR),
    Entry("smooth_l1_loss, beta", reduced(F.smooth_l1_loss, beta=0.3), PAIR),
    Entry("smooth_l1_loss, beta 0", reduced(F.smooth_l1_loss, beta=0.0), PAIR),
    Entry("huber_loss", reduced(F.huber_loss, delta=0.4), PAIR),
    Entry("binary_cross_entropy", reduced(F.binary_cross_entropy), SHARES),
    Entry(
        "binary_cross_entropy, weight",
        lambda x, y, w: reduced(F.binary_cross_entropy, weight=w)(x, y),
        (*SHARES, "4,f32"),
    ),
    Entry(
        "binary_cross_entropy, ends", lambda x: reduced(F.binary_cross_entropy)(x.round(), 1 - x.round()), SHARES[:1]
    ),
    Entry(
        "binary_cross_entropy_with_logits", reduced(F.binary_cross_entropy_with_logits), ("S,4,f32", "S,4,f32:share")
    ),
    Entry(
        "binary_cross_entropy_with_logits, weights",
        lambda x, y, w, p: reduced(F.binary_cross_entropy_with_logits, weight=w, pos_weight=p)(x, y),
        ("S,4,f32", "S,4,f32:share", "4,f32", "4,f32:positive"),
    ),
    Entry("cross_entropy_loss", reduced(F.cross_entropy), CLASSES),
    Entry(
        "cross_entropy_loss, weight",
        lambda x, y, w: reduced(F.cross_entropy, weight=w)(x, y),
        (*CLASSES, "4,f32:positive"),
    ),
    Entry("cross_entropy_loss, ignore_index", reduced(F.cross_entropy, ignore_index=2), CLASSES),
    Entry("cross_entropy_loss, label_smoothing", reduced(F.cross_entropy, label_smoothing=0.2), CLASSES),
    Entry(
        "cross_entropy_loss, all options",
        lambda x, y, w: reduced(F.cross_entropy, weight=w, ignore_index=1, label_smoothing=0.1)(x, y),
        (*CLASSES, "4,f32:positive"),
    ),
    Entry("cross_entropy_loss, shares", reduced(F.cross_entropy), ("S,4,f32", "S,4,f32:share")),
    Entry(
        "cross_entropy_loss, shares weighted",
        lambda x, y, w: reduced(F.cross_entropy, weight=w, label_smoothing=0.1)(x, y),
        ("S,4,f32", "S,4,f32:share", "4,f32:positive"),
    ),
    Entry("cross_entropy_loss, planes", reduced(F.cross_entropy), PLANES),
    Entry("cross_entropy_loss, one item", reduced(F.cross_entropy), ("4,f32", "i64:below 4")),
    Entry("nll_loss", reduced(F.nll_loss), CLASSES),
    Entry(
        "nll_loss, weight",
        lambda x, y, w: reduced(F.nll_loss, weight=w, ignore_index=0)(x, y),
        (*CLASSES, "4,f32:positive"),
    ),
    Entry("nll_loss2d", reduced(F.nll_loss), PLANES),
    Entry(
        "nll_loss2d, weight",
        lambda x, y, w: reduced(F.nll_loss, weight=w, ignore_index=1)(x, y),
        (*PLANES, "4,f32:positive"),
    ),
    Entry("nll_loss_nd", reduced(F.nll_loss), ("S,4,5,f32", "S,5,i64:below 4")),
    Entry(
        "kl_div",
        lambda x, y: (*reduced(F.kl_div)(x, y), F.kl_div(x, y, reduction="batchmean")),
        ("S,4,f32", "S,4,f32:share"),
    ),
    Entry("kl_div, log_target", reduced(F.kl_div, log_target=True), PAIR),
    Entry("poisson_nll_loss", reduced(F.poisson_nll_loss), ("S,4,f32", "S,4,f32:positive")),
    Entry(
        "poisson_nll_loss, full",
        reduced(F.poisson_nll_loss, log_input=False, full=True),
        ("S,4,f32:positive", "S,4,f32:positive"),
    ),
    Entry("soft_margin_loss", reduced(F.soft_margin_loss), SIGNS),
    Entry("margin_ranking_loss", reduced(F.margin_ranking_loss, margin=0.2), (*PAIR, "S,4,f32:sign")),
    Entry("triplet_margin_loss", reduced(F.triplet_margin_loss), (*PAIR, "S,4,f32")),
    Entry("triplet_margin_loss, swap", reduced(F.triplet_margin_loss, swap=True, p=1), (*PAIR, "S,4,f32")),
    Entry("triplet_margin_with_distance_loss", reduced(F.triplet_margin_with_distance_loss), (*PAIR, "S,4,f32")),
    Entry("multi_margin_loss", reduced(F.multi_margin_loss), CLASSES),
    Entry(
        "multi_margin_loss, weight",
        lambda x, y, w: reduced(F.multi_margin_loss, p=2, weight=w)(x, y),
        (*CLASSES, "4,f32:positive"),
    ),
    Entry("multilabel_margin_loss", reduced(F.multilabel_margin_loss), ("S,4,f32", "S,4,i64:below 4")),
    Entry("multilabel_soft_margin_loss", reduced(F.multilabel_soft_margin_loss), ("S,4,f32", "S,4,f32:share")),
    Entry("hinge_embedding_loss", reduced(F.hinge_embedding_loss, margin=0.7), SIGNS),
    Entry("cosine_embedding_loss", reduced(F.cosine_embedding_loss, margin=0.1), (*PAIR, "S,f32:sign")),
]
