"""Makes `quantised.safetensors`: matrices that the field's own packages quantise, and what numbers they make of these.

It is run by hand, in an environment with torch, transformers, compressed-tensors, gptqmodel and bitsandbytes (the last
two without what they depend on, and with pypcre, logbar, tokenicer, defuser, device-smi, threadpoolctl, dill, pillow):
python make_quantised.py
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from bitsandbytes.functional import int8_vectorwise_dequant, int8_vectorwise_quant
from compressed_tensors.compressors.base import BaseCompressor
from compressed_tensors.quantization import QuantizationArgs, QuantizationScheme
from compressed_tensors.quantization.utils import calculate_qparams
from gptqmodel.nn_modules.qlinear.torch import TorchLinear
from gptqmodel.quantization.awq.utils.packing_utils import dequantize_gemm, pack_awq
from gptqmodel.utils.model_dequant import _revert_gptq_v1_qzeros_correction
from safetensors.torch import save_file
from transformers.integrations.finegrained_fp8 import _dequantize_fp8_weight
from transformers.integrations.mxfp4 import convert_moe_packed_tensors

ROWS, COLUMNS, KEPT = 32, 64, 8
"""Sizes of matrices, and how many rows of their numbers are kept."""

Case = tuple[str, dict[str, Any], dict[str, torch.Tensor], torch.Tensor]
"""Name, ``quantization_config``, the tensors of a layer, and the matrix."""

torch.manual_seed(5)


def matrix() -> torch.Tensor:
    return torch.randn(ROWS, COLUMNS) * 0.1


def gptq() -> Iterator[Case]:
    for bits, version, mixed in [(2, 1, False), (3, 1, True), (4, 1, False), (4, 2, True), (8, 1, False)]:
        linear = torch.nn.Linear(COLUMNS, ROWS, bias=False)
        linear.weight.data = matrix()
        groups = torch.arange(COLUMNS) // 32
        groups = groups[torch.randperm(COLUMNS)] if mixed else groups
        lows, highs = ([one(linear.weight[:, groups == group]) for group in range(2)] for one in (low, high))
        scales = ((torch.stack(highs, 1) - torch.stack(lows, 1)) / (2**bits - 1)).half().float()
        zeros = torch.round(-torch.stack(lows, 1) / scales).clamp(0, 2**bits - 1)
        layer = TorchLinear(bits, 32, sym=False, desc_act=mixed, in_features=COLUMNS, out_features=ROWS)
        layer.pack(linear, scales, zeros, groups.int())
        layer.post_init()
        layer.scales = layer.scales.float()
        exact = layer.dequantize_weight().T
        parts = {name: getattr(layer, name) for name in ("qweight", "qzeros", "scales", "g_idx")}
        if version == 1:
            parts["qzeros"] = _revert_gptq_v1_qzeros_correction(parts["qzeros"], bits)
        parts |= {"scales": parts["scales"].half(), "g_idx": parts["g_idx"].int()}
        format_ = "gptq" if version == 1 else "gptq_v2"
        said = {"quant_method": "gptq", "bits": bits, "group_size": 32, "desc_act": mixed, "checkpoint_format": format_}
        yield f"gptq-{bits}-{version}", said, parts, exact


def low(part: torch.Tensor) -> torch.Tensor:
    return part.min(1).values.clamp(max=0)


def high(part: torch.Tensor) -> torch.Tensor:
    return part.max(1).values.clamp(min=0)


def awq() -> Iterator[Case]:
    integers, zeros = torch.randint(0, 16, (COLUMNS, ROWS)), torch.randint(0, 16, (2, ROWS))
    scales = (torch.rand(2, ROWS) * 0.02).half()
    words, packed = pack_awq(integers, zeros, 4)
    exact = dequantize_gemm(words, packed, scales.float(), 4, 32).T
    said = {"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm", "zero_point": True}
    yield "awq", said, {"qweight": words, "qzeros": packed, "scales": scales}, exact


def compressed() -> Iterator[Case]:
    group, rows = {"strategy": "group", "group_size": 16}, {"strategy": "channel"}
    for name, format_, given in [
        ("packed-4", "pack-quantized", {"num_bits": 4, **group}),
        ("packed-4-zeros", "pack-quantized", {"num_bits": 4, "symmetric": False, **group}),
        ("packed-8-rows", "pack-quantized", {"num_bits": 8, **rows}),
        ("int-zeros", "int-quantized", {"num_bits": 8, "symmetric": False, **rows}),
        ("float", "float-quantized", {"num_bits": 8, "type": "float", **rows}),
        ("mxfp4", "mxfp4-pack-quantized", {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32}),
    ]:
        arguments = QuantizationArgs(**given)
        weight, size = matrix(), given.get("group_size", COLUMNS)
        blocks = weight.reshape(ROWS, -1, size)
        scales, zeros = calculate_qparams(blocks.amin(-1), blocks.amax(-1), arguments)
        scheme = QuantizationScheme(targets=["Linear"], weights=arguments, format=format_)
        compressor = BaseCompressor.get_value_from_registry(format_)
        state = {"weight": weight, "weight_scale": scales, "weight_zero_point": zeros}
        parts = compressor.compress(state, scheme)
        exact = compressor.decompress(dict(parts), scheme)["weight"]
        said = {"quant_method": "compressed-tensors", "format": format_}
        groups = {"group_0": json.loads(scheme.model_dump_json())}
        yield f"compressed-{name}", {**said, "config_groups": groups}, parts, exact


def others() -> Iterator[Case]:
    weight = matrix()
    scales = weight.reshape(2, 16, 2, 32).abs().amax((1, 3)) / 448
    narrow = (weight / scales.repeat_interleave(16, 0).repeat_interleave(32, 1)).to(torch.float8_e4m3fn)
    exact = _dequantize_fp8_weight(narrow, scales, [16, 32], torch.float32)
    said = {"quant_method": "fp8", "weight_block_size": [16, 32], "activation_scheme": "dynamic", "fmt": "e4m3"}
    yield "fp8", said, {"weight": narrow, "weight_scale_inv": scales}, exact
    blocks = torch.randint(0, 256, (1, ROWS, 2, 16), dtype=torch.uint8)
    powers = torch.randint(118, 126, (1, ROWS, 2), dtype=torch.uint8)
    exact = convert_moe_packed_tensors(blocks, powers, dtype=torch.float32)[0].T
    yield "gpt-oss", {"quant_method": "mxfp4"}, {"_blocks": blocks, "_scales": powers}, exact
    integers, largest, _ = int8_vectorwise_quant(matrix().half())
    exact = int8_vectorwise_dequant(integers, largest)
    yield (
        "llm-int8",
        {"quant_method": "bitsandbytes", "load_in_8bit": True},
        {"weight": integers, "SCB": largest},
        exact,
    )


def save() -> None:
    tensors, said = {}, {}
    for name, config, parts, exact in [*gptq(), *awq(), *compressed(), *others()]:
        said[name] = json.dumps(config)
        for part, tensor in parts.items():
            tensors[f"{name}/layer{'' if part.startswith('_') else '.'}{part}"] = tensor.detach().contiguous()
        tensors[f"{name}/exact"] = exact.detach()[:KEPT].float().contiguous()
    save_file(tensors, Path(__file__).with_name("quantised.safetensors"), said)


if __name__ == "__main__":
    save()
