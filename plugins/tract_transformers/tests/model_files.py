"""The small network in files: a folder with ``tokenizer.json``, and a GGUF file with its tokenizer inside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from tiny_llama import EPSILON, TinyLlama
from vocabularies import SPECIAL, bytes_metadata, trained_bytes

TEMPLATE = (
    "{% for m in messages %}{% if m.role not in ['user', 'assistant', 'system'] %}{{ raise_exception('no ' + m.role) }}"
    "{% endif %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>\n{% endfor %}{{ '<|start|>assistant\\n' }}"
)
VOCABULARY = trained_bytes().get_vocab_size()
NETWORK = TinyLlama(vocabulary=VOCABULARY, seed=3)


def folder_with_model(folder: Path, *, onnx_names: bool = False, template: bool = True) -> Path:
    """``model.nnef.tar``, ``tokenizer.json``, and what says how they are used."""
    NETWORK.model(onnx_names=onnx_names).save(folder / "model.nnef.tar")
    trained_bytes().save(str(folder / "tokenizer.json"))
    start, end = SPECIAL
    config: dict[str, Any] = {"bos_token": start, "eos_token": end}
    if template:
        config["chat_template"] = TEMPLATE
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    (folder / "config.json").write_text(json.dumps({"max_position_embeddings": 128}))
    return folder / "model.nnef.tar"


def gguf_with_model(path: Path, *, template: str = TEMPLATE, context: int = 128) -> Path:
    """The network as llama.cpp has Llama: heads' numbers in pairs side by side, weights in f32."""
    writer = gguf.GGUFWriter(path, "llama")
    heads = NETWORK.heads * NETWORK.groups
    for name, value in (
        ("block_count", NETWORK.layers), ("context_length", context), ("embedding_length", NETWORK.width),
        ("feed_forward_length", NETWORK.inner), ("attention.head_count", heads),
        ("attention.head_count_kv", NETWORK.heads), ("attention.key_length", NETWORK.size),
        ("attention.value_length", NETWORK.size), ("rope.dimension_count", NETWORK.size),
    ):  # fmt: skip
        writer.add_uint32(f"llama.{name}", value)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", EPSILON)
    writer.add_float32("llama.rope.freq_base", 10_000.0)
    for name, value in bytes_metadata().items():
        if isinstance(value, list):
            writer.add_array(name, value)
        elif isinstance(value, int):
            writer.add_uint32(name, value)
        else:
            writer.add_string(name, value)
    writer.add_bool("tokenizer.ggml.add_bos_token", True)
    writer.add_string("tokenizer.chat_template", template)
    for name, array in _tensors(heads).items():
        writer.add_tensor(f"{name}.weight", np.ascontiguousarray(array))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _tensors(heads: int) -> dict[str, np.ndarray[Any, Any]]:
    w = NETWORK.weights
    ones = np.ones(NETWORK.width, np.float32)
    found = {"token_embd": w["embedding"], "output": w["head"], "output_norm": ones}
    names = {"q": "attn_q", "k": "attn_k", "v": "attn_v", "o": "attn_output", "gate": "ffn_gate", "up": "ffn_up"}
    names |= {"down": "ffn_down", "before": "attn_norm", "behind": "ffn_norm"}
    for layer in range(NETWORK.layers):
        for ours, theirs in names.items():
            array = w[f"{ours}.{layer}"]
            if ours in "qk":
                count = heads if ours == "q" else NETWORK.heads
                halves = array.reshape(count, 2, NETWORK.size // 2, -1)
                array = halves.swapaxes(1, 2).reshape(array.shape)
            found[f"blk.{layer}.{theirs}"] = array
    return found
