"""Operators on images and signals: what is refused, and what stays as it is."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import tract_torch
from calling import Calling
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from tract_core.errors import Unsupported

IMAGE = torch.ones(1, 2, 6, 7)

REFUSED = {
    "means of integers": (lambda x: F.avg_pool2d(x, 2), IMAGE.long(), "the means of i64"),
    "corners aligned and antialiased": (
        lambda x: F.interpolate(x, size=(3, 3), mode="bilinear", align_corners=True, antialias=True),
        IMAGE,
        "antialiasing with align_corners",
    ),
    "a complex signal of istft": (
        lambda x: torch.istft(torch.complex(x, x), 8, onesided=False, return_complex=True),
        torch.ones(8, 6),
        "a complex signal of istft",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_supported_is_told(case: str) -> None:
    call, x, message = REFUSED[case]
    with pytest.raises(Unsupported, match=message):
        tract_torch.load(Calling(call), (x,))


def test_a_factor_whose_products_are_rounded_either_way_is_refused() -> None:
    size = torch.export.Dim("S", min=4, max=500)
    with pytest.raises(Unsupported, match="depends on how the product is rounded"):
        tract_torch.load(
            Calling(lambda x: F.interpolate(x, scale_factor=0.7)), (IMAGE,), dynamic_shapes=(({2: size},),)
        )


def test_functions_that_are_exported_as_others_compute_what_they_did() -> None:
    x = torch.randn(2, 40)
    wanted = torch.stft(x, 8, return_complex=True)
    tract_torch.load(Calling(lambda x: torch.stft(x, 8, return_complex=True)), (x,))
    assert torch.equal(torch.stft(x, 8, return_complex=True), wanted)


def test_complex_inputs_and_outputs_keep_their_type() -> None:
    x = torch.randn(2, 3, dtype=torch.complex64)
    model = tract_torch.load(Calling(lambda x: x * 1j), (x,))
    (found,) = model.into_runnable().run([x.numpy()])
    assert np.asarray(found).dtype == np.complex64
    np.testing.assert_allclose(np.asarray(found), x.numpy() * 1j, rtol=1e-6)
