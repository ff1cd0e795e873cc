"""Writes ``ggml_blocks.npz``: numbers as llama.cpp's own library puts them into blocks, and takes them out again.

Run ``python make_ggml_blocks.py LIBRARY``, with the path of ``libggml-base.so`` of ggml 0.25.3. The package ``gguf``
cannot write the formats of K and IQ, nor NVFP4; what trained weights look like there, with scales that were searched
for, is not what random bytes look like.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from typing import Final

import numpy as np
from gguf import GGML_QUANT_SIZES, GGMLQuantizationType

FILE: Final = Path(__file__).with_name("ggml_blocks.npz")
_PLAIN: Final = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")
_NESTED: Final = ("Q2_K", "Q3_K", "Q4_K", "Q5_K", "Q6_K")
_GROUPED: Final = ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S")
NAMES: Final = (*_PLAIN, *_NESTED, "IQ4_NL", "IQ4_XS", "MXFP4", "NVFP4", *_GROUPED, "TQ1_0", "TQ2_0")
ROWS, LENGTH = 6, 512


def numbers() -> np.ndarray:
    """Like weights: most are small, some far out, one row is tiny, one has a block of zeros."""
    draw = np.random.default_rng(7)
    found = draw.standard_t(4, (ROWS, LENGTH)).astype(np.float32) * np.float32(0.03)
    found[1] *= np.float32(1e-4)
    found[2, :256] = 0
    return found


def main() -> None:
    library = ctypes.CDLL(sys.argv[1])
    library.ggml_quantize_chunk.restype = ctypes.c_size_t
    weights, importance = numbers(), np.random.default_rng(8).uniform(0.5, 2, LENGTH).astype(np.float32)
    found = {"numbers": weights}
    for name in NAMES:
        kind = GGMLQuantizationType[name]
        length, size = GGML_QUANT_SIZES[kind]
        packed = np.zeros((ROWS, LENGTH // length, size), np.uint8)
        pointers = [ctypes.c_void_p(one.ctypes.data) for one in (weights, packed)]
        sizes = [ctypes.c_int64(one) for one in (0, ROWS, LENGTH)]
        matters = ctypes.c_void_p(importance.ctypes.data if name in _GROUPED else None)
        written = library.ggml_quantize_chunk(ctypes.c_int(kind.value), *pointers, *sizes, matters)
        assert written == packed.nbytes
        again = np.zeros_like(weights)
        take_out = getattr(library, f"dequantize_row_{name.lower().replace('_k', '_K')}")
        take_out(pointers[1], ctypes.c_void_p(again.ctypes.data), ctypes.c_int64(weights.size))
        found[name.lower()], found[f"{name.lower()} again"] = packed, again
    np.savez_compressed(FILE, **found)


if __name__ == "__main__":
    main()
