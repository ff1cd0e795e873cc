"""Tensors in blocks: a few elements together share a scale, and each is a small integer.

`form.py` says what a format is and what a tensor in blocks is. The formats are those of ggml: `plain.py` has blocks of
32 elements, `nested.py` blocks of 256 whose parts have scales of their own, `coded.py` those whose integers are places
in a table, `grouped.py` those where a code is the place of a few integers at once, and `ternary.py` those of -1, 0 and
1; `narrow.py` has floats alone. Where fields lie was read in ggml's ``ggml-common.h``, what they mean in its
``ggml-quants.c`` and in the Python package ``gguf``, which the tests compare with.
"""

from tract_core.data.blocks.coded import IQ4_NL, IQ4_XS, MXFP4, NVFP4
from tract_core.data.blocks.form import BlockFormat, Blocks, byte_size
from tract_core.data.blocks.grouped import IQ1_M, IQ1_S, IQ2_S, IQ2_XS, IQ2_XXS, IQ3_S, IQ3_XXS
from tract_core.data.blocks.narrow import BF16, F16
from tract_core.data.blocks.nested import Q2_K, Q3_K, Q4_K, Q5_K, Q6_K
from tract_core.data.blocks.plain import Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1, encode_q4_0
from tract_core.data.blocks.ternary import TQ1_0, TQ2_0

__all__ = [
    "BF16",
    "F16",
    "IQ1_M",
    "IQ1_S",
    "IQ2_S",
    "IQ2_XS",
    "IQ2_XXS",
    "IQ3_S",
    "IQ3_XXS",
    "IQ4_NL",
    "IQ4_XS",
    "MXFP4",
    "NVFP4",
    "Q2_K",
    "Q3_K",
    "Q4_0",
    "Q4_1",
    "Q4_K",
    "Q5_0",
    "Q5_1",
    "Q5_K",
    "Q6_K",
    "Q8_0",
    "Q8_1",
    "TQ1_0",
    "TQ2_0",
    "BlockFormat",
    "Blocks",
    "byte_size",
    "encode_q4_0",
]
