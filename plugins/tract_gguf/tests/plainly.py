"""Networks in NumPy and f64, read by the package ``gguf``: each as its paper or its first implementation has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gguf
import numpy as np

Array = np.ndarray[Any, Any]

PARTS = ("gate", "up", "down")


class Plain:
    """A network. ``logits(tokens)``: tokens [B,S] to scores [B,S,V], all positions at once."""

    def __init__(self, path: Path) -> None:
        reader = gguf.GGUFReader(path)
        self.said = {name: field.contents() for name, field in reader.fields.items()}
        self.name: str = self.said["general.architecture"]
        self.weights = {
            one.name: gguf.quants.dequantize(one.data, one.tensor_type).astype(np.float64) for one in reader.tensors
        }
        self.heads = self.of("attention.head_count")
        self.key_heads = self.of("attention.head_count_kv", self.heads)
        self.neighbours = self.name in ("llama", "granitemoe")
        self.size = self.of("attention.key_length", self.of("embedding_length") // self.heads)

    def of(self, key: str, default: Any = None) -> Any:
        return self.said.get(f"{self.name}.{key}", default)

    def logits(self, tokens: Array) -> Array:
        x = self.weights["token_embd.weight"][tokens]
        if self.name.startswith("gemma"):
            x = x * np.sqrt(self.of("embedding_length"))
        if self.name == "gpt2":
            x = x + self.weights["position_embd.weight"][: tokens.shape[1]]
        for layer in range(self.of("block_count")):
            x = x + self.behind(
                layer, "post_attention_norm", self.attention(layer, self.norm(x, f"blk.{layer}.attn_norm"))
            )
            before = "post_attention_norm" if self.name == "gpt-oss" else "ffn_norm"
            x = x + self.behind(layer, "post_ffw_norm", self.unit(layer, self.norm(x, f"blk.{layer}.{before}")))
        x = self.norm(x, "output_norm")
        scores = x @ self.weights.get("output.weight", self.weights["token_embd.weight"]).T
        cap = self.of("final_logit_softcapping")
        return cap * np.tanh(scores / cap) if cap else scores

    def behind(self, layer: int, name: str, x: Array) -> Array:
        is_there = f"blk.{layer}.{name}.weight" in self.weights and self.name != "gpt-oss"
        return self.norm(x, f"blk.{layer}.{name}") if is_there else x

    def norm(self, x: Array, name: str) -> Array:
        if self.name == "gpt2":
            centred = x - x.mean(-1, keepdims=True)
            standard = centred / np.sqrt(x.var(-1, keepdims=True) + np.float32(self.of("attention.layer_norm_epsilon")))
            return standard * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
        root = np.sqrt((x * x).mean(-1, keepdims=True) + np.float32(self.of("attention.layer_norm_rms_epsilon")))
        return x / root * self.weights[f"{name}.weight"]

    def linear(self, x: Array, name: str) -> Array:
        return x @ self.weights[f"{name}.weight"].T + self.weights.get(f"{name}.bias", 0)

    def unit(self, layer: int, x: Array) -> Array:
        function = gelu if self.name.startswith(("gemma", "gpt2")) else silu
        if f"blk.{layer}.ffn_gate_inp.weight" in self.weights:
            return self.experts(f"blk.{layer}", x)
        up = self.linear(x, f"blk.{layer}.ffn_up")
        if self.name == "gpt2":
            return self.linear(function(up), f"blk.{layer}.ffn_down")
        gate, up = np.split(up, 2, -1) if self.name == "phi3" else (self.linear(x, f"blk.{layer}.ffn_gate"), up)
        return self.linear(function(gate) * up, f"blk.{layer}.ffn_down")

    def experts(self, layer: str, x: Array) -> Array:
        """Position by position, and expert by expert."""
        logits, mixed = self.linear(x, f"{layer}.ffn_gate_inp"), np.zeros_like(x)
        for place in np.ndindex(x.shape[:-1]):
            powers = np.exp(logits[place] - logits[place].max())
            best = np.argsort(-powers)[: self.of("expert_used_count")]
            whole = powers.sum() if self.name in ("qwen2moe", "olmoe") else powers[best].sum()
            for one in best:
                gate, up = (self.of_expert(layer, part, one, x[place]) for part in PARTS[:2])
                gated = clamped(gate, up) if self.name == "gpt-oss" else silu(gate) * up
                mixed[place] += powers[one] / whole * self.of_expert(layer, "down", one, gated)
        if self.name != "qwen2moe":
            return mixed
        gate, up = (self.linear(x, f"{layer}.ffn_{part}_shexp") for part in PARTS[:2])
        share = 1 / (1 + np.exp(-x @ self.weights[f"{layer}.ffn_gate_inp_shexp.weight"]))
        return mixed + share[..., None] * self.linear(silu(gate) * up, f"{layer}.ffn_down_shexp")

    def of_expert(self, layer: str, part: str, number: int, x: Array) -> Array:
        name = f"{layer}.ffn_{part}_exps"
        bias = self.weights.get(f"{name}.bias")
        return self.weights[f"{name}.weight"][number] @ x + (0 if bias is None else bias[number])

    def attention(self, layer: int, x: Array) -> Array:
        """Head by head."""
        queries, keys = self.heads * self.size, self.key_heads * self.size
        if self.name in ("phi3", "gpt2"):
            q, k, v = np.split(self.linear(x, f"blk.{layer}.attn_qkv"), [queries, queries + keys], -1)
        else:
            q, k, v = (self.linear(x, f"blk.{layer}.attn_{part}") for part in "qkv")
        if self.name == "olmoe":
            q, k = self.norm(q, f"blk.{layer}.attn_q_norm"), self.norm(k, f"blk.{layer}.attn_k_norm")
        mixed = np.empty_like(q)
        for head in range(self.heads):
            shared = head * self.key_heads // self.heads
            part, other = (slice(one * self.size, (one + 1) * self.size) for one in (head, shared))
            mixed[..., part] = self.mix((layer, head), q[..., part], k[..., other], v[..., other])
        return self.linear(mixed, f"blk.{layer}.attn_output")

    def mix(self, place: tuple[int, int], q: Array, k: Array, v: Array) -> Array:
        layer, head = place
        if f"blk.{layer}.attn_q_norm.weight" in self.weights and self.name != "olmoe":
            q, k = self.norm(q, f"blk.{layer}.attn_q_norm"), self.norm(k, f"blk.{layer}.attn_k_norm")
        if self.name != "gpt2":
            q, k = self.turned(layer, q), self.turned(layer, k)
        scores = q @ k.swapaxes(1, 2) / np.sqrt(self.size)
        cap = self.of("attn_logit_softcapping")
        scores = cap * np.tanh(scores / cap) if cap else scores
        ages = np.arange(q.shape[1])[:, None] - np.arange(q.shape[1])
        seen = (ages >= 0) & (ages < self.window(layer))
        scores = np.where(seen, scores, -np.inf)
        sinks = self.weights.get(f"blk.{layer}.attn_sinks.weight")
        nothing = 0 if sinks is None else np.exp(sinks[head] - scores.max(-1, keepdims=True))
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        return powers / (powers.sum(-1, keepdims=True) + nothing) @ v

    def window(self, layer: int) -> float:
        window = self.of("attention.sliding_window")
        is_far = {"gemma2": layer % 2 == 1, "gpt-oss": layer % 2 == 1, "gemma3": layer % 6 == 5}.get(self.name, False)
        return np.inf if window is None or is_far else window

    def turned(self, layer: int, x: Array) -> Array:
        """Pairs as complex numbers, times those of their angles."""
        size = self.of("rope.dimension_count", self.size)
        first, rest = x[..., :size], x[..., size:]
        pairs = first.reshape(*x.shape[:-1], -1, 2) if self.neighbours else np.stack(np.split(first, 2, -1), -1)
        speeds, scale = self.speeds(layer, size, x.shape[1])
        angles = np.arange(x.shape[1])[:, None] * speeds
        turned = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * angles) * scale
        parts = np.stack([turned.real, turned.imag], -1)
        parts = parts.reshape(first.shape) if self.neighbours else np.concatenate([parts[..., 0], parts[..., 1]], -1)
        return np.concatenate([parts, rest], -1)

    def speeds(self, layer: int, size: int, count: int) -> tuple[Array, float]:
        near = self.name == "gemma3" and layer % 6 != 5
        base = 10000.0 if near else self.of("rope.freq_base", 10000.0)
        speeds = 1 / base ** (np.arange(0, size, 2) / size)
        if "rope_freqs.weight" in self.weights:
            speeds = speeds / self.weights["rope_freqs.weight"]
        kind, factor = self.of("rope.scaling.type"), self.of("rope.scaling.factor")
        if kind == "linear" and not near:
            return speeds / factor, 1.0
        if kind == "longrope":
            which = "long" if count > self.of("rope.scaling.original_context_length") else "short"
            return speeds / self.weights[f"rope_factors_{which}.weight"], self.of("rope.scaling.attn_factor")
        if kind == "yarn":
            return yarn(speeds, base, factor, self.of("rope.scaling.original_context_length"))
        return speeds, 1.0


def yarn(speeds: Array, base: float, factor: float, trained: int) -> tuple[Array, float]:
    """Equations 22 to 25 of arXiv:2309.00071, with alpha 1 and beta 32, and ends at whole pairs as in its code."""

    def pair(turns: float) -> float:
        return len(speeds) * np.log(trained / (turns * 2 * np.pi)) / np.log(base)

    low, high = max(np.floor(pair(32)), 0), min(np.ceil(pair(1)), 2 * len(speeds) - 1)
    slow = np.clip((np.arange(len(speeds)) - low) / max(high - low, 0.001), 0, 1)
    return slow * speeds / factor + (1 - slow) * speeds, 0.1 * np.log(factor) + 1


def silu(x: Array) -> Array:
    return x / (1 + np.exp(-x))


def clamped(gate: Array, up: Array) -> Array:
    """Of gpt-oss."""
    gate, up = np.minimum(gate, 7), np.clip(up, -7, 7)
    return gate / (1 + np.exp(-1.702 * gate)) * (up + 1)


def gelu(x: Array) -> Array:
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
