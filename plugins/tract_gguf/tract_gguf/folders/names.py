"""What files of GGUF call the tensors that folders have, for each kind of network."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_ENDS: Final = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
_ATTENTION: Final = {
    **{f"self_attn.{part}_proj": f"attn_{part}" for part in "qkv"},
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
}
_GATED: Final = {f"mlp.{part}_proj": f"ffn_{part}" for part in ("gate", "up", "down")}
_BEFORE: Final = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}
_BEHIND: Final = {
    "post_attention_layernorm": "post_attention_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
}

LLAMA: Final = {**_ENDS, **_ATTENTION, **_GATED, **_BEFORE}
OLMO2: Final = {**_ENDS, **_ATTENTION, **_GATED, **_BEHIND}
GEMMA2: Final = {
    **OLMO2,
    "input_layernorm": "attn_norm",
    "pre_feedforward_layernorm": "ffn_norm",
}
PHI3: Final = {**LLAMA, "self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up"}
STARCODER2: Final = {**LLAMA, "mlp.c_fc": "ffn_up", "mlp.c_proj": "ffn_down"}
PHI2: Final = {
    **_ENDS,
    **_ATTENTION,
    "input_layernorm": "attn_norm",
    "model.final_layernorm": "output_norm",
    "self_attn.dense": "attn_output",
    "mlp.fc1": "ffn_up",
    "mlp.fc2": "ffn_down",
}
_ROUTED: Final = {
    "mlp.gate": "ffn_gate_inp",
    **{f"mlp.experts.{part}_proj": f"ffn_{part}" for part in ("gate", "up", "down")},
    **{f"mlp.shared_expert.{part}_proj": f"ffn_{part}_shexp" for part in ("gate", "up", "down")},
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
}
"""Of experts, without their numbers."""

EXPERTS: Final = {**LLAMA, **_ROUTED}
MIXTRAL: Final = {
    **LLAMA,
    "block_sparse_moe.gate": "ffn_gate_inp",
    "block_sparse_moe.experts.w1": "ffn_gate",
    "block_sparse_moe.experts.w2": "ffn_down",
    "block_sparse_moe.experts.w3": "ffn_up",
}
GRANITE_MOE: Final = {
    **LLAMA,
    "block_sparse_moe.router.layer": "ffn_gate_inp",
    "block_sparse_moe.input_linear": "ffn_gate_up_exps",
    "block_sparse_moe.output_linear": "ffn_down_exps",
}
GPT_OSS: Final = {
    **_ENDS,
    **_ATTENTION,
    "self_attn.sinks": "attn_sinks",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "post_attention_norm",
    "mlp.router": "ffn_gate_inp",
    "mlp.experts.gate_up_proj": "ffn_gate_up_exps",
    "mlp.experts.down_proj": "ffn_down_exps",
}
NEOX: Final = {
    "gpt_neox.embed_in": "token_embd",
    "gpt_neox.final_layer_norm": "output_norm",
    "embed_out": "output",
    "lm_head": "output",
    **_BEFORE,
    "attention.query_key_value": "attn_qkv",
    "attention.dense": "attn_output",
    "mlp.dense_h_to_4h": "ffn_up",
    "mlp.dense_4h_to_h": "ffn_down",
}
GPT2: Final = {
    "wte": "token_embd",
    "wpe": "position_embd",
    "ln_f": "output_norm",
    "lm_head": "output",
    "ln_1": "attn_norm",
    "attn.c_attn": "attn_qkv",
    "attn.c_proj": "attn_output",
    "ln_2": "ffn_norm",
    "mlp.c_fc": "ffn_up",
    "mlp.c_proj": "ffn_down",
}

_LAYER: Final = re.compile(r"(?:model\.layers|gpt_neox\.layers|(?:transformer\.)?h)\.(\d{1,9})\.(.+)\.(weight|bias)")
_BARE: Final = re.compile(r"model\.layers\.(\d{1,9})\.(.+?)(_bias)?")
"""Tensors whose names do not say that they are weights."""

_EXPERT: Final = re.compile(r"(.+\.experts)\.(\d{1,9})\.(.+)")
"""A part of a layer that is one of many of its kind."""

_BUFFER: Final = re.compile(r".*\.(rotary_emb\.inv_freq|masked_bias|attn\.bias|attention\.bias)")
"""What was saved beside weights, and can be computed."""


def name_in_files(name: str, names: Mapping[str, str]) -> str | None:
    """What files call a tensor of a folder: its own name, where they have none; ``None`` for one that is no weights."""
    if _BUFFER.fullmatch(name):
        return None
    layer = _LAYER.fullmatch(name)
    if layer is not None:
        number, part, what = layer.groups()
        expert = _EXPERT.fullmatch(part)
        if expert is not None:
            part, what = f"{expert[1]}.{expert[3]}", f"{expert[2]}.{what}"
        return f"blk.{number}.{names[part]}.{what}" if part in names else name
    bare = _BARE.fullmatch(name)
    if bare is not None and bare[2] in names:
        return f"blk.{bare[1]}.{names[bare[2]]}.{'bias' if bare[3] else 'weight'}"
    part, _, what = name.removeprefix("transformer.").rpartition(".")
    return f"{names[part]}.{what}" if part in names else name
