"""GPTQ (Frantar et al., arXiv:2210.17323), as AutoGPTQ and GPTQModel write it.

For a matrix [N,K] of B bits and G groups of columns: ``qweight`` [K * B / 32, N], words along K, the lowest bits first;
``scales`` [G,N]; ``qzeros`` [G, N * B / 32], words along N; ``g_idx`` [K], the group of each column. Integers of 3 bits
go on in the next word. In the first version of the format zeros are stored as one less.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.errors import CorruptModel, Unsupported
from tract_gguf.folders.quantised.integers import TYPES, WIDTHS, in_type, unpacked, words_for
from tract_gguf.folders.quantised.module import Module, Settings, elements, ordered, scales_of
from tract_gguf.reading.quantised import Quantised, QuantisedTensor

PARTS: Final = ("qweight", "qzeros", "scales", "g_idx")


def gptq(settings: Settings, module: Module) -> QuantisedTensor:
    """The matrix of a module. Raises ModelError."""
    words = module.matrix("qweight", ("i32",))
    bits, columns = _sizes(settings, module, words.shape[0])
    rows = words.shape[1]
    group = settings.group("group_size", columns)
    count = -(-columns // group)
    scale = module.part("scales", ("f16", "f32", "bf16"), (count, rows))
    zeros = module.part("qzeros", ("i32",), (count, words_for(rows, bits)))
    groups = module.part("g_idx", ("i32",), (columns,)) if "g_idx" in module.parts else None
    version = settings.one_of("checkpoint_format", ("gptq", "gptq_v2"), settings.said.get("format") or "gptq")

    def make() -> Quantised:
        held = elements(words)
        codes = unpacked(held.T, bits, columns)
        order = None if groups is None else ordered(groups, columns, group)
        codes = in_type(codes if order is None else codes[:, order], bits, held)
        zero = unpacked(elements(zeros), bits, rows)
        if version == "gptq":
            zero = zero + np.uint8(1) & np.uint8((1 << bits) - 1)
        turned = np.ascontiguousarray(scales_of(scale).T), np.ascontiguousarray(zero.T).view(TYPES[bits].numpy)
        return Quantised(codes, *turned, group, order).in_whole_blocks()

    return module.tensor("gptq", (rows, columns), make)


def _sizes(settings: Settings, module: Module, words: int) -> tuple[int, int]:
    """Bits of the integers, and how many columns there are."""
    if settings.said.get("is_marlin_format") or settings.said.get("dynamic"):
        raise Unsupported(
            "config.json has weights of GPTQ in the order of Marlin, or of several kinds, which is not read"
        )
    bits = settings.one_of("bits", WIDTHS)
    if words * 32 % bits:
        raise CorruptModel(
            f"{words} words hold no whole number of integers of {bits} bits", where=f"{module.name!r:.200}"
        )
    return bits, words * 32 // bits
