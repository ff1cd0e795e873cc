"""SavedModels that TensorFlow made (`making/make_saved_models.py`), what they are given, and what it computes."""

from __future__ import annotations

from collections import defaultdict
from functools import cache
from pathlib import Path

import numpy as np


@cache
def held():
    with np.load(Path(__file__).with_name("saved_models.npz")) as found:
        return {name: found[name] for name in found.files}


def unpack(name, folder):
    for key, content in held().items():
        if key.startswith(f"{name}/file/"):
            path = folder / key[len(f"{name}/file/") :]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.tobytes())
    return folder


def runs():
    """Every run of every signature: ``(model, signature, number)``."""
    keys = [key.split("/") for key in held() if "/y/" in key]
    return list(dict.fromkeys((key[0], key[1], key[2]) for key in keys))


def values(name, signature, number):
    found = defaultdict(dict)
    for key, array in held().items():
        parts = key.split("/")
        if parts[:3] == [name, signature, number] and len(parts) == 5:
            found[parts[3]][parts[4]] = array.astype(object) if array.dtype.kind == "U" else array
    return found["x"], found["y"]
