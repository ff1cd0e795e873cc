"""Write the folders beside this file, by the builder of ``onnxruntime-genai`` 0.18.0.

It takes ``torch`` and ``transformers`` (5.24.0); the tests need none of these:

    python make_folders.py

``llama_int4`` has packed queries, keys and values, and weights of 4 bits in blocks; ``gemma2`` has a cache that holds a
window in one of two layers, and scores that are bounded. ``logits.npz`` is what ``transformers`` computes in float64 of
the network in ``gemma2``, for ``tokens``, token by token; the root of its size is exact, as the builder rounds it.
"""

from __future__ import annotations

import json
import string
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, models
from transformers import AutoModelForCausalLM, Gemma2Config, Gemma2ForCausalLM, LlamaConfig, LlamaForCausalLM

HERE = Path(__file__).parent
SIZES = {
    "vocab_size": 100,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 32,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
NETWORKS = {
    "llama_int4": (LlamaForCausalLM, LlamaConfig(**SIZES)),
    "gemma2": (
        Gemma2ForCausalLM,
        Gemma2Config(**{**SIZES, "hidden_size": 16}, query_pre_attn_scalar=16, sliding_window=8),
    ),
}


def main() -> None:
    for name, (network, config) in NETWORKS.items():
        torch.manual_seed(1)
        model = network(config).eval()
        for parameter in model.parameters():
            parameter.data.add_(0.1 * torch.randn_like(parameter))
        with tempfile.TemporaryDirectory() as folder:
            model.save_pretrained(folder)
            write_tokenizer(Path(folder))
            precision = "int4" if "int4" in name else "fp32"
            command = ["-m", "onnxruntime_genai.models.builder", "-i", folder, "-o", HERE / name, "-p", precision]
            subprocess.run([sys.executable, *command, "-e", "cpu"], check=True)
            if name == "gemma2":
                write_logits(folder)


def write_tokenizer(folder: Path) -> None:
    """A token for each letter."""
    letters = string.printable.strip()[:90]
    words = ["<pad>", "<s>", "</s>", *letters]
    Tokenizer(models.BPE(vocab={word: at for at, word in enumerate(words)}, merges=[])).save(
        str(folder / "tokenizer.json")
    )
    names = {"bos_token": "<s>", "pad_token": "<pad>", "tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(names))


def write_logits(folder: str) -> None:
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").double().eval()
    tokens = torch.from_numpy(np.random.default_rng(3).integers(3, 93, (1, 21)))
    with torch.no_grad():
        np.savez_compressed(HERE / "logits.npz", tokens=tokens.numpy(), logits=model(tokens).logits[0].float().numpy())


if __name__ == "__main__":
    main()
