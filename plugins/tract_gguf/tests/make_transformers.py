"""Makes `transformers.json`: what eager `transformers` computes in f64, but for rotary embeddings, which are in f32.

It is run by hand, in an environment with torch and transformers: python make_transformers.py
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

sys.path.insert(0, str(Path(__file__).parent))
from folders import FIRST, KEPT, PLACES, TOKENS, weights

COMMON = {
    "vocab_size": 96,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "tie_word_embeddings": False,
}
ENDS = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}


def turning(kind: str, **said: object) -> dict[str, object]:
    return {"rope_parameters": {"rope_type": kind, "rope_theta": 10000.0, **said}}


FACTORS = {"short_factor": [1 + i / 10 for i in range(8)], "long_factor": [1.0 + i for i in range(8)]}
OF_LLAMA = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
GEMMA = {"head_dim": 32, "tie_word_embeddings": True}
EXPERTS = {"num_experts": 6, "num_experts_per_tok": 3, "moe_intermediate_size": 32}
CASES = {
    "llama": ("llama", {}),
    "llama-3.1": ("llama", {**turning("llama3", factor=8.0, **OF_LLAMA), "tie_word_embeddings": True}),
    "llama-linear": ("llama", {**turning("linear", factor=4.0), "attention_bias": True, "head_dim": 32}),
    "mistral": ("mistral", {"sliding_window": 5, "head_dim": 32}),
    "qwen2": ("qwen2", {}),
    "qwen2-yarn": ("qwen2", turning("yarn", factor=4.0, original_max_position_embeddings=16)),
    "qwen3": ("qwen3", {"head_dim": 32}),
    "smollm3": ("smollm3", {"num_hidden_layers": 4}),
    "granite": (
        "granite",
        {"embedding_multiplier": 3.0, "residual_multiplier": 0.3, "attention_multiplier": 0.2, "logits_scaling": 5.0},
    ),
    "mixtral": ("mixtral", {"num_local_experts": 5, "num_experts_per_tok": 2, "intermediate_size": 32}),
    "qwen2_moe": (
        "qwen2_moe",
        {**EXPERTS, "shared_expert_intermediate_size": 48, "mlp_only_layers": [1]},
    ),
    "qwen3_moe": ("qwen3_moe", {**EXPERTS, "norm_topk_prob": True, "head_dim": 32}),
    "olmoe": ("olmoe", {"num_experts": 6, "num_experts_per_tok": 3, "intermediate_size": 32}),
    "granitemoe": (
        "granitemoe",
        {"embedding_multiplier": 3.0, "residual_multiplier": 0.3, "attention_multiplier": 0.2, "logits_scaling": 5.0}
        | {"num_local_experts": 5, "num_experts_per_tok": 2, "intermediate_size": 32},
    ),
    "gpt_oss": (
        "gpt_oss",
        {"num_local_experts": 5, "num_experts_per_tok": 2, "intermediate_size": 32, "head_dim": 32, "sliding_window": 5}
        | turning("yarn", factor=4.0, original_max_position_embeddings=16, truncate=False),
    ),
    "olmo2": ("olmo2", {}),
    "phi3": ("phi3", {"sliding_window": 5}),
    "phi3-long": (
        "phi3",
        {"sliding_window": None, "original_max_position_embeddings": 8, **turning("longrope", **FACTORS)},
    ),
    "phi": ("phi", {"num_key_value_heads": 4}),
    "starcoder2": ("starcoder2", {"sliding_window": 5}),
    "stablelm": ("stablelm", {"use_qkv_bias": True}),
    "gpt_neox": ("gpt_neox", {"num_key_value_heads": None}),
    "gpt_neox-in-turn": ("gpt_neox", {"num_key_value_heads": None, "use_parallel_residual": False}),
    "gpt2": ("gpt2", {"n_embd": 64, "n_layer": 3, "n_head": 4, "n_positions": 64, "vocab_size": 96}),
    "gemma": ("gemma", GEMMA),
    "gemma2": (
        "gemma2",
        {**GEMMA, "sliding_window": 5, "query_pre_attn_scalar": 20}
        | {"attn_logit_softcapping": 5.0, "final_logit_softcapping": 3.0},
    ),
    "gemma3": ("gemma3_text", {**GEMMA, "sliding_window": 5, "num_hidden_layers": 6}),
}


def made(kind: str, said: dict[str, object]) -> dict[str, object]:
    every = {key: value for key, value in ({} if kind == "gpt2" else COMMON | said).items() if value is not None}
    config = CONFIG_MAPPING[kind](**(every or said), **ENDS)
    if "sliding_window" in said:
        config.sliding_window = said["sliding_window"]
    config._attn_implementation = config._experts_implementation = "eager"
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    tied = {"lm_head.weight"} if config.tie_word_embeddings else set[str]()
    held = dict(parts(model))
    shapes = {name: list(one.shape) for name, one in held.items() if name not in tied}
    with torch.no_grad():
        for name, one in held.items():
            one.copy_(torch.from_numpy(weights(name, one.shape)))
        logits = model.double()(torch.from_numpy(TOKENS), use_cache=False).logits[:, list(PLACES), :FIRST]
    said = json.loads(config.to_json_string(use_diff=False))
    said = {key: value for key, value in said.items() if value is not None and not key.startswith(OF_NO_NETWORK)}
    return {"config": said, "shapes": shapes, "logits": logits.numpy().round(9).tolist()}


def parts(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters, as folders call them: there, experts are tensors of their own, and gates are apart."""
    kind = model.config.model_type
    for name, one in model.named_parameters():
        front, _, end = name.partition(".experts.")
        if kind == "granitemoe":
            yield (
                name.replace("router.weight", "router.layer.weight")
                .replace("experts.gate_up_proj", "input_linear.weight")
                .replace("experts.down_proj", "output_linear.weight"),
                one,
            )
        elif not end or kind == "gpt_oss":
            yield name.replace("mlp.gate.", "block_sparse_moe.gate.") if kind == "mixtral" else name, one
        else:
            for number, expert in enumerate(one):
                names = ["gate_proj", "up_proj"] if end == "gate_up_proj" else ["down_proj"]
                for part, rows in zip(names, expert.chunk(len(names)), strict=True):
                    own = f"{front}.experts.{number}.{part}.weight"
                    yield of_mixtral(own) if kind == "mixtral" else own, rows


def of_mixtral(name: str) -> str:
    """What files of Mixtral call an expert."""
    for part, own in {"mlp": "block_sparse_moe", "gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}.items():
        name = name.replace(part, own)
    return name


OF_NO_NETWORK = (
    "_",
    "id2label",
    "label2id",
    "return_",
    "output_",
    "chunk_",
    "is_",
    "initializer",
    "summary",
    "use_cache",
)


if __name__ == "__main__":
    kept = {name: made(*case) for name, case in CASES.items()}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(case, sort_keys=True)}" for name, case in kept.items())
    KEPT.write_text(f"{{\n{lines}\n}}\n")
