"""Operators of PyTorch, each as a function with inputs to call it with: what `test_operators` goes through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

Tensors = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Entry:
    """``call``: the operator. ``inputs``: shapes, with types; a letter is a size that may be another one.

    ``make``: how the elements are drawn, where not from the normal distribution. ``tolerance``: relative and absolute.
    """

    name: str
    call: Callable[..., Any]
    inputs: tuple[str, ...]
    make: str = "normal"
    tolerance: float = 1e-5

    def __str__(self) -> str:
        return self.name


def one(call: Callable[..., Any], name: str = "", make: str = "normal", shape: str = "S,3,f32") -> Entry:
    return Entry(name or getattr(call, "__name__", "?"), call, (shape,), make)


def two(call: Callable[..., Any], name: str = "", make: str = "normal", kind: str = "f32") -> Entry:
    return Entry(name or call.__name__, call, (f"S,3,{kind}", f"1,3,{kind}"), make)


ELEMENTWISE = [
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

BINARY = [
    *(two(getattr(torch, name)) for name in ("add", "sub", "mul", "maximum", "minimum")),
    *(two(getattr(torch, name), make="positive") for name in ("div", "pow", "fmod", "remainder", "floor_divide")),
    *(two(getattr(torch, name), make="integers") for name in ("eq", "ne", "lt", "le", "gt", "ge")),
    *(two(getattr(torch, name), make="integers", kind="i64") for name in ("add", "mul", "logical_and", "logical_xor")),
    *(two(getattr(torch, f"bitwise_{name}"), make="integers", kind="i64") for name in ("and", "or", "xor")),
    two(torch.remainder, "remainder, any signs"),
    two(lambda a, b: torch.div(a, b, rounding_mode="floor"), "div, floor"),
    two(lambda a, b: torch.div(a, b, rounding_mode="trunc"), "div, trunc"),
    two(lambda a, b: torch.add(a, b, alpha=2.5), "add with alpha"),
    two(lambda a, b: 1 - a * 2 + b / 3, "numbers"),
    two(lambda a, b: torch.where(a > b, a, b), "where"),
    two(lambda a, b: torch.lerp(a, b, 0.3), "lerp"),
    two(lambda a, b: torch.addcmul(a, a, b, value=0.5), "addcmul"),
    two(lambda a, b: a.masked_fill(a > b, 0.25), "masked_fill"),
    Entry("types are promoted", lambda a, b: a + b, ("S,3,i64", "3,f32"), "integers"),
    Entry("bool times float", lambda a, b: (a > 0) * b, ("S,3,f32", "3,f32")),
    Entry("integers divided", lambda a, b: a / (b * b + 1), ("S,3,i64", "3,i64"), "integers"),
]

REDUCTIONS = [
    *(one(getattr(torch, name)) for name in ("sum", "mean", "amax", "amin", "prod", "argmax", "var", "std", "max")),
    *(
        one(lambda x, name=name: getattr(torch, name)(x, dim=1, keepdim=True), f"{name}, one axis")
        for name in ("sum", "mean", "amax", "argmin", "argmax", "var", "logsumexp", "any", "all", "prod", "norm")
    ),
    one(lambda x: x.sum((0, -1)), "sum, two axes", shape="2,S,3,f32"),
    one(lambda x: x.max(dim=1)[0], "max, one axis"),
    one(lambda x: x.any(), "any", make="integers", shape="S,3,i64"),
    one(lambda x: x.sum(), "sum of booleans", make="integers", shape="S,3,i64"),
    one(lambda x: torch.softmax(x, -1), "softmax"),
    one(lambda x: torch.log_softmax(x, 0), "log_softmax"),
]

SHAPES = [
    one(lambda x: x.reshape(-1, 6), "reshape", shape="S,4,3,f32"),
    one(lambda x: x.view(x.shape[0], -1), "view", shape="S,4,3,f32"),
    one(lambda x: x.permute(2, 0, 1), "permute", shape="S,4,3,f32"),
    one(lambda x: x.transpose(-1, 0), "transpose", shape="S,4,3,f32"),
    one(lambda x: x.t(), "t"),
    one(lambda x: x.unsqueeze(-1).squeeze(1), "unsqueeze and squeeze", shape="S,1,3,f32"),
    one(lambda x: x.expand(4, -1, -1), "expand"),
    one(lambda x: x.repeat(2, 3), "repeat"),
    one(lambda x: x.flatten(), "flatten"),
    one(lambda x: x[1:], "slice"),
    one(lambda x: x[:, 0], "select"),
    one(lambda x: x[-1], "the last"),
    one(lambda x: x[:, ::2], "every second"),
    one(lambda x: torch.cat([x, x * 2], 0), "cat"),
    one(lambda x: torch.stack([x, x + 1], 1), "stack"),
    one(lambda x: torch.cat(x.chunk(3, 1)[::-1], 1), "chunk"),
    one(lambda x: x.split([1, 2], 1)[1], "split"),
    one(lambda x: torch.cat([part * 2 for part in x.unbind(1)]), "unbind"),
    one(lambda x: torch.zeros_like(x) + torch.ones(3) + torch.full((1,), 2.0), "zeros, ones, full"),
    one(lambda x: x + torch.arange(x.shape[0]).unsqueeze(1), "arange"),
    one(lambda x: x.to(torch.float64).to(torch.int64), "to"),
    one(lambda x: x.half().float(), "half"),
    one(lambda x: x * x.shape[0] + x.numel(), "sizes as numbers"),
    one(lambda x: F.pad(x, (1, 2)), "pad"),
    one(lambda x: torch.tril(torch.ones(3, 3)) @ x.t(), "tril"),
    one(lambda x: x.flip(1), "flip"),
    Entry("index_select", lambda x, i: x.index_select(1, i), ("S,3,f32", "2,i64"), "below three"),
    Entry("gather", lambda x, i: x.gather(1, i), ("4,3,f32", "4,2,i64"), "below three"),
    Entry("index by a matrix", lambda x, i: x[:, i], ("S,3,4,f32", "2,5,i64"), "below three"),
    Entry("index by two", lambda x, i, j: x[i, j], ("3,3,S,f32", "5,i64", "2,5,i64"), "below three"),
    Entry("index by two behind", lambda x, i, j: x[:, i, j], ("S,3,3,4,f32", "5,i64", "2,5,i64"), "below three"),
    Entry("index by two apart", lambda x, i, j: x[i, :, j], ("3,S,3,f32", "5,i64", "2,1,i64"), "below three"),
    Entry("cumsum", lambda x: x.cumsum(-1), ("S,4,f32",)),
    Entry("cumsum of integers", lambda x: x.cumsum(0), ("S,4,i64",)),
    Entry("embedding", lambda w, i: F.embedding(i, w), ("3,4,f32", "S,i64"), "below three"),
]

PRODUCTS = [
    Entry("mm", torch.mm, ("S,3,f32", "3,4,f32")),
    Entry("bmm", torch.bmm, ("2,S,3,f32", "2,3,4,f32")),
    Entry("matmul", torch.matmul, ("2,S,3,f32", "3,4,f32")),
    Entry("mv", torch.mv, ("S,3,f32", "3,f32")),
    Entry("linear", F.linear, ("2,S,3,f32", "4,3,f32", "4,f32")),
    Entry("linear without bias", F.linear, ("S,3,f32", "4,3,f32")),
    Entry("addmm", lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), ("4,f32", "S,3,f32", "3,4,f32")),
    Entry("einsum", lambda a, b: torch.einsum("bij,bjk->bik", a, b), ("2,S,3,f32", "2,3,4,f32")),
    Entry("outer", torch.outer, ("S,f32", "3,f32")),
    Entry("conv1d", F.conv1d, ("2,3,9,f32", "4,3,3,f32", "4,f32")),
    Entry("conv2d", lambda x, w: F.conv2d(x, w, stride=2, padding=1), ("S,3,8,9,f32", "4,3,3,3,f32")),
    Entry("conv2d, groups", lambda x, w: F.conv2d(x, w, groups=3, dilation=2), ("S,3,8,9,f32", "6,1,3,3,f32")),
    Entry("conv2d, same", lambda x, w: F.conv2d(x, w, padding="same"), ("S,3,8,9,f32", "4,3,3,3,f32")),
    Entry("conv3d", F.conv3d, ("1,2,5,6,7,f32", "3,2,2,2,2,f32")),
    Entry(
        "conv_transpose2d",
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1),
        ("S,4,5,6,f32", "4,3,3,3,f32"),
    ),
    Entry(
        "conv_transpose1d, groups",
        lambda x, w: F.conv_transpose1d(x, w, stride=2, groups=2),
        ("2,4,5,f32", "4,3,3,f32"),
    ),
    Entry("conv2d of one item", F.conv2d, ("3,8,9,f32", "4,3,3,3,f32")),
    Entry("attention", F.scaled_dot_product_attention, ("2,3,S,4,f32", "2,3,5,4,f32", "2,3,5,4,f32")),
    Entry(
        "attention, causal",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        ("2,3,5,4,f32", "2,3,5,4,f32", "2,3,5,4,f32"),
    ),
    Entry(
        "attention, grouped",
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True),
        ("2,4,S,4,f32", "2,2,5,4,f32", "2,2,5,4,f32"),
    ),
]

NORMS_AND_POOLS = [
    Entry("layer_norm", lambda x, w, b: F.layer_norm(x, (3,), w, b), ("S,4,3,f32", "3,f32", "3,f32")),
    Entry("layer_norm, two axes", lambda x: F.layer_norm(x, (4, 3)), ("S,4,3,f32",)),
    Entry("group_norm", lambda x, w, b: F.group_norm(x, 2, w, b), ("S,4,3,f32", "4,f32", "4,f32")),
    Entry("rms_norm", lambda x, w: F.rms_norm(x, (3,), w), ("S,4,3,f32", "3,f32")),
    Entry("instance_norm", F.instance_norm, ("2,4,9,f32",)),
    Entry("batch_norm", F.batch_norm, ("S,4,3,f32", "4,f32", "4,f32"), make="positive"),
    Entry("normalize", lambda x: F.normalize(x, dim=1), ("S,4,f32",)),
    Entry("max_pool2d", lambda x: F.max_pool2d(x, 2), ("S,2,6,7,f32",)),
    Entry("max_pool2d, ceil", lambda x: F.max_pool2d(x, 3, 2, 1, ceil_mode=True), ("S,2,6,7,f32",)),
    Entry("max_pool1d", lambda x: F.max_pool1d(x, 3, 2), ("2,2,9,f32",)),
    Entry("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, 1), ("S,2,6,7,f32",)),
    Entry("avg_pool2d, without pads", lambda x: F.avg_pool2d(x, 3, 2, 1, count_include_pad=False), ("S,2,6,7,f32",)),
    Entry("avg_pool1d", lambda x: F.avg_pool1d(x, 2), ("2,2,8,f32",)),
    Entry("adaptive_avg_pool2d, 1", lambda x: F.adaptive_avg_pool2d(x, 1), ("S,2,6,8,f32",)),
    Entry("adaptive_avg_pool2d, even", lambda x: F.adaptive_avg_pool2d(x, (3, 2)), ("S,2,6,8,f32",)),
]

CATALOGUE = [*ELEMENTWISE, *BINARY, *REDUCTIONS, *SHAPES, *PRODUCTS, *NORMS_AND_POOLS]
