"""One tensor as the file of NNEF that holds it."""

from __future__ import annotations

from typing import Any

import torch
from tract_nnef.archive.tensors import tensor_file
from tract_nnef.syntax import ast
from tract_nnef.syntax.names import plain_label
from tract_nnef.writing.expressions import express

from tract_core.errors import InputError, Unsupported
from tract_torch.arguments import of_type
from tract_torch.tensors import array_of
from tract_torch.weights.qtensor import QTensor


def tensor_pieces(name: str, tensor: torch.Tensor) -> tuple[list[Any], list[ast.Quantization]]:
    """The content of the ``.dat`` file of a tensor, on its own memory, and what its integers stand for.

    Raises as `export_tensors_to_nnef`.
    """
    of_type(tensor, torch.Tensor, "it", "a tensor")
    if plain_label(name) != name:
        raise InputError("this is no name of a file", hint=f"call it {plain_label(name)!r}")
    if isinstance(tensor, QTensor):
        return tensor_file(tensor.stored()), []
    if tensor.is_meta:
        raise InputError("it is on the device 'meta', and has no values", hint="load its weights first")
    if tensor.layout is not torch.strided:
        raise Unsupported(f"its layout is {tensor.layout}, which archives have not", hint="call to_dense()")
    if tensor.is_quantized:
        return tensor_file(array_of(tensor.int_repr()), quantised=True), [_line(name, tensor)]
    return tensor_file(array_of(tensor)), []


def _line(name: str, tensor: torch.Tensor) -> ast.Quantization:
    if tensor.qscheme() not in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        hint = "quantise it with one scale for all, or export dequantize() of it"
        raise Unsupported(f"it is quantised {tensor.qscheme()}, graph.quant has one scale for a tensor", hint=hint)
    values = {
        "zero_point": tensor.q_zero_point(),
        "scale": tensor.q_scale(),
        "bits": 8 * tensor.element_size(),
        "signed": tensor.dtype is not torch.quint8,
        "symmetric": tensor.q_zero_point() == 0,
    }
    arguments = tuple(ast.Argument(key, express(value)) for key, value in values.items())
    return ast.Quantization(name, ast.Invocation("zero_point_linear_quantize", arguments))
