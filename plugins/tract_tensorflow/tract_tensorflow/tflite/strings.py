"""Constants of texts: a count, the place of each text and of the end, all i32, and the texts.

Source: the string tensors of LiteRT.
"""

from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np

from tract_core.errors import CorruptModel
from tract_core.plugins.keys import Array


def read_strings(content: Array, shape: tuple[int, ...]) -> Array:
    """Texts in a shape. Raises CorruptModel when the places do not lie in the content, in order, or are not as many."""
    raw = content.tobytes()
    count = int.from_bytes(raw[:4], "little", signed=True)
    if len(raw) < 4 or count != prod(shape) or len(raw) < 8 + 4 * count:
        raise CorruptModel(f"a tensor of {prod(shape)} texts has {len(raw)} bytes and says that they are {count}")
    places = np.frombuffer(raw, "<i4", count + 1, 4)
    if places[0] < 8 + 4 * count or places[-1] > len(raw) or (np.diff(places) < 0).any():
        raise CorruptModel("the texts of a tensor do not lie in it one behind the other")
    try:
        texts = [raw[start:end].decode() for start, end in pairwise(places.tolist())]
    except UnicodeDecodeError:
        raise CorruptModel("a text of a tensor is not UTF-8") from None
    return np.array([*texts, ""], object)[:-1].reshape(shape)
