"""Operators on one tensor, element by element, of PyTorch in the catalogue."""

from __future__ import annotations

import torch
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from catalogue.entry import one

ENTRIES = [
    *(one(getattr(torch, name)) for name in ("cos", "cosh", "erf", "exp", "sigmoid", "sin", "sinh", "tan", "tanh")),
    *(one(getattr(torch, name)) for name in ("abs", "neg", "sign", "ceil", "floor", "round", "relu", "atan", "asinh")),
    *(one(getattr(torch, name), make="positive") for name in ("log", "sqrt", "rsqrt", "reciprocal", "log2", "log1p")),
    *(one(getattr(torch, name), make="unit") for name in ("acos", "asin", "atanh")),
    *(one(getattr(torch, name)) for name in ("square", "exp2", "expm1", "trunc", "frac", "erfc", "sinc", "logit")[:4]),
    one(torch.acosh, make="above one"),
    *(one(getattr(F, name)) for name in ("gelu", "silu", "elu", "selu", "mish", "softplus", "hardswish", "relu6")),
    *(one(getattr(F, name)) for name in ("hardsigmoid", "leaky_relu", "logsigmoid", "softsign", "tanhshrink", "celu")),
    one(lambda x: F.gelu(x, approximate="tanh"), "gelu, tanh"),
    one(lambda x: x.clamp(-0.5, 0.7), "clamp"),
    one(lambda x: x.clamp(min=0.1), "clamp, from below"),
    one(lambda x: F.hardtanh(x, -0.3, 0.4), "hardtanh"),
    one(torch.isnan, make="special"),
    one(torch.isinf, make="special"),
    one(torch.isfinite, make="special"),
    one(torch.nan_to_num, "nan_to_num", make="special"),
    one(torch.logical_not, make="integers", shape="S,3,i64"),
    one(torch.bitwise_not, make="integers", shape="S,3,i64"),
    one(torch.exp, "exp of integers", make="integers", shape="S,3,i64"),
]
