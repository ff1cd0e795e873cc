"""Tokenizers of GGUF metadata and of ``tokenizer.json``, beside the field's own library and plain definitions."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, processors
from tract_transformers.tokenizers.from_gguf import tokenizer_from_gguf
from tract_transformers.tokenizers.from_json import tokenizer_from_json
from tract_transformers.tokenizers.pre_tokenizers import CUTS
from tract_transformers.tokenizers.protocol import Tokenizer as Protocol
from tract_transformers.tokenizers.streaming import StreamingDecoder
from vocabularies import SPECIAL, TEXTS, bytes_metadata, pieces_metadata, trained_bytes

from tract_core.errors import CorruptModel, InputError, LimitExceeded, ModelError, Unsupported


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("special", [False, True])
def test_byte_level_gives_what_the_library_gives_that_trained_it(text: str, special: bool) -> None:
    theirs, ours = Tokenizer.from_str(trained_bytes().to_str()), tokenizer_from_gguf(bytes_metadata())
    theirs.encode_special_tokens = not special
    tokens = theirs.encode(text, add_special_tokens=False).ids
    assert ours.encode(text, special) == tokens
    assert ours.decode(tokens, special=True) == text


def by_scores(metadata: dict[str, Any], text: str, before: str = "▁") -> list[int]:
    """SentencePiece's rule: of all neighbours that make a piece, merge those with the best score, leftmost first."""
    words = {word: token for token, word in enumerate(metadata["tokenizer.ggml.tokens"])}
    scores = metadata["tokenizer.ggml.scores"]
    parts = list(before + text.replace(" ", "▁")) if text else []
    while True:
        pairs = [
            (-scores[words[a + b]], at)
            for at, (a, b) in enumerate(pairwise(parts))
            if a + b in words and words[a + b] > 258
        ]
        if not pairs:
            break
        at = min(pairs)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    found: list[int] = []
    for part in parts:
        found += [words[part]] if part in words else [3 + byte for byte in part.encode()]
    return found


@pytest.mark.parametrize("text", [text for text in TEXTS if "<|" not in text])
def test_pieces_are_merged_by_their_scores(text: str) -> None:
    metadata = pieces_metadata()
    ours = tokenizer_from_gguf(metadata)
    assert ours.encode(text) == by_scores(metadata, text)
    assert ours.decode(ours.encode(text)) == text.replace("▁", " ")


def test_special_tokens_in_a_text_count_only_where_they_are_meant() -> None:
    for metadata in (bytes_metadata(), pieces_metadata()):
        ours = tokenizer_from_gguf(metadata)
        end = metadata["tokenizer.ggml.tokens"].index("<|end|>")
        assert ours.encode("a<|end|>b", special=True).count(end) == 1
        assert end not in ours.encode("a<|end|>b")
        assert ours.decode(ours.encode("a<|end|>b", special=True), special=True).replace(" ", "") == "a<|end|>b"
        assert "<|end|>" not in ours.decode(ours.encode("a<|end|>b", special=True))
        assert ours.decode(ours.encode("a<|end|>b")) == "a<|end|>b"


def test_what_begins_and_ends_is_what_the_metadata_says() -> None:
    plain, pieces = bytes_metadata(), pieces_metadata()
    start, end = plain["tokenizer.ggml.bos_token_id"], plain["tokenizer.ggml.eos_token_id"]
    assert tokenizer_from_gguf(plain).begin == ()
    assert tokenizer_from_gguf({**plain, "tokenizer.ggml.add_bos_token": True}).begin == (start,)
    assert tokenizer_from_gguf({**plain, "tokenizer.ggml.eot_token_id": 5}).ends == {end, 5}
    assert tokenizer_from_gguf(pieces).begin == (1,)
    assert tokenizer_from_gguf({**pieces, "tokenizer.ggml.add_bos_token": False}).begin == ()
    assert tokenizer_from_gguf(pieces).names == {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}


def test_without_a_space_in_front() -> None:
    metadata = {**pieces_metadata(), "tokenizer.ggml.add_space_prefix": False}
    ours = tokenizer_from_gguf(metadata)
    assert ours.encode("the") == by_scores(metadata, "the", before="")
    assert ours.decode(ours.encode("the")) == "the"
    assert ours.encode(" the") == tokenizer_from_gguf(pieces_metadata()).encode("the")
    assert ours.decode(ours.encode(" the")) == " the"


WORDS = [
    ("gpt-2", "I'll pay 12345!", ["I", "'ll", " pay", " 12345", "!"]),
    ("llama-bpe", "I'LL pay 12345!\n\n x", ["I", "'LL", " pay", " ", "123", "45", "!\n\n", " x"]),
    ("qwen2", "a 12\n", ["a", " ", "1", "2", "\n"]),
    ("smollm", "ab 12  c", ["ab", " ", "1", "2", " ", " c"]),
    ("default", "a,b 1234", ["a", ",", "b", " ", "123", "4"]),
    ("gpt-4o", "helloWorld'S 1234/\n", ["hello", "World'S", " ", "123", "4", "/\n"]),
    ("tekken", "helloWorld 12", ["hello", "World", " ", "1", "2"]),
    ("deepseek-v3", "汉字ab 1234", ["汉字", "ab", " ", "123", "4"]),
    ("deepseek-coder", "a\nb 12", ["a", "\n", "b", " ", "1", "2"]),
    ("falcon", "a+b 1234", ["a", "+", "b", " ", "123", "4"]),
    ("qwen35", "ne\u0301e", ["ne\u0301e"]),
    ("bloom", "a,b cd", ["a", ",", "b", " cd"]),
    ("dbrx", "12345", ["123", "45"]),
]


@pytest.mark.parametrize(("pre", "text", "words"), WORDS)
def test_texts_are_cut_into_words_as_the_models_were_trained(pre: str, text: str, words: list[str]) -> None:
    """With a vocabulary that merges everything, each word is one token."""
    library = tokenizer_from_gguf(bytes_metadata(pre))._library
    letters = [piece for piece, _ in library.pre_tokenizer.pre_tokenize_str(text)]
    assert [library.decoder.decode([piece]) for piece in letters] == words


def test_every_cut_is_an_expression_that_the_library_takes_and_loses_no_byte() -> None:
    assert {pre for pre, *_ in WORDS} | {"llama3"} <= CUTS.keys()
    for pre in CUTS:
        ours = tokenizer_from_gguf(bytes_metadata(pre))
        for text in TEXTS:
            assert ours.decode(ours.encode(text)) == text, pre


def streamed(tokenizer: Protocol, tokens: list[int], special: bool = False) -> list[str]:
    decoder = StreamingDecoder(tokenizer, special)
    return [*(decoder.take(token) for token in tokens), decoder.finish()]


@pytest.mark.parametrize("metadata", [bytes_metadata(), pieces_metadata()], ids=["bytes", "pieces"])
@pytest.mark.parametrize("special", [False, True])
def test_a_stream_is_the_text_in_pieces_without_broken_characters(metadata: dict[str, Any], special: bool) -> None:
    ours = tokenizer_from_gguf(metadata)
    for text in [*TEXTS, "".join(TEXTS)]:
        tokens = ours.encode(text, special)
        pieces = streamed(ours, tokens, special)
        assert "".join(pieces) == ours.decode(tokens, special)
        assert sum(piece.count("\ufffd") for piece in pieces) == text.count("\ufffd")
        assert len(pieces) == len(tokens) + 1


def test_what_never_becomes_a_character_is_not_held_for_ever() -> None:
    ours = tokenizer_from_gguf(bytes_metadata())
    (half,) = ours.encode("🙂")[:1] if len(ours.encode("🙂")) > 1 else ours.encode("\u00ff")[:1]
    pieces = streamed(ours, [half] * 30)
    assert "".join(pieces).count("\ufffd") >= 30
    assert any(pieces[:10])
    assert streamed(ours, [half])[-1] == "\ufffd"
    after = streamed(ours, [half, *ours.encode("the end")])
    assert "".join(after) == "\ufffdthe end"


def test_a_folder_with_tokenizer_json(tmp_path: Path) -> None:
    theirs = Tokenizer.from_str(trained_bytes().to_str())
    start, end = (theirs.token_to_id(text) for text in SPECIAL)
    theirs.post_processor = processors.TemplateProcessing(single="<|start|> $A", special_tokens=[("<|start|>", start)])
    theirs.enable_truncation(4)
    theirs.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "tokenizer_config.json").write_text(
        json.dumps({"bos_token": {"content": "<|start|>"}, "eos_token": "<|end|>", "pad_token": None})
    )
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [7, 8]}')
    ours = tokenizer_from_json(tmp_path)
    assert (ours.begin, ours.ends) == ((start,), {7, 8, end})
    assert ours.names == {"bos_token": "<|start|>", "eos_token": "<|end|>"}
    text = "the quick brown fox jumps over it"
    assert ours.encode(text) == trained_bytes().encode(text).ids
    assert ours.size == trained_bytes().get_vocab_size()


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b'{"model": {"type": "BPE"}}', b"[" * 100_000])
def test_a_tokenizer_json_that_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "tokenizer.json").write_bytes(content)
    with pytest.raises(CorruptModel, match=r"tokenizer.json: it is no tokenizer"):
        tokenizer_from_json(tmp_path)


def test_no_tokenizer_json(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be read: No such file"):
        tokenizer_from_json(tmp_path)


@pytest.mark.parametrize(
    ("changes", "kind", "message"),
    [
        ({"tokenizer.ggml.model": None}, CorruptModel, "tokenizer.ggml.model is missing"),
        ({"tokenizer.ggml.model": "rwkv"}, Unsupported, "tokenizers of kind 'rwkv' are not known here"),
        ({"tokenizer.ggml.pre": "new-thing"}, Unsupported, "how 'new-thing' cuts texts"),
        ({"tokenizer.ggml.pre": [1]}, Unsupported, "cuts texts"),
        ({"tokenizer.ggml.tokens": None}, CorruptModel, "tokenizer.ggml.tokens is missing"),
        ({"tokenizer.ggml.tokens": "abc"}, CorruptModel, "is a str, wanted a list"),
        ({"tokenizer.ggml.tokens": [1, 2]}, CorruptModel, "holds a int"),
        ({"tokenizer.ggml.token_type": [1]}, CorruptModel, "there are 1 types for"),
        ({"tokenizer.ggml.merges": ["a b c"]}, CorruptModel, "'a b c' is no pair"),
        ({"tokenizer.ggml.merges": ["zzz yyy"]}, CorruptModel, "no token"),
        ({"tokenizer.ggml.eos_token_id": 10**6}, CorruptModel, "which is no token"),
        ({"tokenizer.ggml.eos_token_id": "x"}, CorruptModel, "which is no token"),
    ],
)
def test_metadata_that_is_refused(changes: dict[str, Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        tokenizer_from_gguf({**bytes_metadata(), **changes})


def test_pieces_that_are_refused() -> None:
    metadata = pieces_metadata()
    with pytest.raises(CorruptModel, match="there are 1 scores for"):
        tokenizer_from_gguf({**metadata, "tokenizer.ggml.scores": [0.0]})
    words = [*metadata["tokenizer.ggml.tokens"][:-1], "a" * 100_000]
    types = [*metadata["tokenizer.ggml.token_type"][:-1], 1]
    with pytest.raises(LimitExceeded, match="too long to be merged"):
        tokenizer_from_gguf({**metadata, "tokenizer.ggml.tokens": words, "tokenizer.ggml.token_type": types})


def test_bytes_of_a_token_that_are_no_text() -> None:
    metadata = bytes_metadata()
    words = [*metadata["tokenizer.ggml.tokens"], "a\udcff", "b\udcfe"]
    types = [*metadata["tokenizer.ggml.token_type"], 1, 3]
    ours = tokenizer_from_gguf({**metadata, "tokenizer.ggml.tokens": words, "tokenizer.ggml.token_type": types})
    assert ours.encode("the end") == tokenizer_from_gguf(metadata).encode("the end")
    assert ours.decode([len(words) - 1], special=True) == "b\ufffd"


def test_two_tokens_of_one_text_are_told_apart() -> None:
    metadata = bytes_metadata()
    words = [*metadata["tokenizer.ggml.tokens"], "the", "the"]
    types = [*metadata["tokenizer.ggml.token_type"], 5, 5]
    ours = tokenizer_from_gguf({**metadata, "tokenizer.ggml.tokens": words, "tokenizer.ggml.token_type": types})
    assert ours.size == len(words)
    assert ours.encode("the end") == tokenizer_from_gguf(metadata).encode("the end")


def test_texts_and_tokens_that_are_none() -> None:
    ours = tokenizer_from_gguf(bytes_metadata())
    with pytest.raises(InputError, match="no character"):
        ours.encode("\ud800")
    for token in (-1, ours.size, 1 << 40):
        with pytest.raises(InputError, match="is not in the vocabulary"):
            ours.decode([token])
