"""LLM.int8() (Dettmers et al., arXiv:2208.07339), as bitsandbytes writes it: ``weight`` [N,K] and ``SCB`` [N].

Integers of 8 bits with a sign; ``SCB`` is the largest magnitude of a row, for which the integer is 127.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.errors import Unsupported
from tract_gguf.folders.quantised.module import Module, Settings, elements, zeros_like
from tract_gguf.reading.quantised import Quantised, QuantisedTensor

PARTS: Final = ("weight", "SCB", "weight_format")


def int8(settings: Settings, module: Module) -> QuantisedTensor:
    """The matrix of a module. Raises ModelError."""
    if not settings.truth("load_in_8bit", default=False):
        raise Unsupported(
            "of bitsandbytes, weights of 8 bits are read, not those of NF4 and FP4",
            hint="load it with transformers, call dequantize(), and save it",
        )
    weight = module.matrix("weight", ("i8",))
    rows, columns = weight.shape
    largest = module.part("SCB", ("f32",), (rows,))

    def make() -> Quantised:
        codes = elements(weight)
        scale = (elements(largest) / np.float32(127))[:, None]
        return Quantised(codes, scale, zeros_like(codes, scale), columns)

    return module.tensor("llm-int8", (rows, columns), make)
