"""Matrices as each method of quantisation writes them, by what its publication says; nothing of ours is used.

A method takes the name of a linear layer and a matrix [N,K]; it gives the tensors of a folder, and the numbers that
they stand for, in f64. Bits are put together in integers of Python.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
Method = Callable[[str, Array], tuple[dict[str, Array], Array]]


def words(integers: Array, bits: int) -> Array:
    """Integers [n, count] as words [n, ceil(count * bits / 32)]: one long number for each row, the first one lowest."""
    count = -(-integers.shape[1] * bits // 32)
    rows = [sum(int(one) << bits * place for place, one in enumerate(row)) for row in integers]
    return np.array([[row >> 32 * place & 0xFFFFFFFF for place in range(count)] for row in rows], np.uint32).view("i4")


def steps(matrix: Array, groups: Array, bits: int, *, symmetric: bool) -> tuple[Array, Array, Array]:
    """Integers [N,K] from 0 on, scales [N,G] in f16 and zeros [N,G], for the group of each column."""
    top = (1 << bits) - 1
    count = int(groups.max()) + 1
    scales, zeros = np.empty((len(matrix), count), np.float16), np.empty((len(matrix), count), np.int64)
    for group in range(count):
        part = matrix[:, groups == group]
        low, high = np.minimum(part.min(1), 0), np.maximum(part.max(1), 0)
        if symmetric:
            high = np.maximum(-low, high)
            low = -high
        scales[:, group] = np.maximum((high - low) / top, 1e-4)
        zeros[:, group] = (top + 1) // 2 if symmetric else np.clip(np.round(-low / scales[:, group]), 1, top)
    found = np.round(matrix / scales[:, groups]) + zeros[:, groups]
    return np.clip(found, 0, top).astype(np.int64), scales, zeros


def numbers(integers: Array, scales: Array, zeros: Array, groups: Array) -> Array:
    return (integers - zeros[:, groups]) * scales.astype(np.float64)[:, groups]


def mixed_groups(columns: int, size: int) -> Array:
    """The group of each column, in no order: what ``desc_act`` gives."""
    return np.random.default_rng(columns).permutation(np.arange(columns) // size)


def gptq(
    name: str, matrix: Array, *, bits: int, group: int, symmetric: bool = False, mixed: bool = False, version: int = 1
) -> tuple[dict[str, Array], Array]:
    columns = matrix.shape[1]
    size = columns if group == -1 else group
    groups = mixed_groups(columns, size) if mixed else np.arange(columns) // size
    integers, scales, zeros = steps(matrix, groups, bits, symmetric=symmetric)
    stored = zeros - 1 if version == 1 else zeros
    tensors = {
        f"{name}.qweight": np.ascontiguousarray(words(integers, bits).T),
        f"{name}.qzeros": words(stored.T, bits),
        f"{name}.scales": np.ascontiguousarray(scales.T),
        f"{name}.g_idx": groups.astype(np.int32),
    }
    return tensors, numbers(integers, scales, zeros, groups)


def awq(name: str, matrix: Array, *, group: int) -> tuple[dict[str, Array], Array]:
    groups = np.arange(matrix.shape[1]) // group
    integers, scales, zeros = steps(matrix, groups, 4, symmetric=False)

    def in_turn(of_rows: Array) -> Array:
        """Of each eight neighbours, first those at even places: [n, N / 8]"""
        eights = of_rows.reshape(len(of_rows), -1, 8)
        turned = np.concatenate([eights[..., 0::2], eights[..., 1::2]], -1)
        return words(turned.reshape(of_rows.shape), 4)

    tensors = {
        f"{name}.qweight": in_turn(integers.T),
        f"{name}.qzeros": in_turn(zeros.T),
        f"{name}.scales": np.ascontiguousarray(scales.T),
    }
    return tensors, numbers(integers, scales, zeros, groups)


def packed(
    name: str, matrix: Array, *, bits: int, group: int, symmetric: bool = True, mixed: bool = False
) -> tuple[dict[str, Array], Array]:
    """pack-quantized of compressed-tensors"""
    rows, columns = matrix.shape
    size = columns if group == -1 else group
    groups = mixed_groups(columns, size) if mixed else np.arange(columns) // size
    integers, scales, zeros = steps(matrix, groups, bits, symmetric=symmetric)
    tensors = {
        f"{name}.weight_packed": words(integers, bits),
        f"{name}.weight_shape": np.array([rows, columns]),
        f"{name}.weight_scale": scales,
    }
    if not symmetric:
        tensors[f"{name}.weight_zero_point"] = np.ascontiguousarray(words(zeros.T, bits).T)
    if mixed:
        tensors[f"{name}.weight_g_idx"] = groups.astype(np.int32)
    return tensors, numbers(integers, scales, zeros, groups)


def int_quantized(name: str, matrix: Array, *, group: int, symmetric: bool = True) -> tuple[dict[str, Array], Array]:
    columns = matrix.shape[1]
    groups = np.arange(columns) // (columns if group == -1 else group)
    integers, scales, zeros = steps(matrix, groups, 8, symmetric=symmetric)
    scales = scales.astype(ml_dtypes.bfloat16)
    tensors = {f"{name}.weight": (integers - 128).astype(np.int8), f"{name}.weight_scale": scales}
    if not symmetric:
        tensors[f"{name}.weight_zero_point"] = (zeros - 128).astype(np.int8)
    return tensors, numbers(integers, scales, zeros, groups)


def float8(
    name: str, matrix: Array, *, block: tuple[int, int] | None, part: str, kind: Any = np.float32, shape: Any = None
) -> tuple[dict[str, Array], Array]:
    """Blocks of rows and columns share the power, or the number, of which the largest becomes 448."""
    rows, columns = block or matrix.shape
    counts = -(-matrix.shape[0] // rows), -(-matrix.shape[1] // columns)
    scales = np.empty(counts, kind)
    of_each = np.ix_(np.arange(matrix.shape[0]) // rows, np.arange(matrix.shape[1]) // columns)
    for row, column in np.ndindex(counts):
        here = matrix[row * rows : (row + 1) * rows, column * columns : (column + 1) * columns]
        scales[row, column] = np.abs(here).max() / 448
    narrow = np.clip(matrix / scales.astype(np.float32)[of_each], -448, 448).astype(ml_dtypes.float8_e4m3fn)
    tensors = {f"{name}.weight": narrow, f"{name}.{part}": scales if shape is None else scales.reshape(shape)}
    return tensors, narrow.astype(np.float64) * scales.astype(np.float64)[of_each]


FP4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


def mxfp4(name: str, matrix: Array, *, packed: bool = False) -> tuple[dict[str, Array], Array]:
    rows, columns = matrix.shape
    blocks = matrix.reshape(rows, -1, 32)
    powers = np.floor(np.log2(np.abs(blocks).max(-1))) - 2
    codes = np.abs(blocks[..., None] / 2.0 ** powers[..., None, None] - FP4).argmin(-1)
    halves = (codes[..., 0::2] | codes[..., 1::2] << 4).astype(np.uint8)
    scales = (powers + 127).astype(np.uint8)
    numbers = (FP4[codes] * 2.0 ** powers[..., None]).reshape(rows, columns)
    if packed:
        return {f"{name}.weight_packed": halves.reshape(rows, -1), f"{name}.weight_scale": scales}, numbers
    return {f"{name}_blocks": halves, f"{name}_scales": scales}, numbers


def llm_int8(name: str, matrix: Array) -> tuple[dict[str, Array], Array]:
    largest = np.abs(matrix).max(1).astype(np.float32)
    integers = np.round(matrix / largest[:, None] * 127).astype(np.int8)
    return {f"{name}.weight": integers, f"{name}.SCB": largest}, integers * largest.astype(np.float64)[:, None] / 127


def groups_of(**weights: object) -> dict[str, object]:
    """``quantization_config`` of compressed-tensors with one group of layers."""
    return {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, "input_activations": None}},
    }


def _gptq(**said: Any) -> tuple[dict[str, object], Method]:
    version = "gptq_v2" if said.get("version") == 2 else "gptq"
    config = {"quant_method": "gptq", "bits": said["bits"], "group_size": said["group"], "checkpoint_format": version}
    return config | {"sym": said.get("symmetric", False), "desc_act": said.get("mixed", False)}, partial(gptq, **said)


def _packed(bits: int, group: int, **said: Any) -> tuple[dict[str, object], Method]:
    strategy = {"strategy": "channel"} if group == -1 else {"strategy": "group", "group_size": group}
    symmetric = said.get("symmetric", True)
    config = groups_of(num_bits=bits, type="int", symmetric=symmetric, **strategy) | {"format": "pack-quantized"}
    return config, partial(packed, bits=bits, group=group, **said)


def _int(group: int, strategy: str, **said: Any) -> tuple[dict[str, object], Method]:
    size = {"group_size": group} if group > 0 else {}
    arguments = groups_of(num_bits=8, type="int", symmetric=said.get("symmetric", True), strategy=strategy, **size)
    return arguments | {"format": "int-quantized"}, partial(int_quantized, group=group, **said)


def _float(strategy: str, **said: Any) -> tuple[dict[str, object], Method]:
    blocks = {"block_structure": list(said["block"])} if strategy == "block" else {}
    arguments = groups_of(num_bits=8, type="float", strategy=strategy, **blocks) | {"format": "float-quantized"}
    return arguments, partial(float8, part="weight_scale", **said)


def _fp8(**said: Any) -> tuple[dict[str, object], Method]:
    size = said.get("block")
    config = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": size and list(size)}
    return config, partial(float8, part="weight_scale_inv", **said)


def _rows_in_float8(name: str, matrix: Array) -> tuple[dict[str, Array], Array]:
    return float8(name, matrix, block=(1, matrix.shape[1]), part="weight_scale")


METHODS: Mapping[str, tuple[dict[str, object], Method]] = {
    "gptq-4": _gptq(bits=4, group=32),
    "gptq-4-symmetric": _gptq(bits=4, group=32, symmetric=True),
    "gptq-4-v2": _gptq(bits=4, group=16, version=2),
    "gptq-4-act-order": _gptq(bits=4, group=16, mixed=True),
    "gptq-4-whole-rows": _gptq(bits=4, group=-1),
    "gptq-4-short-end": _gptq(bits=4, group=80),
    "gptq-2": _gptq(bits=2, group=16),
    "gptq-2-symmetric": _gptq(bits=2, group=32, symmetric=True),
    "gptq-3": _gptq(bits=3, group=32),
    "gptq-3-act-order": _gptq(bits=3, group=32, mixed=True, symmetric=True),
    "gptq-8": _gptq(bits=8, group=32),
    "gptq-8-v2-symmetric": _gptq(bits=8, group=16, symmetric=True, version=2),
    "awq": ({"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm"}, partial(awq, group=32)),
    "packed-4": _packed(4, 32),
    "packed-4-zeros": _packed(4, 16, symmetric=False),
    "packed-4-rows": _packed(4, -1),
    "packed-4-act-order": _packed(4, 32, mixed=True),
    "packed-8": _packed(8, 32),
    "packed-8-zeros": _packed(8, 32, symmetric=False),
    "int-rows": _int(-1, "channel"),
    "int-rows-zeros": _int(-1, "channel", symmetric=False),
    "int-groups": _int(32, "group"),
    "float-rows": (_float("channel", block=None)[0], _rows_in_float8),
    "float-one": _float("tensor", block=None, shape=(1,), kind=ml_dtypes.bfloat16),
    "float-blocks": _float("block", block=(24, 32)),
    "fp8-blocks": _fp8(block=(24, 32)),
    "fp8-blocks-short-ends": _fp8(block=(40, 80), kind=ml_dtypes.bfloat16),
    "fp8-one": _fp8(block=None, shape=()),
    "fbgemm": ({"quant_method": "fbgemm_fp8"}, _rows_in_float8),
    "mxfp4": ({"quant_method": "mxfp4"}, mxfp4),
    "mxfp4-packed": (
        groups_of(num_bits=4, type="float", group_size=32) | {"format": "mxfp4-pack-quantized"},
        partial(mxfp4, packed=True),
    ),
    "llm-int8": ({"quant_method": "bitsandbytes", "load_in_8bit": True}, llm_int8),
}
"""``quantization_config``, and what writes a matrix."""
