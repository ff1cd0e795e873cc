"""Small networks of random weights, written by the package ``gguf``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type

LAYERS, WIDTH, HEADS, KEY_HEADS, UNITS, VOCABULARY = 2, 64, 4, 2, 96, 96

COMMON: Mapping[str, Any] = {
    "block_count": LAYERS,
    "context_length": 32,
    "embedding_length": WIDTH,
    "feed_forward_length": UNITS,
    "attention.head_count": HEADS,
}
RMS: Mapping[str, Any] = {"attention.head_count_kv": KEY_HEADS, "attention.layer_norm_rms_epsilon": 1e-5}
EXPERTS: Mapping[str, Any] = {"expert_count": 5, "expert_used_count": 3, "expert_feed_forward_length": 32}
OF: Mapping[str, Mapping[str, Any]] = {
    "llama": {**RMS, "rope.dimension_count": 16, "rope.freq_base": 10000.0},
    "qwen2": {**RMS, "rope.freq_base": 1e6},
    "qwen3": {**RMS, "rope.freq_base": 1e6, "attention.key_length": 32, "attention.value_length": 32},
    "qwen2moe": {**RMS, **EXPERTS, "rope.freq_base": 1e6},
    "qwen3moe": {**RMS, **EXPERTS, "rope.freq_base": 1e6, "attention.key_length": 32, "attention.value_length": 32},
    "olmoe": {**RMS, **EXPERTS},
    "granitemoe": {**RMS, **EXPERTS},
    "gpt-oss": {
        **RMS,
        **EXPERTS,
        "attention.key_length": 32,
        "attention.value_length": 32,
        "attention.sliding_window": 4,
        "rope.freq_base": 150000.0,
        "rope.scaling.type": "yarn",
        "rope.scaling.factor": 4.0,
        "rope.scaling.original_context_length": 64,
    },
    "phi3": {**RMS, "rope.dimension_count": 16, "rope.freq_base": 10000.0},
    "gpt2": {"attention.layer_norm_epsilon": 1e-5},
    "gemma": {**RMS, "attention.key_length": 32, "attention.value_length": 32},
    "gemma2": {
        **RMS,
        "attention.key_length": 32,
        "attention.value_length": 32,
        "attention.sliding_window": 4,
        "attn_logit_softcapping": 5.0,
        "final_logit_softcapping": 3.0,
    },
    "gemma3": {
        **RMS,
        "attention.key_length": 32,
        "attention.value_length": 32,
        "attention.sliding_window": 4,
        "rope.freq_base": 1e6,
        "rope.scaling.type": "linear",
        "rope.scaling.factor": 8.0,
        "block_count": 6,
    },
}
"""What a file of each architecture says of its network, beside what all do."""


def shapes(architecture: str, said: Mapping[str, Any], *, tied: bool) -> dict[str, tuple[int, ...]]:
    """The weights of a network, in the order of the file."""
    width = said["embedding_length"]
    size = said.get("attention.key_length", width // HEADS)
    queries, keys = HEADS * size, said.get("attention.head_count_kv", HEADS) * size
    biased = architecture == "gpt2"
    found: dict[str, tuple[int, ...]] = {"token_embd.weight": (VOCABULARY, width), "output_norm.weight": (width,)}
    if biased:
        found |= {"position_embd.weight": (said["context_length"], width), "output_norm.bias": (width,)}
    if not tied:
        found["output.weight"] = (VOCABULARY, width)
    layer: dict[str, tuple[int, ...]] = {"attn_norm": (width,), "ffn_norm": (width,), "attn_output": (width, queries)}
    if architecture in ("phi3", "gpt2"):
        layer["attn_qkv"] = (queries + 2 * keys, width)
    else:
        layer |= {"attn_q": (queries, width), "attn_k": (keys, width), "attn_v": (keys, width)}
    layer |= of_units(architecture, said)
    if architecture in ("qwen3", "qwen3moe", "gemma3", "olmoe"):
        whole = architecture == "olmoe"
        layer |= {"attn_q_norm": (queries if whole else size,), "attn_k_norm": (keys if whole else size,)}
    if architecture in ("gemma2", "gemma3"):
        layer |= {"post_attention_norm": (width,), "post_ffw_norm": (width,)}
    if architecture == "gpt-oss":
        layer |= {"post_attention_norm": layer.pop("ffn_norm"), "attn_sinks": (HEADS,)}
    for number in range(said["block_count"]):
        for name, shape in layer.items():
            found[f"blk.{number}.{name}.weight"] = shape
            if biased or re.fullmatch(BIASED.get(architecture, ""), name):
                found[f"blk.{number}.{name}.bias"] = shape[:-1] or shape
    return found


BIASED: Mapping[str, str] = {
    **dict.fromkeys(("qwen2", "qwen2moe"), "attn_[qkv]"),
    "gpt-oss": "attn_([qkv]|output)|ffn_(gate_inp|.*_exps)",
}
"""Which weights have biases, beside GPT-2, where all have."""


def of_units(architecture: str, said: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The weights of what is behind attention in a layer."""
    width, units = said["embedding_length"], said["feed_forward_length"]
    if "expert_count" in said:
        return of_experts(architecture, said)
    if architecture in ("phi3", "gpt2"):
        return {"ffn_up": (units if architecture == "gpt2" else 2 * units, width), "ffn_down": (width, units)}
    return {"ffn_gate": (units, width), "ffn_up": (units, width), "ffn_down": (width, units)}


def of_experts(architecture: str, said: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The weights of the router of a layer, of its experts, and of the one that all positions ask."""
    width, count, units = (said[key] for key in ("embedding_length", "expert_count", "expert_feed_forward_length"))
    layer: dict[str, tuple[int, ...]] = {"ffn_gate_inp": (count, width)}
    layer |= {f"ffn_{part}_exps": (count, units, width) for part in ("gate", "up")}
    layer["ffn_down_exps"] = (count, width, units)
    if architecture == "qwen2moe":
        layer |= {"ffn_gate_shexp": (96, width), "ffn_up_shexp": (96, width), "ffn_down_shexp": (width, 96)}
        layer["ffn_gate_inp_shexp"] = (width,)
    return layer


def write_network(
    path: Path,
    architecture: str = "llama",
    kinds: Sequence[Type] = (Type.F32,),
    *,
    tied: bool = False,
    apart: bool = False,
    said: Mapping[str, Any] | None = None,
    beside: Mapping[str, np.ndarray] | None = None,
) -> Path:
    """A network of random weights. ``kinds``: of its matrices, in turn. ``said``: what the file says in another way.

    ``beside``: more tensors. ``apart``: whether each expert is a tensor.
    """
    random, turn = np.random.default_rng(len(architecture)), cycle(kinds)
    every = {**COMMON, **OF[architecture], **(said or {})}
    writer = gguf.GGUFWriter(path, architecture)
    for key, value in every.items():
        add = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string, list: writer.add_array}
        add[type(value)](f"{architecture}.{key}", value)
    writer.add_array("tokenizer.ggml.tokens", [f"t{number}" for number in range(VOCABULARY)])
    for name, shape in shapes(architecture, every, tied=tied).items():
        array, names = random.standard_normal(shape).astype(np.float32), [name]
        if len(shape) == 3 and apart:
            names = [name.replace("_exps", f".{number}") for number in range(len(array))]
        for own, part in zip(names, [array] if names == [name] else array, strict=True):
            put(writer, own, part, next(turn) if len(shape) > 1 else Type.F32, random)
    for name, array in (beside or {}).items():
        writer.add_tensor(name, array)
    for finish in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        finish()
    writer.close()
    return path


def put(writer: gguf.GGUFWriter, name: str, array: np.ndarray, kind: Type, random: np.random.Generator) -> None:
    """Write a tensor of normal numbers: matrices around 0, and so are biases; scales around 1."""
    if array.ndim == 1:
        writer.add_tensor(name, array * 0.1 + (1 if name.endswith("norm.weight") else 0))
    elif kind == Type.F32:
        writer.add_tensor(name, array * 0.2)
    else:
        writer.add_tensor(name, packed(array * 0.2, kind, random), raw_dtype=kind)


_HALVES: Mapping[Type, tuple[int, ...]] = {
    Type.Q2_K: (80, 82),
    Type.Q3_K: (108,),
    Type.Q4_K: (0, 2),
    Type.Q5_K: (0, 2),
    Type.Q6_K: (208,),
    Type.IQ4_NL: (0,),
    Type.IQ4_XS: (0,),
    **dict.fromkeys((Type.IQ1_S, Type.IQ2_XXS, Type.IQ2_XS, Type.IQ2_S, Type.IQ3_XXS, Type.IQ3_S), (0,)),
    **dict.fromkeys((Type.IQ1_M, Type.NVFP4), ()),
}
"""Where the scales in f16 of blocks are that the package does not make."""

_SCALES: Mapping[Type, float] = {
    **dict.fromkeys((Type.IQ4_NL, Type.Q2_K, Type.IQ2_XXS, Type.IQ2_XS, Type.IQ2_S), 2**-9),
    **dict.fromkeys((Type.IQ3_XXS, Type.IQ3_S), 2**-11),
    Type.Q5_K: 2**-15,
    Type.IQ1_S: 2**-7,
}
"""These scales, where they are not 2**-14: with the largest codes they make numbers below 1."""


def packed(array: np.ndarray, kind: Type, random: np.random.Generator) -> np.ndarray:
    """The array in blocks; random blocks of numbers below 1 for formats that the package does not make."""
    if kind not in _HALVES:
        return gguf.quants.quantize(array, kind)
    length, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (*array.shape[:-1], array.shape[-1] // length, size), np.uint8)
    for place in _HALVES[kind]:
        blocks[..., place : place + 2] = np.array([_SCALES.get(kind, 2**-14)], "<f2").view(np.uint8)
    if kind == Type.NVFP4:
        blocks[..., :4] = blocks[..., :4] % 32  # below 0.13
    if kind == Type.IQ1_M:
        blocks[..., 49:56:2] = blocks[..., 49:56:2] & 15 | np.array([0, 0, 0, 32], np.uint8)  # 2**-7 in four parts
    return blocks.reshape(*array.shape[:-1], -1)
