"""Makes `encoders.json`: what eager `transformers` computes in f64 of encoders, of each text alone.

It is run by hand, in an environment with torch and transformers: python make_encoders.py
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from transformers import AutoModelForSequenceClassification
from transformers.models.auto.configuration_auto import CONFIG_MAPPING

sys.path.insert(0, str(Path(__file__).parent))
from encoders import FIRST, KEPT, LENGTHS, PADDING, TOKENS, TYPES
from folders import weights

COMMON = {
    "vocab_size": 96,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "pad_token_id": PADDING,
}
DISTILBERT = {"vocab_size": 96, "dim": 64, "hidden_dim": 96, "n_layers": 3, "n_heads": 4, "max_position_embeddings": 64}
CASES = {
    "bert": ("bert", {"type_vocab_size": 2}),
    "bert-tanh": ("bert", {"hidden_act": "gelu_new", "type_vocab_size": 3, "num_labels": 3}),
    "bert-relu": ("bert", {"hidden_act": "relu", "type_vocab_size": 1, "layer_norm_eps": 1e-3}),
    "roberta": ("roberta", {"type_vocab_size": 1, "layer_norm_eps": 1e-5}),
    "xlm-roberta": ("xlm-roberta", {"type_vocab_size": 1, "layer_norm_eps": 1e-5}),
    "mpnet": ("mpnet", {"layer_norm_eps": 1e-5}),
    "distilbert": ("distilbert", DISTILBERT),
    "nomic_bert": ("nomic_bert", {"type_vocab_size": 2, "max_position_embeddings": 128}),
    "modernbert": ("modernbert", {"local_attention": 6, "num_hidden_layers": 4}),
    "modernbert-mean": (
        "modernbert",
        {"local_attention": 6, "num_hidden_layers": 4, "classifier_pooling": "mean", "norm_bias": True}
        | {"attention_bias": True, "mlp_bias": True, "classifier_bias": True},
    ),
}


def made(kind: str, said: dict[str, object]) -> dict[str, object]:
    every = {"num_labels": 1, "pad_token_id": PADDING, **({} if kind == "distilbert" else COMMON), **said}
    config = CONFIG_MAPPING[kind](**every)
    config._attn_implementation = "eager"
    model = AutoModelForSequenceClassification.from_config(config, dtype=torch.float32).eval()
    held = dict(model.named_parameters())
    shapes = {name: list(one.shape) for name, one in held.items()}
    found: dict[str, list[object]] = {"hidden": [], "scores": []}
    with torch.no_grad():
        for name, one in held.items():
            one.copy_(torch.from_numpy(weights(name, one.shape)))
        wide = model.double()
        for number, count in enumerate(LENGTHS):
            given = {"input_ids": torch.from_numpy(TOKENS[number : number + 1, :count])}
            if said.get("type_vocab_size", 1) > 1:
                given["token_type_ids"] = torch.from_numpy(TYPES[number : number + 1, :count])
            hidden, scores = wide.base_model(**given).last_hidden_state, wide(**given).logits
            found["hidden"].append(hidden[0, :, :FIRST].numpy().round(9).tolist())
            found["scores"].append(scores[0].numpy().round(9).tolist())
    config.architectures = [type(model).__name__]
    said = json.loads(config.to_json_string(use_diff=False))
    said = {key: value for key, value in said.items() if value is not None and not key.startswith(OF_NO_NETWORK)}
    return {"config": said, "shapes": shapes, **found}


OF_NO_NETWORK = (
    "_",
    "id2label",
    "label2id",
    "return_",
    "output_",
    "chunk_",
    "is_encoder",
    "initializer",
    "use_cache",
)


if __name__ == "__main__":
    kept = {name: made(*case) for name, case in CASES.items()}
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(case, sort_keys=True)}" for name, case in kept.items())
    KEPT.write_text(f"{{\n{lines}\n}}\n")
