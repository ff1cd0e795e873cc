"""Images of PyTorch resized, in the catalogue."""

from __future__ import annotations

from typing import Any

from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from catalogue.entry import Entry

LINE, IMAGE, VOLUME = "2,3,S,f32", "2,3,S,5,f32", "1,2,S,5,4,f32"


def resize(name: str, shape: str, mode: str, tolerance: float = 1e-5, **options: Any) -> Entry:
    return Entry(name, lambda x: F.interpolate(x, mode=mode, **options), (shape,), tolerance=tolerance, sizes=(4, 9))


ENTRIES = [
    resize("upsample_nearest1d", LINE, "nearest", scale_factor=2),
    resize("upsample_nearest2d", IMAGE, "nearest", scale_factor=(2, 3)),
    resize("upsample_nearest2d, sizes", "S,3,7,9,f32", "nearest", size=(5, 13)),
    resize("upsample_nearest2d, as f32 rounds", "S,1,41,47,f32", "nearest", size=(41 * 3, 47 * 3)),
    resize("upsample_nearest2d, bytes", "2,3,S,5,u8", "nearest", scale_factor=1.5),
    resize("upsample_nearest3d", VOLUME, "nearest", scale_factor=1.7),
    resize("_upsample_nearest_exact1d", LINE, "nearest-exact", scale_factor=2.5),
    resize("_upsample_nearest_exact2d", IMAGE, "nearest-exact", scale_factor=(0.5, 3)),
    resize("_upsample_nearest_exact3d", VOLUME, "nearest-exact", size=(3, 7, 5)),
    resize("upsample_linear1d", LINE, "linear", scale_factor=1.7),
    resize("upsample_linear1d, aligned", LINE, "linear", scale_factor=1.7, align_corners=True),
    resize("upsample_bilinear2d", IMAGE, "bilinear", scale_factor=(2, 0.6)),
    resize("upsample_bilinear2d, sizes", IMAGE, "bilinear", size=(6, 3)),
    resize("upsample_bilinear2d, aligned", IMAGE, "bilinear", size=(7, 1), align_corners=True),
    resize("upsample_bilinear2d, aligned by a factor", IMAGE, "bilinear", scale_factor=2, align_corners=True),
    resize("upsample_bilinear2d, factor anew", IMAGE, "bilinear", scale_factor=1.7, recompute_scale_factor=True),
    resize("upsample_bilinear2d, f16", "S,3,5,4,f16", "bilinear", 2e-3, size=(7, 3)),
    resize("upsample_bicubic2d", IMAGE, "bicubic", scale_factor=1.7),
    resize("upsample_bicubic2d, sizes", IMAGE, "bicubic", size=(3, 11)),
    resize("upsample_bicubic2d, aligned", IMAGE, "bicubic", size=(3, 11), align_corners=True),
    resize("upsample_trilinear3d", VOLUME, "trilinear", scale_factor=1.5),
    resize("upsample_trilinear3d, aligned", VOLUME, "trilinear", size=(6, 3, 8), align_corners=True),
    resize("_upsample_bilinear2d_aa", IMAGE, "bilinear", size=(3, 8), antialias=True),
    resize("_upsample_bicubic2d_aa", IMAGE, "bicubic", size=(3, 2), antialias=True),
    resize("interpolate, area", IMAGE, "area", scale_factor=0.5),
    Entry(
        "interpolate, to the size of another",
        lambda x, y: F.interpolate(x, size=y.shape[2:], mode="bilinear"),
        ("1,2,5,6,f32", "1,2,S,7,f32"),
        sizes=(4, 9),
    ),
]
