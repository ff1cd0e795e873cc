"""WordPiece and unigrams of GGUF metadata, beside the libraries that trained them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_bert import SPECIAL, trained_words, words_metadata
from tract_transformers.tokenizers.from_gguf import tokenizer_from_gguf
from vocabularies import TEXTS, bytes_metadata

from tract_core.errors import CorruptModel, InputError

KEPT: dict[str, Any] = json.loads(Path(__file__).with_name("unigrams.json").read_text())
"""What `make_unigrams.py` wrote, by the package ``sentencepiece``."""


@pytest.mark.parametrize("lowercase", [True, False])
def test_word_pieces_are_those_of_the_library_that_trained_them(lowercase: bool) -> None:
    """Whether letters become small is seen from the pieces, of which none has a capital then."""
    theirs, ours = trained_words(lowercase), tokenizer_from_gguf(words_metadata(lowercase))
    theirs.encode_special_tokens = True
    for text in [*TEXTS, "The Größer café", "[CLS] the [SEP]"]:
        assert ours.encode(text) == theirs.encode(text, add_special_tokens=False).ids, text
        for other in (None, "THE end", ""):
            found, wanted = ours.framed(text, other), theirs.encode(text, other)
            assert (found.tokens, found.types) == (wanted.ids, wanted.type_ids), (text, other)
    theirs.encode_special_tokens = False
    assert ours.encode("the [SEP]", special=True) == theirs.encode("the [SEP]", add_special_tokens=False).ids
    assert ours.decode(ours.encode("the quick dog")) == "the quick dog"
    assert ours.names["sep_token"] == "[SEP]"


def test_a_file_may_say_what_becomes_of_letters() -> None:
    key = "tokenizer.ggml.normalizer"
    theirs = trained_words(lowercase=True)
    assert "[UNK]" not in [theirs.id_to_token(one) for one in theirs.encode("THE größer").ids]
    for said, text in (
        ({f"{key}.lowercase": False}, "the [UNK]"),
        ({f"{key}.lowercase": True, f"{key}.strip_accents": False}, "THE [UNK]"),
    ):
        ours = tokenizer_from_gguf({**words_metadata(), **said})
        wanted = (
            ours.encode("the", special=True) if "the" in text else theirs.encode("the", add_special_tokens=False).ids
        )
        assert ours.encode("the" if "the" in text else "THE") == wanted
        unknown = words_metadata()["tokenizer.ggml.unknown_token_id"]
        assert unknown in ours.encode("THE" if f"{key}.strip_accents" not in said else "gro\u0308ßer")
    with pytest.raises(CorruptModel, match="wanted a boolean"):
        tokenizer_from_gguf({**words_metadata(), f"{key}.lowercase": 1})


def test_files_that_name_fewer_tokens() -> None:
    """What begins and ends a text is found by its usual name."""
    roles = [key for key in words_metadata() if key.endswith("token_id")]
    bare = {key: value for key, value in words_metadata().items() if key not in roles}
    whole = tokenizer_from_gguf(words_metadata())
    assert tokenizer_from_gguf(bare).framed("the end", "x") == whole.framed("the end", "x")
    marked = [text if text not in SPECIAL else f"▁{text}" for text in bare["tokenizer.ggml.tokens"]]
    both = {
        "tokenizer.ggml.cls_token_id": SPECIAL.index("[CLS]"),
        "tokenizer.ggml.eos_token_id": SPECIAL.index("[SEP]"),
    }
    found = tokenizer_from_gguf({**bare, **both, "tokenizer.ggml.tokens": marked})
    assert found.framed("the end", "x") == whole.framed("the end", "x")
    with pytest.raises(CorruptModel, match="no token stands for words that are unknown"):
        tokenizer_from_gguf({**bare, "tokenizer.ggml.tokens": ["▁a", "b"], "tokenizer.ggml.token_type": [1, 1]})


def unigrams(**said: Any) -> dict[str, Any]:
    """The vocabulary as a GGUF file has it, which is that of XLM-RoBERTa."""
    return {
        "tokenizer.ggml.model": "t5",
        "tokenizer.ggml.tokens": KEPT["tokens"],
        "tokenizer.ggml.scores": KEPT["scores"],
        "tokenizer.ggml.token_type": KEPT["types"],
        "tokenizer.ggml.precompiled_charsmap": np.frombuffer(base64.b64decode(KEPT["characters"]), np.int8),
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.padding_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 3,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_eos_token": True,
        **{f"tokenizer.ggml.{key}": value for key, value in said.items()},
    }


@pytest.mark.parametrize("text", KEPT["texts"])
def test_unigrams_are_those_of_sentencepiece(text: str) -> None:
    ours, wanted = tokenizer_from_gguf(unigrams()), KEPT["texts"][text]
    if "▁ " in text:  # a space that is spelled, and one: one token here, as in the package of the models
        wanted = wanted[1:]
    assert ours.encode(text) == wanted
    assert ours.framed(text).tokens == [0, *wanted, 2]
    both = ours.framed(text, "the end")
    assert both.tokens == [0, *wanted, 2, 2, *ours.encode("the end"), 2]
    assert not any(both.types)


def test_unigrams_of_files_that_say_more() -> None:
    plain = tokenizer_from_gguf(unigrams())
    spaced = tokenizer_from_gguf(unigrams(remove_extra_whitespaces=False))
    assert plain.encode("the  end") == plain.encode("the end") != spaced.encode("the  end")
    assert tokenizer_from_gguf(unigrams(add_space_prefix=False)).encode("the") == plain.encode("the")[1:]
    assert tokenizer_from_gguf(unigrams(add_bos_token=False)).framed("the").tokens == plain.encode("the")
    assert plain.decode(plain.encode("the quick fox")) == "the quick fox"
    other = unigrams()
    del other["tokenizer.ggml.precompiled_charsmap"]
    assert tokenizer_from_gguf(other).encode("①") != plain.encode("①") == plain.encode("1")


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ({"scores": [0.0]}, "there are 1 scores for"),
        ({"unknown_token_id": None}, "no token stands for what is unknown"),
        ({"precompiled_charsmap": np.zeros(3, np.int8)}, "it is no map of characters"),
        ({"precompiled_charsmap": 3}, "it is no map of characters"),
        ({"precompiled_charsmap": np.full(40, -1, np.int8)}, "it is no map of characters"),
        ({"add_space_prefix": "x"}, "wanted a boolean"),
    ],
    ids=str,
)
def test_unigrams_that_are_refused(said: dict[str, Any], problem: str) -> None:
    with pytest.raises(CorruptModel, match=problem):
        tokenizer_from_gguf(unigrams(**said))


def test_a_damaged_map_of_characters_is_an_error_of_ours() -> None:
    """The package looks outside of its tables then, and panics."""
    content, random, damaged = base64.b64decode(KEPT["characters"]), np.random.default_rng(0), 0
    for _ in range(200):
        other = bytearray(content)
        for place in random.integers(0, len(content), 3):
            other[place] = random.integers(0, 256)
        try:
            ours = tokenizer_from_gguf(unigrams(precompiled_charsmap=np.frombuffer(bytes(other), np.int8)))
            for text in TEXTS:
                ours.encode(text)
                ours.framed(text)
        except CorruptModel:
            damaged += 1
    assert 0 < damaged < 200


def test_bytes_with_ends_stand_as_roberta_has_them() -> None:
    """As files of RoBERTa have byte pairs; files of language models put nothing around texts."""
    plain = bytes_metadata()
    start, end = plain["tokenizer.ggml.bos_token_id"], plain["tokenizer.ggml.eos_token_id"]
    both = {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.add_eos_token": True}
    ours = tokenizer_from_gguf({**plain, **both})
    the, fox = ours.encode("the"), ours.encode("fox")
    assert ours.framed("the", "fox").tokens == [start, *the, end, end, *fox, end]
    assert tokenizer_from_gguf(plain).framed("the", "fox").tokens == [*the, *fox]


def test_texts_that_are_none() -> None:
    ours = tokenizer_from_gguf(words_metadata())
    for texts in (("\ud800", None), ("the", "\ud800")):
        with pytest.raises(InputError, match="no character"):
            ours.framed(*texts)
