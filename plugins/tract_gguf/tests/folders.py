"""Folders of Hugging Face with random weights that only depend on their names, and what `transformers` makes of them.

`transformers.json` has the configurations, the shapes of tensors, and some logits; `make_transformers.py` makes it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

PLACES = (0, 8, 13)
"""Positions whose logits are kept, of the first tokens of the vocabulary."""

FIRST = 12

TOKENS = np.random.default_rng(3).integers(3, 96, (2, 14))

KEPT = Path(__file__).with_name("transformers.json")


def weights(name: str, shape: Sequence[int]) -> np.ndarray:
    """In f32: matrices around 0, and so are biases; scales around 1."""
    random = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape).astype(np.float32)
    return random * np.float32(0.15) if len(shape) > 1 else random * np.float32(0.1) + np.float32(name.endswith("t"))


def safetensors(tensors: Mapping[str, np.ndarray]) -> bytes:
    """The content of a file."""
    kinds = {"float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "uint8": "U8"}
    kinds |= {"int32": "I32", "int8": "I8", "float8_e4m3fn": "F8_E4M3", "float8_e8m0fnu": "F8_E8M0"}
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, array in tensors.items():
        ends = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": kinds[array.dtype.name], "shape": list(array.shape), "data_offsets": ends}
        data += array.tobytes()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def write_folder(folder: Path, case: Mapping[str, Any], *, narrow: bool = False, files: int = 1) -> Path:
    """A folder. ``narrow``: weights in bf16; ``files``: how many have them."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(case["config"]))
    held = {name: weights(name, shape) for name, shape in case["shapes"].items()}
    if narrow:
        held = {name: array.astype(ml_dtypes.bfloat16) for name, array in held.items()}
    if files == 1:
        (folder / "model.safetensors").write_bytes(safetensors(held))
        return folder
    places = {name: f"model-{number % files}.safetensors" for number, name in enumerate(held)}
    for file in set(places.values()):
        (folder / file).write_bytes(safetensors({name: held[name] for name in held if places[name] == file}))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))
    return folder
