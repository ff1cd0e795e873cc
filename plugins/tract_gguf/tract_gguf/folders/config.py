"""What a ``config.json`` says of a network, as files of GGUF have it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import log, pi, sqrt
from typing import Any, Final, cast

import numpy as np

from tract_core.errors import CorruptModel, Unsupported
from tract_core.frozen import frozen
from tract_core.plugins.keys import Array
from tract_gguf.folders import names
from tract_gguf.folders.encoders import ENCODERS
from tract_gguf.folders.halves import FAMILIES
from tract_gguf.reading.metadata import Value

Config = Mapping[str, Any]

_SAID: Final = {
    "num_hidden_layers": "block_count",
    "n_layer": "block_count",
    "hidden_size": "embedding_length",
    "n_embd": "embedding_length",
    "intermediate_size": "feed_forward_length",
    "n_inner": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "n_head": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "max_position_embeddings": "context_length",
    "n_positions": "context_length",
    "attn_logit_softcapping": "attn_logit_softcapping",
    "final_logit_softcapping": "final_logit_softcapping",
    "embedding_multiplier": "embedding_scale",
    "residual_multiplier": "residual_scale",
    "attention_multiplier": "attention.scale",
    "logits_scaling": "logit_scale",
    "use_parallel_residual": "use_parallel_residual",
    "sliding_window": "attention.sliding_window",
    **dict.fromkeys(("num_experts", "num_local_experts"), "expert_count"),
    "num_experts_per_tok": "expert_used_count",
    "norm_topk_prob": "expert_weights_norm",
    "swiglu_alpha": "swiglu_alpha",
    "swiglu_limit": "swiglu_limit",
    "rms_norm_eps": "attention.layer_norm_rms_epsilon",
    **dict.fromkeys(("layer_norm_eps", "layer_norm_epsilon", "norm_epsilon"), "attention.layer_norm_epsilon"),
}
"""What is said in the same way, under other names."""


@frozen
class Kind:
    """A kind of network. ``architecture``: what builds it; ``names``: of its tensors; ``functions``: of its units.

    ``refused``: what a configuration may have that is not built. ``scales_less_one``: whether scales of norms are
    stored as one less. ``turned``: whether matrices are stored with their axes the other way round.
    """

    architecture: str
    names: Mapping[str, str]
    functions: tuple[str, ...] = ("silu",)
    refused: tuple[str, ...] = ()
    scales_less_one: bool = False
    turned: bool = False


_TANH: Final = ("gelu_pytorch_tanh", "gelu_new")
_PLAIN: Final = ("use_parallel_residual", "qk_layernorm")

KINDS: Final[Mapping[str, Kind]] = {
    **dict.fromkeys(("llama", "mistral"), Kind("llama-halves", names.LLAMA)),
    **{one: Kind(one, names.LLAMA, refused=("use_sliding_window",)) for one in ("qwen2", "qwen3")},
    "mixtral": Kind("llama-halves", names.MIXTRAL),
    "qwen2_moe": Kind("qwen2moe", names.EXPERTS, refused=("use_sliding_window",)),
    "qwen3_moe": Kind("qwen3moe", names.EXPERTS, refused=("use_sliding_window",)),
    "olmoe": Kind("olmoe", names.EXPERTS, refused=("clip_qkv",)),
    "gpt_oss": Kind("gpt-oss-in-pairs", names.GPT_OSS),
    "granitemoe": Kind("granitemoe-halves", names.GRANITE_MOE),
    "smollm3": Kind("smollm3-halves", names.LLAMA, refused=("use_sliding_window",)),
    "granite": Kind("granite-halves", names.LLAMA),
    "olmo2": Kind("olmo2", names.OLMO2),
    "phi3": Kind("phi3", names.PHI3),
    "phi": Kind("phi2", names.PHI2, _TANH, _PLAIN),
    "starcoder2": Kind("starcoder2", names.STARCODER2, _TANH),
    "stablelm": Kind("stablelm", names.LLAMA, refused=_PLAIN),
    "gpt_neox": Kind("gptneox", names.NEOX, ("gelu",)),
    "gpt2": Kind("gpt2", names.GPT2, _TANH, ("scale_attn_by_inverse_layer_idx",), turned=True),
    "gemma": Kind("gemma", names.LLAMA, (*_TANH, "gelu"), scales_less_one=True),
    "gemma2": Kind("gemma2", names.GEMMA2, _TANH, scales_less_one=True),
    "gemma3_text": Kind("gemma3", names.GEMMA2, _TANH, ("use_bidirectional_attention",), scales_less_one=True),
}
"""By ``model_type``."""


def kind_of(config: Config) -> Kind:
    """The kind of network that a configuration is of. Raises Unsupported for one that is not built as it is."""
    name = config.get("model_type")
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        known = ", ".join(sorted({*KINDS, *FAMILIES, *ENCODERS}))
        raise Unsupported(
            f"config.json is of the model type {name!r:.80}; known are {known}",
            hint="export it to ONNX: optimum-cli export onnx --model FOLDER OUTPUT",
        )
    for one in kind.refused:
        if config.get(one):
            raise Unsupported(f"config.json has {one}, which is not built")
    function = next((config[key] for key in _FUNCTIONS if isinstance(config.get(key), str)), kind.functions[0])
    if function not in kind.functions:
        raise Unsupported(f"units are of the function {function!r:.80}, wanted {' or '.join(kind.functions)}")
    return kind


_FUNCTIONS: Final = ("hidden_activation", "hidden_act", "activation_function")


def metadata_of(config: Config, kind: Kind) -> tuple[dict[str, Value], dict[str, Array]]:
    """What files would say of it, and tensors that they have beside weights. Raises ModelError."""
    said: dict[str, Value] = {}
    for key, name in _SAID.items():
        value = config.get(key)
        if value is not None:
            if not isinstance(value, (bool, int, float)):
                raise CorruptModel(f"config.json has {value!r:.80} as {key}, wanted a number")
            said[name] = value
    if "feed_forward_length" not in said and kind.turned:
        said["feed_forward_length"] = 4 * _integer(said, "embedding_length")
    size = _size_of_heads(config, said)
    said |= {"attention.key_length": size, "attention.value_length": size}
    if "query_pre_attn_scalar" in config:
        said["attention.scale"] = 1 / sqrt(_number(config, "query_pre_attn_scalar"))
    _check_layers(config, kind, said)
    extra = _rotary(config, kind, said, size)
    return {"general.architecture": kind.architecture} | {
        f"{kind.architecture}.{key}": value for key, value in said.items()
    }, extra


def _size_of_heads(config: Config, said: Mapping[str, Value]) -> int:
    size = config.get("head_dim") or _integer(said, "embedding_length") // _integer(said, "attention.head_count")
    if type(size) is not int:
        raise CorruptModel(f"config.json has {size!r:.80} as head_dim, wanted an integer")
    return size


def _integer(said: Mapping[str, Value], key: str) -> int:
    found = said.get(key)
    if type(found) is not int or not 0 < found < 1 << 31:
        raise CorruptModel(f"config.json says {found!r:.80} of {key}, wanted an integer above 0")
    return found


def _number(config: Config, key: str, default: float | None = None) -> float:
    found = config.get(key)
    found = default if found is None else found
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 < found < float("inf"):
        raise CorruptModel(f"config.json has {found!r:.80} as {key}, wanted a number above 0")
    return float(found)


def _check_layers(config: Config, kind: Kind, said: Mapping[str, Value]) -> None:
    """Raises Unsupported where layers differ from one another in another way than the builder has them differ."""
    count = _integer(said, "block_count")
    windows = {"gemma2": (2, 1), "gemma3": (6, 5), "gpt-oss-in-pairs": (2, 1)}.get(kind.architecture)
    types = config.get("layer_types")
    if types is not None:
        far = [True] * count if windows is None else [number % windows[0] == windows[1] for number in range(count)]
        wanted = ["full_attention" if one else "sliding_attention" for one in far]
        all_near = windows is None and types == ["sliding_attention"] * count and "attention.sliding_window" in said
        if types != wanted and not all_near:
            raise Unsupported(f"config.json has layers of the types {types!r:.80}, which is not built")
    _check_turns(config, count)


def _check_turns(config: Config, count: int) -> None:
    """Raises Unsupported where other layers turn than three of four."""
    turns = config.get("no_rope_layers")
    if turns is not None and turns != [int((number + 1) % 4 != 0) for number in range(count)]:
        raise Unsupported(f"config.json has {turns!r:.80} as no_rope_layers, which is not built")


def _rotary(config: Config, kind: Kind, said: dict[str, Value], size: int) -> dict[str, Array]:
    """What it says of rotary embedding, in its old form or in its new one."""
    if kind.architecture == "gpt2":
        return {}
    found = _object(config.get("rope_parameters") or config.get("rope_scaling") or {})
    if "sliding_attention" in found:
        said["rope.freq_base_swa"] = _number(_object(found["sliding_attention"]), "rope_theta", 10000.0)
        found = _object(found.get("full_attention"))
    elif "rope_local_base_freq" in config:
        said["rope.freq_base_swa"] = _number(config, "rope_local_base_freq")
    base = _number(config, "rope_theta", _number(config, "rotary_emb_base", 10000.0))
    said["rope.freq_base"] = _number(found, "rope_theta", base)
    both = {**config, **found}
    part = next((_number(both, key) for key in _PARTS if key in both), 1.0)
    said["rope.dimension_count"] = int(size * min(part, 1.0))
    way = _WAYS.get(str(found.get("rope_type", found.get("type", "default"))))
    if way is None:
        raise Unsupported(f"positions are scaled as {found!r:.80}, which is not built; known are {', '.join(_WAYS)}")
    return way(config, found, said)


def _object(found: object) -> Config:
    if not isinstance(found, dict):
        raise CorruptModel(f"config.json has {found!r:.80} as scaling of positions, wanted an object")
    return cast("Config", found)


_PARTS: Final = ("partial_rotary_factor", "rotary_pct")

Way = Callable[[Config, Config, dict[str, Value]], dict[str, Array]]


def _as_trained(config: Config, found: Config, said: dict[str, Value]) -> dict[str, Array]:
    return {}


def _linear(config: Config, found: Config, said: dict[str, Value]) -> dict[str, Array]:
    said |= {"rope.scaling.type": "linear", "rope.scaling.factor": _number(found, "factor")}
    return {}


def _trained(config: Config, found: Config) -> float:
    key = "original_max_position_embeddings"
    return _number(found, key, _number(config, key, _number(config, "max_position_embeddings")))


def _yarn(config: Config, found: Config, said: dict[str, Value]) -> dict[str, Array]:
    factor, trained = _number(found, "factor"), _trained(config, found)
    if found.get("mscale"):
        raise Unsupported("positions are scaled by YaRN with mscale, which is not built")
    said["rope.scaling.yarn_whole_ends"] = found.get("truncate") is not False
    said |= {"rope.scaling.type": "yarn", "rope.scaling.factor": factor}
    said["rope.scaling.original_context_length"] = int(trained)
    said["rope.scaling.yarn_beta_fast"] = _number(found, "beta_fast", 32.0)
    said["rope.scaling.yarn_beta_slow"] = _number(found, "beta_slow", 1.0)
    if found.get("attention_factor") is not None:
        said["rope.scaling.attn_factor"] = _number(found, "attention_factor") / (1 + 0.1 * log(factor))
    return {}


def _llama3(config: Config, found: Config, said: dict[str, Value]) -> dict[str, Array]:
    """Slow pairs turn slower by a factor, those between somewhere between, as in transformers."""
    size, factor, trained = _integer(said, "rope.dimension_count"), _number(found, "factor"), _trained(config, found)
    low, high = _number(found, "low_freq_factor"), _number(found, "high_freq_factor")
    if low == high:
        raise CorruptModel("config.json has one number as low_freq_factor and high_freq_factor")
    base: Any = said["rope.freq_base"]
    turns = trained * base ** (-np.arange(0, size, 2) / size) / (2 * pi)
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    return {"rope_freqs.weight": (1 / ((1 - smooth) / factor + smooth)).astype(np.float32)}


def _longrope(config: Config, found: Config, said: dict[str, Value]) -> dict[str, Array]:
    trained, most = _trained(config, found), _number(config, "max_position_embeddings")
    factor = _number(found, "factor", most / trained)
    scale = 1.0 if factor <= 1 or trained <= 1 else sqrt(1 + log(factor) / log(trained))
    said |= {"rope.scaling.type": "longrope", "rope.scaling.original_context_length": int(trained)}
    said["rope.scaling.attn_factor"] = _number(found, "attention_factor", scale)
    factors = {f"rope_factors_{one}.weight": found.get(f"{one}_factor", "") for one in ("long", "short")}
    try:
        return {name: np.array(numbers, np.float32) for name, numbers in factors.items()}
    except (TypeError, ValueError):
        raise CorruptModel("config.json has no lists of numbers as long_factor and short_factor") from None


_WAYS: Final[Mapping[str, Way]] = {
    "default": _as_trained,
    "linear": _linear,
    "yarn": _yarn,
    "llama3": _llama3,
    "longrope": _longrope,
    "su": _longrope,
}
"""How positions are scaled, by name."""
