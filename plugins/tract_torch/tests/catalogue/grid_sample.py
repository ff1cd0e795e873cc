"""Images of PyTorch read at places, in the catalogue."""

from __future__ import annotations

from typing import Any

from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from catalogue.entry import Entry


def sample(name: str, rank: int, mode: str, padding: str, *, aligned: bool) -> Entry:
    def call(x: Any, grid: Any) -> Any:
        return F.grid_sample(x, grid, mode=mode, padding_mode=padding, align_corners=aligned)

    places = ("3", "4", "2")[:rank]
    shapes = (f"2,3,{','.join(('S', '5', '4')[:rank])},f32", f"2,{','.join(places)},{rank},f32")
    return Entry(name, call, shapes, tolerance=2e-5, sizes=(4, 7))


def far(mode: str) -> Entry:
    """By reflection, with what is no number in the grid: it stands for -1, as the documentation says."""

    def call(x: Any, grid: Any) -> Any:
        return F.grid_sample(x, grid, mode=mode, padding_mode="reflection", align_corners=False)

    return Entry(f"grid_sampler_2d, {mode}, far away", call, ("2,3,S,5,f32", "2,3,4,2,f32:special"), tolerance=2e-5)


ENTRIES = [
    far("bilinear"),
    far("nearest"),
    *(
        sample(f"grid_sampler_2d, {mode}, {padding}{', aligned' if aligned else ''}", 2, mode, padding, aligned=aligned)
        for mode, padding, aligned in (
            ("bilinear", "zeros", False),
            ("bilinear", "reflection", True),
            ("nearest", "border", False),
            ("nearest", "reflection", False),
            ("bicubic", "zeros", True),
            ("bicubic", "border", False),
            ("bicubic", "reflection", False),
        )
    ),
    sample("grid_sampler_3d", 3, "bilinear", "zeros", aligned=False),
    sample("grid_sampler_3d, nearest", 3, "nearest", "border", aligned=True),
    Entry("affine_grid_generator", lambda t: F.affine_grid(t, [5, 2, 4, 6], align_corners=False), ("5,2,3,f32",)),
    Entry("affine_grid_generator, 3d", lambda t: F.affine_grid(t, [2, 2, 3, 4, 1], align_corners=True), ("2,3,4,f32",)),
    Entry(
        "affine_grid_generator, sizes of a tensor",
        lambda t, x: F.grid_sample(x, F.affine_grid(t, x.shape, align_corners=False), align_corners=False),
        ("2,2,3,f32", "2,3,S,5,f32"),
        tolerance=1e-4,
    ),
]
