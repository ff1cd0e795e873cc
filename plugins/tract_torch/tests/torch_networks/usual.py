"""Networks of usual sizes, which take too long for tests: what `bench/bench_torch.py` measures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import transformers as hf
from torch import nn
from with_torchvision import torchvision

from torch_networks.network import Network
from torch_networks.transformers_ import Masked, Of, Step

_LLAMA = {"vocab_size": 8000, "hidden_size": 512, "intermediate_size": 1408, "num_hidden_layers": 4}
_LLAMA |= {"num_attention_heads": 8, "num_key_value_heads": 4}
_WHISPER = {"d_model": 384, "encoder_layers": 4, "encoder_attention_heads": 6, "encoder_ffn_dim": 1536}


def _image(name: str) -> Network:
    """A network of torchvision on images of 224 x 224."""
    build = getattr(torchvision.models, name)
    inputs = lambda B: {"x": torch.randn(B, 3, 224, 224)}  # noqa: E731 - as everywhere in these catalogues
    return Network(name, build, inputs, {"x": {0: "B"}}, ({"B": 2}, {"B": 1}, {"B": 4}))


def _words(name: str, build: Callable[[], nn.Module], length: int) -> Network:
    """A network of transformers on words."""
    axes = {"ids": {0: "B", 1: "S"}, "mask": {0: "B", 1: "S"}}
    sizes = ({"B": 2, "S": length}, {"B": 1, "S": length}, {"B": 4, "S": length})
    return Network(name, build, _ids_and_mask, axes, sizes, {"S": (2, 500)})


def _ids_and_mask(B: int, S: int) -> dict[str, Any]:
    return {"ids": torch.randint(3, 900, (B, S)), "mask": torch.ones(B, S, dtype=torch.int64)}


def _step(B: int, S: int, P: int) -> dict[str, Any]:
    past = [(torch.randn(B, 4, P, 64), torch.randn(B, 4, P, 64)) for _ in range(4)]
    return {"ids": torch.randint(3, 900, (B, S)), "past": past}


NETWORKS = [
    *map(_image, ("resnet50", "efficientnet_b0", "mobilenet_v3_large", "vit_b_16", "swin_t", "convnext_tiny")),
    _words("bert", lambda: Masked(hf.BertModel(hf.BertConfig()), "last_hidden_state"), 128),
    _words("gpt2", lambda: Masked(hf.GPT2LMHeadModel(hf.GPT2Config()), "logits", use_cache=False), 64),
    Network(
        "llama, a step",
        lambda: Step(hf.LlamaForCausalLM(hf.LlamaConfig(**_LLAMA))),
        _step,
        {"ids": {0: "B", 1: "S"}, "past": [({0: "B", 2: "P"}, {0: "B", 2: "P"}) for _ in range(4)]},
        ({"B": 2, "S": 3, "P": 100}, {"B": 1, "S": 1, "P": 100}, {"B": 4, "S": 1, "P": 100}),
        {"S": (1, 500), "P": (1, 500)},
    ),
    Network(
        "whisper encoder",
        lambda: Of(hf.WhisperForConditionalGeneration(hf.WhisperConfig(**_WHISPER)).get_encoder(), "last_hidden_state"),
        lambda B: {"x": torch.randn(B, 80, 3000)},
        {"x": {0: "B"}},
        ({"B": 2}, {"B": 1}, {"B": 3}),
    ),
]
