"""Scikit-learn's bundled handwritten digits, split once and for all into a part to train on and a part held out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from sklearn.datasets import load_digits

HELD_OUT = 360
"""Every fifth image of 1,797 is never shown in training."""


class Digits(NamedTuple):
    """Images of shape (number, 1, 8, 8), f32 from 0 (paper) to 1 (ink), and the digit that each one shows."""

    images: np.ndarray
    labels: np.ndarray


def digits() -> tuple[Digits, Digits]:
    """The training part and the held-out part."""
    bunch = load_digits()
    images = (bunch.images / 16).astype(np.float32)[:, np.newaxis]
    held_out = np.arange(len(images)) % 5 == 0
    return Digits(images[~held_out], bunch.target[~held_out]), Digits(images[held_out], bunch.target[held_out])
