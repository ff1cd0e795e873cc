"""AWQ (Lin et al., arXiv:2306.00978), as AutoAWQ writes it in its version GEMM.

For a matrix [N,K] and G groups of columns: ``qweight`` [K, N / 8], words of eight rows each; ``scales`` [G,N];
``qzeros`` [G, N / 8], words likewise. From its lowest four bits on, a word has the rows 0, 2, 4, 6, 1, 3, 5, 7.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.plugins.keys import Array
from tract_gguf.folders.quantised.integers import in_type
from tract_gguf.folders.quantised.module import Module, Settings, elements, scales_of
from tract_gguf.reading.quantised import Quantised, QuantisedTensor

PARTS: Final = ("qweight", "qzeros", "scales")

_ROWS: Final = (0, 2, 4, 6, 1, 3, 5, 7)
_BITS: Final = 4


def awq(settings: Settings, module: Module) -> QuantisedTensor:
    """The matrix of a module. Raises ModelError."""
    bits = settings.one_of("bits", (_BITS,), settings.said.get("w_bit"))
    settings.one_of("version", ("gemm", "GEMM"), settings.said.get("format") or "gemm")
    words = module.matrix("qweight", ("i32",))
    columns, rows = words.shape[0], words.shape[1] * 32 // bits
    group = settings.group("group_size" if "group_size" in settings.said else "q_group_size", columns)
    count = -(-columns // group)
    scale = module.part("scales", ("f16", "f32", "bf16"), (count, rows))
    zeros = module.part("qzeros", ("i32",), (count, words.shape[1]))

    def make() -> Quantised:
        codes, zero = (_turned(elements(one)) for one in (words, zeros))
        return Quantised(codes, np.ascontiguousarray(scales_of(scale).T), zero, group).in_whole_blocks()

    return module.tensor("awq", (rows, columns), make)


def _turned(words: Array) -> Array:
    """Words [columns, rows / 8] as integers [rows, columns]."""
    held = words.view(np.uint32)
    made = np.empty((held.shape[1] * 8, len(held)), np.uint8)
    for place, row in enumerate(_ROWS):
        made[row::8] = (held >> np.uint32(_BITS * place) & np.uint32(15)).T
    return in_type(made, _BITS, words)
