"""Networks of the package transformers, from small configurations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import transformers as hf
from torch import Tensor, nn

from torch_networks.network import Network

Past = Sequence[tuple[Tensor, Tensor]]
"""For each layer the keys and the values of all positions before, as (batch, heads, positions, width of a head)."""


class Masked(nn.Module):
    """A network on words, with a mask of which there are; the outputs of some names."""

    def __init__(self, network: nn.Module, *names: str, **options: Any) -> None:
        super().__init__()
        self.network, self.names, self.options = network, names, options

    def forward(self, ids: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        found = self.network(input_ids=ids, attention_mask=mask, **self.options)
        return tuple(found[name] for name in self.names)


class Step(nn.Module):
    """A decoder, with the keys and values of all positions before as inputs, and of all with these as outputs."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, ids: Tensor, past: Past) -> tuple[Tensor, list[tuple[Tensor, Tensor]]]:
        cache = hf.DynamicCache([(keys.clone(), values.clone()) for keys, values in past])
        found = self.network(input_ids=ids, past_key_values=cache, use_cache=True)
        return found.logits, [(layer.keys, layer.values) for layer in found.past_key_values.layers]


class Decoder(nn.Module):
    """The decoder of a network that has an encoder too: words, and what the encoder found."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network = network

    def forward(self, ids: Tensor, found: Tensor) -> Tensor:
        network = self.network
        hidden = network.get_decoder()(input_ids=ids, encoder_hidden_states=found, use_cache=False).last_hidden_state
        return network.get_output_embeddings()(hidden)


class Of(nn.Module):
    """A network on one tensor; the outputs of some names."""

    def __init__(self, network: nn.Module, *names: str) -> None:
        super().__init__()
        self.network, self.names = network, names

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        found = self.network(x)
        return tuple(found[name] for name in self.names)


class Clip(nn.Module):
    """Texts and images, and how well each fits each."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, ids: Tensor, mask: Tensor, pixels: Tensor) -> tuple[Tensor, Tensor]:
        found = self.network(input_ids=ids, attention_mask=mask, pixel_values=pixels)
        return found.logits_per_text, found.image_embeds


_ENCODER = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
_ENCODER |= {"intermediate_size": 48, "max_position_embeddings": 64}
_DECODER = {**_ENCODER, "num_key_value_heads": 2}


def _masked(B: int, S: int) -> dict[str, Tensor]:
    mask = torch.ones(B, S, dtype=torch.int64)
    mask[0, S - S // 3 :] = 0
    return {"ids": torch.randint(3, 60, (B, S)), "mask": mask}


def _step(heads: int, width: int = 8) -> Callable[..., dict[str, Any]]:
    def drawn(B: int, S: int, P: int) -> dict[str, Any]:
        past = [(torch.randn(B, heads, P, width), torch.randn(B, heads, P, width)) for _ in range(2)]
        return {"ids": torch.randint(3, 60, (B, S)), "past": past}

    return drawn


_THREE = ({"B": 2, "S": 9}, {"B": 1, "S": 4}, {"B": 3, "S": 16})
_TOKENS = {0: "B", 1: "S"}
_BEHIND = [({0: "B", 2: "P"}, {0: "B", 2: "P"}) for _ in range(2)]
_STEPS = ({"B": 2, "S": 3, "P": 5}, {"B": 1, "S": 1, "P": 8}, {"B": 3, "S": 4, "P": 2})
_RANGES = {"S": (1, 30), "P": (1, 30)}


def _words(name: str, build: Callable[[], nn.Module], *, small: bool = False) -> Network:
    """A network on words with a mask."""
    axes = {"ids": _TOKENS, "mask": _TOKENS}
    return Network(name, build, _masked, axes, _THREE, {"S": (2, 60)}, small=small)


def _steps(name: str, build: Callable[[], nn.Module], heads: int, *, small: bool = False) -> Network:
    """A decoder with keys and values."""
    axes = {"ids": _TOKENS, "past": _BEHIND}
    return Network(name, lambda: Step(build()), _step(heads), axes, _STEPS, _RANGES, small=small)


def _decoder(name: str, build: Callable[[], nn.Module]) -> Network:
    """A decoder beside an encoder that found T vectors."""
    return Network(
        name,
        lambda: Decoder(build()),
        lambda B, S, T: {"ids": torch.randint(3, 60, (B, S)), "found": torch.randn(B, T, 32)},
        {"ids": _TOKENS, "found": {0: "B", 1: "T"}},
        ({"B": 2, "S": 5, "T": 7}, {"B": 1, "S": 3, "T": 4}, {"B": 3, "S": 8, "T": 12}),
        {"S": (2, 60), "T": (2, 60)},
    )


def _gpt2() -> nn.Module:
    return hf.GPT2LMHeadModel(hf.GPT2Config(vocab_size=60, n_positions=64, n_embd=32, n_layer=2, n_head=4))


def _llama() -> nn.Module:
    return hf.LlamaForCausalLM(hf.LlamaConfig(**_DECODER))


def _whisper() -> Any:
    config = hf.WhisperConfig(
        vocab_size=60,
        num_mel_bins=16,
        d_model=32,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        max_source_positions=20,
        max_target_positions=64,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        decoder_start_token_id=1,
    )
    return hf.WhisperForConditionalGeneration(config)


def _t5() -> Any:
    config = hf.T5Config(vocab_size=60, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)
    return hf.T5ForConditionalGeneration(config)


def _clip() -> nn.Module:
    text = {**_ENCODER, "eos_token_id": 59, "bos_token_id": 1, "pad_token_id": 0}
    picture = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    picture |= {"image_size": 32, "patch_size": 8}
    return Clip(hf.CLIPModel(hf.CLIPConfig(text_config=text, vision_config=picture, projection_dim=24)))


def _vit() -> nn.Module:
    config = hf.ViTConfig(**{**_ENCODER, "image_size": 32, "patch_size": 8})
    return Of(hf.ViTModel(config), "last_hidden_state", "pooler_output")


_mamba = hf.MambaConfig(vocab_size=60, hidden_size=16, state_size=4, num_hidden_layers=2, use_mambapy=False)

_B = ({"B": 2}, {"B": 1}, {"B": 3})
_HIDDEN = "last_hidden_state"

NETWORKS = (
    _words("bert", lambda: Masked(hf.BertModel(hf.BertConfig(**_ENCODER)), _HIDDEN, "pooler_output"), small=True),
    _words(
        "distilbert",
        lambda: Masked(
            hf.DistilBertModel(
                hf.DistilBertConfig(
                    vocab_size=60, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=64
                )
            ),
            _HIDDEN,
        ),
    ),
    _words("albert", lambda: Masked(hf.AlbertModel(hf.AlbertConfig(**_ENCODER, embedding_size=16)), _HIDDEN)),
    _words("roberta", lambda: Masked(hf.RobertaModel(hf.RobertaConfig(**_ENCODER)), _HIDDEN)),
    _words("electra", lambda: Masked(hf.ElectraModel(hf.ElectraConfig(**_ENCODER, embedding_size=16)), _HIDDEN)),
    _words(
        "deberta",
        lambda: Masked(
            hf.DebertaV2Model(
                hf.DebertaV2Config(**_ENCODER, relative_attention=True, pos_att_type=["p2c", "c2p"], type_vocab_size=0)
            ),
            _HIDDEN,
        ),
    ),
    _words("gpt2", lambda: Masked(_gpt2(), "logits", use_cache=False)),
    _steps("gpt2, a step", _gpt2, 4),
    _words("llama", lambda: Masked(_llama(), "logits", use_cache=False)),
    _steps("llama, a step", _llama, 2, small=True),
    _steps("mistral, a step", lambda: hf.MistralForCausalLM(hf.MistralConfig(**_DECODER, sliding_window=None)), 2),
    _steps("qwen3, a step", lambda: hf.Qwen3ForCausalLM(hf.Qwen3Config(**_DECODER, head_dim=8)), 2),
    _words(
        "mistral, sliding",
        lambda: Masked(
            hf.MistralForCausalLM(hf.MistralConfig(**_DECODER, sliding_window=4)), "logits", use_cache=False
        ),
    ),
    _words(
        "mixtral",
        lambda: Masked(
            hf.MixtralForCausalLM(
                hf.MixtralConfig(**_DECODER, num_local_experts=4, experts_implementation="batched_mm")
            ),
            "logits",
            use_cache=False,
        ),
    ),
    _words(
        "qwen3 moe",
        lambda: Masked(
            hf.Qwen3MoeForCausalLM(
                hf.Qwen3MoeConfig(
                    **_DECODER, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16
                )
            ),
            "logits",
            use_cache=False,
        ),
    ),
    _steps("gemma2, a step", lambda: hf.Gemma2ForCausalLM(hf.Gemma2Config(**_DECODER, head_dim=8)), 2),
    _steps("phi3, a step", lambda: hf.Phi3ForCausalLM(hf.Phi3Config(**_DECODER, pad_token_id=0)), 2),
    _words("t5 encoder", lambda: Masked(_t5().get_encoder(), _HIDDEN)),
    _decoder("t5 decoder", _t5),
    Network(
        "whisper encoder",
        lambda: Of(_whisper().get_encoder(), _HIDDEN),
        lambda B: {"x": torch.randn(B, 16, 40)},
        {"x": {0: "B"}},
        _B,
    ),
    _decoder("whisper decoder", _whisper),
    Network(
        "clip",
        _clip,
        lambda B, S, N: {**_masked(B, S), "pixels": torch.randn(N, 3, 32, 32)},
        {"ids": _TOKENS, "mask": _TOKENS, "pixels": {0: "N"}},
        ({"B": 2, "S": 9, "N": 3}, {"B": 1, "S": 4, "N": 1}, {"B": 3, "S": 16, "N": 2}),
        {"S": (2, 60)},
    ),
    Network("vit", _vit, lambda B: {"x": torch.randn(B, 3, 32, 32)}, {"x": {0: "B"}}, _B),
    Network(
        "wav2vec2",
        lambda: Of(
            hf.Wav2Vec2Model(
                hf.Wav2Vec2Config(
                    **_ENCODER,
                    conv_dim=(16, 16),
                    conv_stride=(5, 2),
                    conv_kernel=(10, 3),
                    num_feat_extract_layers=2,
                    num_conv_pos_embeddings=8,
                    num_conv_pos_embedding_groups=4,
                )
            ),
            _HIDDEN,
        ),
        lambda B, T: {"x": torch.randn(B, 10 * T)},
        {"x": {0: "B", 1: "10*T"}},
        ({"B": 2, "T": 40}, {"B": 1, "T": 33}, {"B": 3, "T": 54}),
        {"T": (10, 3000)},
    ),
    Network(
        "mamba",
        lambda: Masked(hf.MambaForCausalLM(_mamba), "logits", use_cache=False),
        lambda B: _masked(B, 7),
        {"ids": {0: "B"}, "mask": {0: "B"}},  # a loop in Python over positions, so that their number is fixed
        _B,
    ),
)
