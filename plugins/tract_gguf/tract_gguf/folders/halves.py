"""Folders of networks with an encoder and a decoder, as what files of GGUF hold of them.

Names of tensors are those that files of T5 have, also for Whisper, of which there are no files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from tract_core.errors import CorruptModel, Unsupported
from tract_core.frozen import frozen
from tract_gguf.reading.metadata import Value

Config = Mapping[str, Any]


_OF_T5: Final = {
    "d_model": "embedding_length",
    "d_kv": "attention.key_length",
    "d_ff": "feed_forward_length",
    "num_heads": "attention.head_count",
    "num_layers": "encoder.block_count",
    "num_decoder_layers": "decoder.block_count",
    "relative_attention_num_buckets": "attention.relative_buckets_count",
    "relative_attention_max_distance": "attention.relative_farthest",
    "layer_norm_epsilon": "attention.layer_norm_rms_epsilon",
}
"""What is said in the same way, under other names."""

_OF_WHISPER: Final = {
    "d_model": "embedding_length",
    "num_mel_bins": "encoder.mel_bands",
    "max_source_positions": "encoder.context_length",
    "max_target_positions": "decoder.context_length",
    **{f"{half}_layers": f"{half}.block_count" for half in ("encoder", "decoder")},
    **{f"{half}_attention_heads": f"{half}.attention.head_count" for half in ("encoder", "decoder")},
    **{f"{half}_ffn_dim": f"{half}.feed_forward_length" for half in ("encoder", "decoder")},
}

_ATTENTION_OF_T5: Final = {part: f"attn_{part}" for part in "qkvo"} | {"relative_attention_bias": "attn_rel_b"}
_PARTS_OF_T5: Final = {
    **{f"SelfAttention.{part}": name for part, name in _ATTENTION_OF_T5.items()},
    **{f"EncDecAttention.{part}": f"cross_{name}" for part, name in _ATTENTION_OF_T5.items()},
    "DenseReluDense.wi": "ffn_up",
    "DenseReluDense.wi_0": "ffn_gate",
    "DenseReluDense.wi_1": "ffn_up",
    "DenseReluDense.wo": "ffn_down",
}
_NORMS_OF_T5: Final = {
    ("enc", "0"): "attn_norm",
    ("enc", "1"): "ffn_norm",
    ("dec", "0"): "attn_norm",
    ("dec", "1"): "cross_attn_norm",
    ("dec", "2"): "ffn_norm",
}
"""By half, and by the number of the part of a layer."""

_PARTS_OF_WHISPER: Final = {
    **{f"self_attn.{part}_proj": f"attn_{part}" for part in "qkv"},
    **{f"encoder_attn.{part}_proj": f"cross_attn_{part}" for part in "qkv"},
    "self_attn.out_proj": "attn_o",
    "encoder_attn.out_proj": "cross_attn_o",
    "self_attn_layer_norm": "attn_norm",
    "encoder_attn_layer_norm": "cross_attn_norm",
    "final_layer_norm": "ffn_norm",
    "fc1": "ffn_up",
    "fc2": "ffn_down",
}
_ENDS_OF_WHISPER: Final = {
    "conv1": "conv1",
    "conv2": "conv2",
    "embed_positions": "position_embd",
    "embed_tokens": "token_embd",
    "layer_norm": "output_norm",
}

HEAD: Final = "dec.output.weight"
"""The head of Whisper, which is the matrix of tokens where a configuration does not say otherwise."""

_T5_LAYER: Final = re.compile(r"(enc|dec)oder\.block\.(\d{1,9})\.layer\.(\d)\.(.+)\.weight")
_WHISPER: Final = re.compile(r"model\.(enc|dec)oder\.(?:layers\.(\d{1,9})\.)?(.+)\.(weight|bias)")


@frozen
class Family:
    """Networks of one kind. ``architecture``: what builds them, in halves; ``said``: their numbers, by name.

    ``name``: what files call a tensor. ``further``: what else a configuration says.
    """

    architecture: str
    said: Mapping[str, str]
    name: Callable[[str], str | None]
    further: Callable[[Config], dict[str, Value]]


def _name_of_t5(name: str) -> str | None:
    """What files call a tensor of T5; ``None`` for one that is there twice."""
    if name in ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight"):
        return None
    layer = _T5_LAYER.fullmatch(name)
    if layer is None:
        return _ENDS_OF_T5.get(name, name)
    half, number, place, part = layer.groups()
    found = _NORMS_OF_T5.get((half, place)) if part == "layer_norm" else _PARTS_OF_T5.get(part)
    return name if found is None else f"{half}.blk.{number}.{found}.weight"


_ENDS_OF_T5: Final = {
    "shared.weight": "token_embd.weight",
    "lm_head.weight": "output.weight",
    "encoder.final_layer_norm.weight": "enc.output_norm.weight",
    "decoder.final_layer_norm.weight": "dec.output_norm.weight",
}


def _name_of_whisper(name: str) -> str | None:
    """What files would call a tensor of Whisper."""
    if name == "proj_out.weight":
        return HEAD
    found = _WHISPER.fullmatch(name)
    if found is None:
        return name
    half, number, part, what = found.groups()
    known = _PARTS_OF_WHISPER.get(part) if number else _ENDS_OF_WHISPER.get(part)
    where = f"blk.{number}." if number else ""
    return name if known is None else f"{half}.{where}{known}.{what}"


def _further_of_t5(config: Config) -> dict[str, Value]:
    function = config.get("feed_forward_proj", "relu")
    gated, _, name = str(function).rpartition("-")
    if gated not in ("", "gated"):
        raise Unsupported(f"units are of the function {function!r:.80}, wanted NAME or gated-NAME")
    tied = config.get("tie_word_embeddings") is not False and config.get("model_type") != "mt5"
    said: dict[str, Value] = {"activation": "gelu_new" if gated and name == "gelu" else name}
    said["gated"] = bool(gated)
    said["scales_logits"] = bool(config.get("scale_decoder_outputs", tied))
    for key, default in _DEFAULTS_OF_T5.items():
        if config.get(key) is None:
            said[_OF_T5[key]] = default
    if config.get("num_decoder_layers") is None and isinstance(config.get("num_layers"), int):
        said["decoder.block_count"] = config["num_layers"]
    return said


_DEFAULTS_OF_T5: Final = {"relative_attention_max_distance": 128, "layer_norm_epsilon": 1e-6}


def _further_of_whisper(config: Config) -> dict[str, Value]:
    width = config.get("d_model")
    said: dict[str, Value] = {"activation": str(config.get("activation_function", "gelu"))}
    said["attention.layer_norm_epsilon"] = 1e-5
    if config.get("scale_embedding") and isinstance(width, int) and width > 0:
        said["decoder.embedding_scale"] = width**0.5
    return said


_T5: Final = Family("t5", _OF_T5, _name_of_t5, _further_of_t5)

FAMILIES: Final[Mapping[str, Family]] = {
    **dict.fromkeys(("t5", "mt5", "umt5"), _T5),
    "whisper": Family("whisper", _OF_WHISPER, _name_of_whisper, _further_of_whisper),
}
"""By ``model_type``."""


def family_of(config: Config) -> Family | None:
    """The family of a configuration, if its networks have an encoder and a decoder."""
    name = config.get("model_type")
    return FAMILIES.get(name) if isinstance(name, str) else None


def metadata_of_halves(config: Config, family: Family) -> dict[str, Value]:
    """What files would say of it. Raises ModelError."""
    said = family.further(config)
    for key, name in family.said.items():
        value = config.get(key)
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise CorruptModel(f"config.json has {value!r:.80} as {key}, wanted a number")
            said[name] = value
    return {"general.architecture": family.architecture} | {
        f"{family.architecture}.{key}": value for key, value in said.items()
    }
