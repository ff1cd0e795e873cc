"""Folders of encoders with random weights that only depend on their names, and what `transformers` makes of them.

`encoders.json` has the configurations, the shapes of tensors, and some numbers; `make_encoders.py` makes it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from folders import safetensors, weights

KEPT = Path(__file__).with_name("encoders.json")

LENGTHS = (14, 9, 1)
"""Tokens of the texts that stand side by side."""

FIRST = 12
"""Columns of hidden states that are kept, of the tokens of all texts."""

_RANDOM = np.random.default_rng(4)
TOKENS = _RANDOM.integers(3, 96, (3, 14))
TYPES = (np.arange(14) >= _RANDOM.integers(2, 9, (3, 1))).astype(np.int64)
MASK = (np.arange(14) < np.array(LENGTHS)[:, None]).astype(np.int64)
PADDING = 1


def tokens() -> np.ndarray:
    """With padding behind each text."""
    return np.where(MASK == 1, TOKENS, PADDING)


def write_encoder(
    folder: Path, case: Mapping[str, Any], *, names: Mapping[str, str] | None = None, **said: object
) -> Path:
    """A folder. ``names``: what tensors are called, by their names; none for the others, where it is given.

    ``said``: what the configuration says in another way; ``None`` takes it away.
    """
    folder.mkdir()
    config = {key: value for key, value in {**case["config"], **said}.items() if value is not None}
    (folder / "config.json").write_text(json.dumps(config))
    called = {name: name for name in case["shapes"]} if names is None else names
    held = {own: weights(name, case["shapes"][name]) for name, own in called.items()}
    (folder / "model.safetensors").write_bytes(safetensors(held))
    return folder
