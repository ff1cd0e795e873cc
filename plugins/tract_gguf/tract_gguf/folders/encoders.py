"""Folders of encoders of texts, as what files of GGUF hold of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any, Final, cast

from tract_core.errors import CorruptModel, Unsupported
from tract_core.frozen import frozen
from tract_gguf.reading.file import GgufFile
from tract_gguf.reading.metadata import Value
from tract_gguf.reading.quantised import QuantisedTensor
from tract_gguf.reading.tensors import GgufTensor

Config = Mapping[str, Any]
Tensor = GgufTensor | QuantisedTensor

_SAID: Final = {
    **dict.fromkeys(("num_hidden_layers", "n_layers", "n_layer"), "block_count"),
    **dict.fromkeys(("hidden_size", "dim", "n_embd"), "embedding_length"),
    **dict.fromkeys(("intermediate_size", "hidden_dim", "n_inner"), "feed_forward_length"),
    **dict.fromkeys(("num_attention_heads", "n_heads", "n_head"), "attention.head_count"),
    **dict.fromkeys(("max_position_embeddings", "n_positions"), "context_length"),
    **dict.fromkeys(("layer_norm_eps", "norm_eps", "layer_norm_epsilon"), "attention.layer_norm_epsilon"),
    "head_dim": "attention.key_length",
    "local_attention": "attention.sliding_window",
}
"""What is said in the same way, under other names."""

_FUNCTIONS: Final = ("hidden_activation", "hidden_act", "activation", "activation_function")
_REFUSED: Final = (
    *("is_decoder", "add_cross_attention", "prenorm", "parallel_block", "use_rms_norm"),
    *("rotary_emb_interleaved", "rotary_scaling_factor", "rope_scaling"),
)

_ATTENTION: Final = {f"self_attn.{part}_proj": f"attn_{part}" for part in "qkv"} | {"self_attn.o_proj": "attn_output"}

_BERT: Final = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
_DISTILBERT: Final = {
    **_BERT,
    "attention.q_lin": "attn_q",
    "attention.k_lin": "attn_k",
    "attention.v_lin": "attn_v",
    "attention.out_lin": "attn_output",
    "sa_layer_norm": "attn_output_norm",
    "ffn.lin1": "ffn_up",
    "ffn.lin2": "ffn_down",
    "output_layer_norm": "layer_output_norm",
}
_MPNET: Final = {
    **_BERT,
    **{f"attention.attn.{part}": f"attn_{part}" for part in "qkv"},
    "attention.attn.o": "attn_output",
    "attention.LayerNorm": "attn_output_norm",
    "encoder.relative_attention_bias": "blk.0.attn_rel_b",
}
_NOMIC: Final = {
    **_BERT,
    **_ATTENTION,
    "emb_ln": "token_embd_norm",
    "attn.Wqkv": "attn_qkv",
    "attn.out_proj": "attn_output",
    **dict.fromkeys(("norm1", "post_attention_layernorm"), "attn_output_norm"),
    **dict.fromkeys(("norm2", "post_mlp_layernorm"), "layer_output_norm"),
    **dict.fromkeys(("mlp.fc11", "mlp.up_proj"), "ffn_up"),
    **dict.fromkeys(("mlp.fc12", "mlp.gate_proj"), "ffn_gate"),
    **dict.fromkeys(("mlp.fc2", "mlp.down_proj"), "ffn_down"),
}
_MODERN: Final = {
    "embeddings.tok_embeddings": "token_embd",
    "embeddings.norm": "token_embd_norm",
    "attn_norm": "attn_norm",
    "attn.Wqkv": "attn_qkv",
    "attn.Wo": "attn_output",
    "mlp_norm": "ffn_norm",
    "mlp.Wi": "ffn_up",
    "mlp.Wo": "ffn_down",
    "final_norm": "output_norm",
}

_OF_POOLER: Final = {"pooler.dense": "cls", "classifier": "cls.output"}
_OF_ROBERTA: Final = {"classifier.dense": "cls", "classifier.out_proj": "cls.output"}
_OF_DISTILBERT: Final = {"pre_classifier": "cls", "classifier": "cls.output"}
_OF_MODERN: Final = {"head.dense": "cls", "head.norm": "cls.norm", "classifier": "cls.output"}

_PREFIX: Final = re.compile(r"(?:bert|roberta|distilbert|mpnet|nomic_bert|model)\.")
_LAYER: Final = re.compile(r"(?:(?:encoder|transformer)\.)?layers?\.(\d{1,9})\.(.+)")
_PARTS: Final = {"weight": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}

_LEFT_OUT: Final = ("cls.", "lm_head.", "pooler.", "vocab_", "head.", "decoder.")
"""With what weights begin that guess tokens, or pool for a head that is not there."""

_BUFFERS: Final = ("position_ids", "token_type_ids", "rotary_emb.inv_freq")
"""How the names of what was saved beside weights end."""

_HEADS: Final = ("Model", "ForMaskedLM", "ForPreTraining", "ForSequenceClassification")

Further = Callable[[Config], dict[str, Value]]


@frozen
class EncoderKind:
    """A kind of encoder. ``architecture``: what builds it; ``names``, ``head``: of its tensors, and of those of a head.

    ``norm_eps``: where nothing is said of it. ``functions``: of its units, the first where nothing is said.
    ``said``: what else files say. ``from_padding``: whether positions are counted from the number of the padding on.
    """

    architecture: str
    names: Mapping[str, str]
    head: Mapping[str, str]
    norm_eps: float = 1e-12
    functions: tuple[str, ...] = ("gelu", "gelu_new", "gelu_pytorch_tanh", "relu")
    said: Further = field(default=lambda _: {})
    from_padding: bool = False


def _of_distilbert(config: Config) -> dict[str, Value]:
    return {"classifier_activation": "relu"}


def _of_nomic(config: Config) -> dict[str, Value]:
    if config.get("rotary_emb_fraction", 1) != 1:
        raise Unsupported("a part of each head turns, which is not built")
    given = _object(config.get("rope_parameters"))
    return {"rope.freq_base": _turning(given, _number(config, "rotary_emb_base", 1000.0))}


def _of_modern(config: Config) -> dict[str, Value]:
    given = _object(config.get("rope_parameters"))
    far, near = (_object(given.get(f"{one}_attention")) for one in ("full", "sliding"))
    every, types = config.get("global_attn_every_n_layers", 3), config.get("layer_types")
    if isinstance(types, list):
        several = cast("list[object]", types)
        every = next((at for at, one in enumerate(several) if at and one == "full_attention"), len(several))
        wanted = ["sliding_attention" if at % max(every, 1) else "full_attention" for at in range(len(several))]
        if several != wanted:
            raise Unsupported(f"config.json has layers of the types {several!r:.80}, which is not built")
    if type(every) is not int:
        raise CorruptModel(f"config.json has {every!r:.80} as global_attn_every_n_layers, wanted an integer")
    return {
        "attention.sliding_window_pattern": every,
        "rope.freq_base": _turning(far, _number(config, "global_rope_theta", 160000.0)),
        "rope.freq_base_swa": _turning(near, _number(config, "local_rope_theta", 10000.0)),
        "classifier_pooling": str(config.get("classifier_pooling", "cls")),
        "classifier_activation": str(config.get("classifier_activation", "gelu")),
    }


def _turning(given: Config, base: float) -> float:
    """How many times slower the last pair turns than the first. Raises Unsupported where positions are scaled."""
    kind = given.get("rope_type", "default")
    if kind != "default":
        raise Unsupported(f"positions are scaled by {kind!r:.80}, which is not built for encoders")
    return _number(given, "rope_theta", base)


_ROBERTA: Final = EncoderKind("bert", _BERT, _OF_ROBERTA, from_padding=True)

ENCODERS: Final[Mapping[str, EncoderKind]] = {
    "bert": EncoderKind("bert", _BERT, _OF_POOLER),
    **dict.fromkeys(("roberta", "xlm-roberta", "camembert"), _ROBERTA),
    "mpnet": EncoderKind("bert", _MPNET, _OF_ROBERTA, from_padding=True),
    "distilbert": EncoderKind("bert", _DISTILBERT, _OF_DISTILBERT, said=_of_distilbert),
    "nomic_bert": EncoderKind("nomic-bert", _NOMIC, _OF_POOLER, functions=("silu", "swiglu"), said=_of_nomic),
    "modernbert": EncoderKind("modern-bert", _MODERN, _OF_MODERN, 1e-5, said=_of_modern),
}
"""By ``model_type``."""


def encoder_of(config: Config) -> EncoderKind | None:
    """The kind of encoder that a configuration is of, if it is of one."""
    name = config.get("model_type")
    return ENCODERS.get(name) if isinstance(name, str) else None


def encoder_file(config: Config, kind: EncoderKind, held: Mapping[str, Tensor]) -> GgufFile:
    """What a file would hold of an encoder. ``held``: the tensors of its folder. Raises ModelError."""
    offset = _offset(config) if kind.from_padding else 0
    metadata, names = _metadata(config, kind, offset), {**kind.names, **(kind.head if _has_head(config) else {})}
    tensors: dict[str, Tensor] = {}
    for name, tensor in held.items():
        called = _name_in_files(name, names)
        if called is not None and called in tensors:
            raise CorruptModel(f"there are two tensors that files call {called!r:.80}")
        if called is not None:
            own = replace(tensor, name=called)
            tensors[called] = _behind(own, offset) if offset and called == "position_embd.weight" else own
    return GgufFile(3, 1, MappingProxyType(metadata), MappingProxyType(tensors))


def _has_head(config: Config) -> bool:
    """Whether texts get scores. Raises Unsupported for a network of another task."""
    given = config.get("architectures")
    name = cast("list[object]", given)[0] if isinstance(given, list) and given else "Model"
    if not isinstance(name, str) or not name.endswith(_HEADS):
        raise Unsupported(
            f"config.json has an encoder that is a {name!r:.80}; read are those with the ends {', '.join(_HEADS)}"
        )
    return name.endswith("ForSequenceClassification")


def _metadata(config: Config, kind: EncoderKind, offset: int) -> dict[str, Value]:
    said: dict[str, Value] = {"attention.layer_norm_epsilon": kind.norm_eps}
    for key, name in _SAID.items():
        value = config.get(key)
        if value is not None:
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise CorruptModel(f"config.json has {value!r:.80} as {key}, wanted a number")
            said[name] = value
    strange = next((one for one in _REFUSED if config.get(one)), None)
    if strange is not None or config.get("position_embedding_type", "absolute") != "absolute":
        raise Unsupported(f"config.json has {strange or 'positions that are not absolute'}, which is not built")
    said |= kind.said(config) | {"activation": _function(config, kind)}
    if offset and isinstance(said.get("context_length"), int):
        said["context_length"] = cast("int", said["context_length"]) - offset
    return {"general.architecture": kind.architecture} | {f"{kind.architecture}.{key}": said[key] for key in said}


def _function(config: Config, kind: EncoderKind) -> str:
    found = next((config[key] for key in _FUNCTIONS if isinstance(config.get(key), str)), kind.functions[0])
    if found not in kind.functions:
        raise Unsupported(f"units are of the function {found!r:.80}, wanted {' or '.join(kind.functions)}")
    return "silu" if found == "swiglu" else found


def _offset(config: Config) -> int:
    """The row of the first position: the one behind that of the padding."""
    found = config.get("pad_token_id", 1)
    if type(found) is not int or not 0 <= found < 1 << 31:
        raise CorruptModel(f"config.json has {found!r:.80} as pad_token_id, wanted an integer of 0 or more")
    return found + 1


def _behind(tensor: Tensor, rows: int) -> Tensor:
    """A matrix without its first rows. Raises CorruptModel where it has no more, Unsupported for a quantised one."""
    if isinstance(tensor, QuantisedTensor):
        raise Unsupported("the matrix of positions is quantised, which is not built")
    if len(tensor.shape) != 2 or tensor.shape[0] <= rows:
        raise CorruptModel(f"the matrix of positions has the shape {list(tensor.shape)}, of which {rows} rows are none")
    size = len(tensor.content) // tensor.shape[0]
    left = (tensor.shape[0] - rows, tensor.shape[1])
    return GgufTensor(tensor.name, tensor.kind, left, tensor.content[rows * size :])


def _name_in_files(name: str, names: Mapping[str, str]) -> str | None:
    """What files call a tensor: its own name where they have none, ``None`` for one that is not part of an encoder."""
    if name.endswith(_BUFFERS):
        return None
    prefix = _PREFIX.match(name)
    whole, _, what = name[prefix.end() if prefix else 0 :].rpartition(".")
    layer = _LAYER.fullmatch(whole)
    part, where = (layer[2], f"blk.{layer[1]}.") if layer is not None else (whole, "")
    if part in names and what in _PARTS:
        return f"{where}{names[part]}.{_PARTS[what]}"
    return None if f"{whole}.".startswith(_LEFT_OUT) else name


def _object(found: object) -> Config:
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise CorruptModel(f"config.json has {found!r:.80} as rope_parameters, wanted an object")
    return cast("Config", found)


def _number(config: Config, key: str, default: float) -> float:
    found = config.get(key)
    found = default if found is None else found
    if isinstance(found, bool) or not isinstance(found, (int, float)) or not 0 < found < float("inf"):
        raise CorruptModel(f"config.json has {found!r:.80} as {key}, wanted a number above 0")
    return float(found)
