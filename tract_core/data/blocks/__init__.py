"""Tensors in blocks: a few elements together share a scale, and each is a small integer.

`form.py` says what a format is and what a tensor in blocks is. The formats are those of ggml: `plain.py` has blocks of
32 elements, `nested.py` blocks of 256 whose parts have scales of their own, `coded.py` those whose integers are places
in a table; `narrow.py` has floats alone. Where fields lie was read in ggml's ``ggml-common.h``, what they mean in its
``ggml-quants.c`` and in the Python package ``gguf``, which the tests compare with.
"""

from tract_core.data.blocks.coded import IQ4_NL, IQ4_XS, MXFP4
from tract_core.data.blocks.form import BlockFormat, Blocks, byte_size
from tract_core.data.blocks.narrow import BF16, F16
from tract_core.data.blocks.nested import Q2_K, Q3_K, Q4_K, Q5_K, Q6_K
from tract_core.data.blocks.plain import Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q8_1, encode_q4_0

__all__ = [
    "BF16",
    "F16",
    "IQ4_NL",
    "IQ4_XS",
    "MXFP4",
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
    "BlockFormat",
    "Blocks",
    "byte_size",
    "encode_q4_0",
]
