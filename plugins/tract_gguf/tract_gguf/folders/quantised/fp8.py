"""Weights in floats of 8 bits (e4m3fn), with a scale for all, for each row, or for each block of rows and columns.

For a matrix [N,K]: ``weight`` [N,K], and ``weight_scale_inv``, what it is multiplied with: [ceil(N/R), ceil(K/C)] where
``weight_block_size`` is [R,C], as DeepSeek and Qwen have it; else one, or ``weight_scale`` [N,1].
"""

from __future__ import annotations

from math import prod
from typing import Final

from tract_gguf.folders.quantised.module import Module, Settings, elements, for_rows, zeros_like
from tract_gguf.reading.quantised import Quantised, QuantisedTensor

PARTS: Final = ("weight", "weight_scale_inv", "weight_scale")

NARROW: Final = ("f8e4m3fn",)


def fp8(settings: Settings, module: Module) -> QuantisedTensor:
    """The matrix of a module. Raises ModelError."""
    settings.one_of("fmt", ("e4m3", "float8_e4m3fn"), "e4m3")
    name = "weight_scale" if "weight_scale" in module.parts else "weight_scale_inv"
    return scaled(module, "fp8", NARROW, name, settings.pair("weight_block_size"))


def scaled(
    module: Module, kind: str, kinds: tuple[str, ...], name: str, each: tuple[int, int] | None
) -> QuantisedTensor:
    """The matrix ``weight``, of a type that has a sign, times scales of that name; nothing is unpacked.

    ``each``: rows and columns that share a scale; ``None`` for one for all, or one for each row, as there are.
    """
    weight = module.matrix("weight", kinds)
    rows, columns = weight.shape
    count = prod(module.parts[name].shape) if name in module.parts else 1
    each = each or (rows if count == 1 else 1, columns)
    each = min(each[0], rows), min(each[1], columns)
    scale = for_rows(module, name, (rows, columns), each)

    def make() -> Quantised:
        codes, scales = elements(weight), scale()
        return Quantised(codes, scales, zeros_like(codes, scales), each[1]).in_whole_blocks()

    return module.tensor(kind, (rows, columns), make)
