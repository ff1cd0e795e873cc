"""Small vocabularies, trained here, as GGUF metadata and as ``tokenizer.json``; and texts that are hard to take."""

from __future__ import annotations

from functools import cache
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

CORPUS = [
    "The quick brown fox jumps over the lazy dog, and the other dogs don't care: 12345 times!",
    "Der schnelle braune Fuchs springt über den faulen Hund; größer geht's nicht. Straße",
    "def quick(fox):\n    return fox + 1  # 2024-01-02\n\n\nprint(quick(41))\r\n",
    "日本語のテキスト、漢字とかな。 Привет мир! 안녕하세요 🙂🙂 the end the end",
] * 20

TEXTS = [
    "",
    " ",
    "    ",
    "\n",
    "\r\n\t \n  x",
    "the end",
    " the end ",
    "Don't THE'LL we'Ve 's",
    "1234567 3.14 ١٢٣ ⅷ",
    "naïve café Straße",
    "日本語 Привет",
    "🙂",
    "👨‍👩‍👧‍👦 🇩🇪 e\u0301",
    "a\u0000b\u200b\ufeff\ufffd",
    "<|end|>",
    "say <|end|> and <|end|><|start|>x",
    "<|en d|>",
    "▁ ▁▁the",
    "x" * 300,
    "\U0010ffff",
]

SPECIAL = ["<|start|>", "<|end|>"]


@cache
def trained_bytes(size: int = 400) -> Tokenizer:
    """A byte-level vocabulary, cut as GPT-2 does; the special tokens come last."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in SPECIAL])
    return tokenizer


def model_of(tokenizer: Tokenizer) -> dict[str, Any]:
    """What ``tokenizer.json`` says of the model: its vocabulary and its merges."""
    import json

    return json.loads(tokenizer.to_str())["model"]


def bytes_metadata(pre: str = "gpt-2") -> dict[str, Any]:
    """The byte-level vocabulary as a GGUF file has it."""
    tokenizer = trained_bytes()
    texts = [tokenizer.id_to_token(token) for token in range(tokenizer.get_vocab_size())]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": texts,
        "tokenizer.ggml.token_type": [3 if text in SPECIAL else 1 for text in texts],
        "tokenizer.ggml.merges": [" ".join(pair) for pair in model_of(tokenizer)["merges"]],
        "tokenizer.ggml.bos_token_id": texts.index("<|start|>"),
        "tokenizer.ggml.eos_token_id": texts.index("<|end|>"),
    }


@cache
def _pieces() -> tuple[str, ...]:
    """Pieces as SentencePiece's byte pair encoding has them, in the order in which they were found."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=300, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tuple(left + right for left, right in model_of(tokenizer)["merges"])


def pieces_metadata() -> dict[str, Any]:
    """A vocabulary of pieces with scores: specials, bytes, merged pieces by rank, then single characters."""
    letters = sorted({letter for piece in _pieces() for letter in piece} | {"▁", "ü", "日"})
    merged = [piece for piece in dict.fromkeys(_pieces()) if len(piece) > 1]
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *merged, *letters, *SPECIAL]
    types = [2, 3, 3, *[6] * 256, *[1] * len(merged), *[1] * len(letters), *[3] * len(SPECIAL)]
    scores = [0.0] * 259 + [-float(rank) for rank in range(len(merged) + len(letters))] + [0.0] * len(SPECIAL)
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": words,
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.scores": scores,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    }
