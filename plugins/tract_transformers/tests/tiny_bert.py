"""A small network in the manner of BERT, with random weights: as a folder, as a GGUF file, and over NumPy in f64."""

from __future__ import annotations

import json
import re
from functools import cache
from math import erf, sqrt
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from vocabularies import CORPUS

Array = np.ndarray[Any, np.dtype[Any]]

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LAYERS, WIDTH, HEADS, INNER, PLACES, EPSILON = 2, 32, 4, 48, 64, 1e-12


def trained_words(lowercase: bool = True) -> Tokenizer:
    """WordPiece, with what BERT puts around texts; the same one each time, as training is a matter of chance."""
    return _trained(lowercase)


@cache
def _trained(lowercase: bool) -> Tokenizer:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=240, special_tokens=SPECIAL))
    ends = [(text, tokenizer.token_to_id(text)) for text in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=ends
    )
    return tokenizer


def words_metadata(lowercase: bool = True) -> dict[str, Any]:
    """The vocabulary as a GGUF file has it: U+2581 where words begin, and nothing inside of them."""
    tokenizer = trained_words(lowercase)
    texts = [tokenizer.id_to_token(token) for token in range(tokenizer.get_vocab_size())]
    phantom = [text if text in SPECIAL else text[2:] if text.startswith("##") else f"▁{text}" for text in texts]
    return {
        "tokenizer.ggml.model": "bert",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": phantom,
        "tokenizer.ggml.token_type": [3 if text in SPECIAL else 1 for text in texts],
        "tokenizer.ggml.token_type_count": 2,
        "tokenizer.ggml.bos_token_id": texts.index("[CLS]"),
        "tokenizer.ggml.seperator_token_id": texts.index("[SEP]"),
        "tokenizer.ggml.unknown_token_id": texts.index("[UNK]"),
        "tokenizer.ggml.padding_token_id": texts.index("[PAD]"),
        "tokenizer.ggml.mask_token_id": texts.index("[MASK]"),
    }


def shapes(labels: int) -> dict[str, tuple[int, ...]]:
    """The weights, as folders call them."""
    rows = {"word": trained_words().get_vocab_size(), "position": PLACES, "token_type": 2}
    found: dict[str, tuple[int, ...]] = {
        f"bert.embeddings.{name}_embeddings.weight": (count, WIDTH) for name, count in rows.items()
    }
    norms, linear = ["bert.embeddings.LayerNorm"], {"bert.pooler.dense": (WIDTH, WIDTH), "classifier": (labels, WIDTH)}
    for layer in range(LAYERS):
        front = f"bert.encoder.layer.{layer}."
        linear |= {f"{front}attention.self.{part}": (WIDTH, WIDTH) for part in ("query", "key", "value")}
        linear |= {f"{front}attention.output.dense": (WIDTH, WIDTH), f"{front}intermediate.dense": (INNER, WIDTH)}
        linear |= {f"{front}output.dense": (WIDTH, INNER)}
        norms += [f"{front}{part}.LayerNorm" for part in ("attention.output", "output")]
    for name, shape in (linear | dict.fromkeys(norms, (WIDTH,))).items():
        found |= {f"{name}.weight": shape, f"{name}.bias": shape[:1]}
    return found


def drawn(labels: int = 1) -> dict[str, Array]:
    """Weights around 0, but scales around 1."""
    random = np.random.default_rng(7)
    held = {name: random.normal(size=shape).astype(np.float32) for name, shape in shapes(labels).items()}
    return {
        name: array * np.float32(0.3 if array.ndim > 1 else 0.1) + np.float32("LayerNorm.weight" in name)
        for name, array in held.items()
    }


WEIGHTS = drawn()


def states(tokens: list[int], types: list[int]) -> Array:
    """What a text has of its tokens [S,width], in f64."""
    w = {name: array.astype(np.float64) for name, array in WEIGHTS.items()}

    def linear(x: Array, name: str) -> Array:
        return x @ w[f"{name}.weight"].T + w[f"{name}.bias"]

    def norm(x: Array, name: str) -> Array:
        standard = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + EPSILON)
        return standard * w[f"{name}.weight"] + w[f"{name}.bias"]

    def heads(x: Array) -> Array:
        return x.reshape(len(x), HEADS, -1).swapaxes(0, 1)

    front = "bert.embeddings"
    x = w[f"{front}.word_embeddings.weight"][tokens] + w[f"{front}.position_embeddings.weight"][: len(tokens)]
    x = norm(x + w[f"{front}.token_type_embeddings.weight"][types], f"{front}.LayerNorm")
    for layer in range(LAYERS):
        front = f"bert.encoder.layer.{layer}"
        q, k, v = (heads(linear(x, f"{front}.attention.self.{part}")) for part in ("query", "key", "value"))
        powers = np.exp(q @ k.swapaxes(1, 2) / sqrt(WIDTH / HEADS))
        mixed = powers / powers.sum(-1, keepdims=True) @ v
        mixed = linear(mixed.swapaxes(0, 1).reshape(x.shape), f"{front}.attention.output.dense")
        x = norm(mixed + x, f"{front}.attention.output.LayerNorm")
        inner = linear(x, f"{front}.intermediate.dense")
        inner = inner * (1 + np.vectorize(erf)(inner / sqrt(2))) / 2
        x = norm(linear(inner, f"{front}.output.dense") + x, f"{front}.output.LayerNorm")
    return x


def score(tokens: list[int], types: list[int]) -> float:
    """What the head gives a pair."""
    w = {name: array.astype(np.float64) for name, array in WEIGHTS.items()}
    pooled = np.tanh(states(tokens, types)[0] @ w["bert.pooler.dense.weight"].T + w["bert.pooler.dense.bias"])
    return float(pooled @ w["classifier.weight"][0] + w["classifier.bias"][0])


def bert_folder(folder: Path, *, head: bool = False, labels: int = 1, modules: dict[str, Any] | None = None) -> Path:
    """As the ``transformers`` package keeps it. ``modules``: files of sentence-transformers, by name."""
    folder.mkdir(parents=True)
    held = WEIGHTS if labels == 1 else drawn(labels)
    if not head:
        held = {name.removeprefix("bert."): array for name, array in held.items() if "classifier" not in name}
    config = {"model_type": "bert", "architectures": ["BertForSequenceClassification" if head else "BertModel"]}
    config |= {"hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "hidden_act": "gelu"}
    config |= {"intermediate_size": INNER, "max_position_embeddings": PLACES, "layer_norm_eps": EPSILON}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(safetensors(held))
    trained_words().save(str(folder / "tokenizer.json"))
    for name, said in (modules or {}).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(said))
    return folder


def safetensors(held: dict[str, Array]) -> bytes:
    """The content of a file of weights in f32."""
    header: dict[str, Any] = {}
    data = b""
    for name, array in held.items():
        ends = [len(data), len(data) + array.nbytes]
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": ends}
        data += array.tobytes()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def bert_file(path: Path, pooling: Any = gguf.PoolingType.CLS, *, head: bool = False) -> Path:
    """The same as a GGUF file, under the names that the package ``gguf`` has. ``pooling``: what the file says of it."""
    writer = gguf.GGUFWriter(path, "bert")
    sizes = {"block_count": LAYERS, "context_length": PLACES, "embedding_length": WIDTH, "feed_forward_length": INNER}
    for name, size in (sizes | {"attention.head_count": HEADS}).items():
        writer.add_uint32(f"bert.{name}", size)
    writer.add_layer_norm_eps(EPSILON)
    writer.add_causal_attention(False)
    add = {int: writer.add_int32, str: writer.add_string, list: writer.add_array}
    add.get(type(pooling), writer.add_uint32)("bert.pooling_type", pooling)
    for name, value in words_metadata().items():
        add = {list: writer.add_array, int: writer.add_uint32, str: writer.add_string}[type(value)]
        add(name, value)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.BERT, LAYERS)
    for name, array in WEIGHTS.items():
        own = re.sub(r"^classifier\.", "classifier.out_proj.", name.removeprefix("bert."))
        called = names.get_name(own.replace("pooler.dense", "classifier.dense"), try_suffixes=(".weight", ".bias"))
        if called is not None and (head or not called.startswith("cls")):
            writer.add_tensor(called, array)
    for finish in (writer.write_header_to_file, writer.write_kv_data_to_file, writer.write_tensors_to_file):
        finish()
    writer.close()
    return path
