"""Answers that are held to a schema, a grammar or an expression; and schemas that are wrong, or meant to do harm."""

from __future__ import annotations

import json
import re
import sys
import time
from functools import cache
from typing import Any

import numpy as np
import pytest
from tiny_llama import TinyLlama
from tract_transformers.generation.loading import Words, text_model
from tract_transformers.generation.text_model import TextModel
from tract_transformers.sampling import grammar
from tract_transformers.sampling.grammar import Grammar, grammar_of
from tract_transformers.tokenizers.from_gguf import tokenizer_from_gguf
from tract_transformers.tokenizers.library import LibraryTokenizer
from tract_transformers.tokenizers.pieces import pieces_of
from tract_transformers.tokenizers.protocol import Tokenizer
from tract_transformers.transforms.wanted_logits import LastLogits
from vocabularies import SPECIAL, TEXTS, bytes_metadata, pieces_metadata, trained_bytes

from tract_core.api.runnable import Runnable
from tract_core.errors import InputError, PluginError, Unsupported

OF_BYTES = tokenizer_from_gguf(bytes_metadata())
OF_PIECES = tokenizer_from_gguf(pieces_metadata())
PLAIN = LibraryTokenizer(trained_bytes())
"""With no token that ends answers."""

TOKENIZERS = {"bytes": OF_BYTES, "pieces": OF_PIECES, "no end": PLAIN}

PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 6},
        "größe": {"type": "integer", "minimum": 3, "maximum": 220},
        "tags": {"type": "array", "items": {"enum": ["a", "日", None]}, "maxItems": 2},
    },
    "required": ["name", "größe"],
    "additionalProperties": False,
}
WILD: dict[str, Any] = {"temperature": 2.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "max_tokens": 300}
"""Whatever is possible comes."""


@cache
def runnable(vocabulary: int) -> Runnable:
    model = TinyLlama(vocabulary=vocabulary, layers=1, seed=5).model()
    model.transform(LastLogits("logits", 16))
    return model.into_runnable("cpu")


def writer(tokenizer: Tokenizer) -> TextModel:
    return text_model(runnable(tokenizer.size + 3), Words(tokenizer, None, None))


@pytest.fixture(scope="module", params=TOKENIZERS)
def model(request: pytest.FixtureRequest) -> TextModel:
    return writer(TOKENIZERS[request.param])


def test_answers_follow_a_schema(model: TextModel) -> None:
    for seed in range(6):
        answer = model.generate("the", schema=PERSON if seed % 2 else json.dumps(PERSON), seed=seed, **WILD)
        assert answer.finish_reason == "stop"
        found = json.loads(answer.text)
        assert found.keys() <= PERSON["properties"].keys()
        assert isinstance(found["name"], str)
        assert len(found["name"]) <= 6
        assert type(found["größe"]) is int
        assert 3 <= found["größe"] <= 220
        assert set(found.get("tags", [])) <= {"a", "日", None}
        assert len(found.get("tags", [])) <= 2


@pytest.mark.parametrize(
    "regex", ["( the){1,3} (dog|Hund)!?", r"[0-9]{2,5}(\.[0-9])?", "[äöü日🙂]{4}x", "", "the quick brown fox"]
)
def test_answers_match_an_expression(model: TextModel, regex: str) -> None:
    for seed in range(3):
        answer = model.generate("the", regex=regex, seed=seed, **WILD)
        spelled = b"".join(model.tokenizer.pieces()[token] or b"?" for token in answer.tokens).decode()
        assert re.fullmatch(regex, spelled)
        assert answer.finish_reason == "stop"
        assert answer.text == (spelled.removeprefix(" ") if model.tokenizer is OF_PIECES else spelled)


def test_answers_follow_a_grammar(model: TextModel) -> None:
    balanced = 'start: "(" start ")" | "x"'
    answer = model.generate("the", grammar=balanced, seed=1, **WILD)
    depth = answer.text.count("(")
    assert answer.text == "(" * depth + "x" + ")" * depth


def test_probabilities_are_those_of_what_is_allowed() -> None:
    model = writer(OF_BYTES)
    network = TinyLlama(vocabulary=OF_BYTES.size + 3, layers=1, seed=5)
    prompt = OF_BYTES.encode("the")
    answer = model.generate("the", regex="[abc]x", seed=1, logprobs=9, temperature=3.0)
    allowed = [OF_BYTES.encode(letter)[0] for letter in "abc"]
    logits = network.logits(prompt)[-1][allowed]
    exact = logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
    assert answer.logprobs is not None
    said = dict(answer.logprobs[0].likeliest)
    assert all(abs(said[token] - one) < 2e-5 for token, one in zip(allowed, exact, strict=True))
    assert sum(np.exp(one) for one in said.values()) == pytest.approx(1)
    assert answer.logprobs[0].logprob == said[answer.tokens[0]]


def test_a_stream_is_the_answer_and_stops_still_count() -> None:
    model = writer(OF_BYTES)
    whole = model.generate("the", schema=PERSON, seed=3, **WILD)
    writing = model.generate("the", schema=PERSON, seed=3, stream=True, **WILD)
    assert "".join(writing) == whole.text
    stopped = model.generate("the", schema=PERSON, seed=3, stop='"', **WILD)
    assert stopped.text == whole.text.partition('"')[0]
    cut = model.generate("the", schema=PERSON, seed=3, **{**WILD, "max_tokens": 3})
    assert (cut.tokens, cut.finish_reason) == (whole.tokens[:3], "length")
    all_of_it = model.generate("the", schema=PERSON, seed=3, **{**WILD, "max_tokens": len(whole.tokens)})
    assert (all_of_it.tokens, all_of_it.finish_reason) == (whole.tokens, "stop")


def test_drafts_are_held_to_it_too(model: TextModel) -> None:
    other = writer(model.tokenizer)
    likeliest: dict[str, Any] = {"schema": PERSON, "temperature": 0, "max_tokens": 60, "repetition_penalty": 1.3}
    plain = model.generate("the", **likeliest)
    for draft in ("prompt", other):
        assert model.generate("the", draft=draft, **likeliest).tokens == plain.tokens
    for seed in range(3):
        answer = model.generate("the", schema=PERSON, seed=seed, draft=other, draft_tokens=3, **WILD)
        assert json.loads(answer.text).keys() <= PERSON["properties"].keys()


# --- what tokens are ---


@pytest.mark.parametrize("tokenizer", TOKENIZERS.values(), ids=TOKENIZERS)
def test_pieces_make_the_texts(tokenizer: Tokenizer) -> None:
    pieces = tokenizer.pieces()
    assert len(pieces) == tokenizer.size
    for text in TEXTS:
        tokens = tokenizer.encode(text)
        made = b"".join(pieces[token] or b"" for token in tokens)
        spaced = f" {text}".replace("\u2581", " ") if tokenizer is OF_PIECES and text else text
        assert made.decode() == spaced
    for text in SPECIAL:
        (token,) = tokenizer.encode(text, special=True)
        assert pieces[token] is None


def test_tokens_whose_bytes_depend_on_others_are_refused() -> None:
    from tokenizers import Tokenizer as Library
    from tokenizers import decoders, models

    library = Library(models.WordPiece({"a": 0, "##b": 1}))
    with pytest.raises(Unsupported, match="tokenizer with no decoder"):
        pieces_of(library)
    library.decoder = decoders.WordPiece()
    with pytest.raises(Unsupported, match="tokenizer with WordPiece"):
        pieces_of(library)
    library.decoder = decoders.Metaspace()
    assert pieces_of(library) == (b"a", b"##b")


# --- what is no grammar ---


@pytest.mark.parametrize(
    ("wishes", "problem"),
    [
        ({"schema": {"type": "nothing"}}, "schema: Invalid type: nothing"),
        ({"schema": "{"}, "schema: "),
        ({"schema": "[]"}, "schema: Expecting object"),
        ({"schema": {"not": {}}}, "schema: Unimplemented keys"),
        ({"schema": {"$ref": "http://localhost/x"}}, "schema: Resource 'http://localhost/x' is not present"),
        ({"schema": 3}, "schema is a int, wanted a text or a dictionary"),
        ({"schema": {"enum": {1}}}, "schema cannot be written as JSON"),
        ({"regex": "(?=a)b"}, "regex: "),
        ({"regex": "("}, "regex: "),
        ({"regex": "a\ud800"}, "regex holds halves of characters"),
        ({"regex": ["a"]}, "regex is a list, wanted a text"),
        ({"regex": "x" * (1 << 20) + "x"}, "regex has 1,048,577 characters, more than 1,048,576"),
        ({"grammar": "start: nowhere"}, "grammar: "),
        ({"grammar": "a", "regex": "a"}, "grammar and regex are given, wanted one of them"),
    ],
)
def test_grammars_that_are_none(wishes: dict[str, Any], problem: str) -> None:
    def matching() -> None:
        found = grammar_of(**wishes)
        assert found is not None
        found.matching(OF_BYTES)

    with pytest.raises(InputError) as caught:
        matching()
    assert str(caught.value).startswith(problem)


def deep(count: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(count):
        found = {"items": found}
    return found


HOSTILE = {
    "nested too deeply for JSON": grammar_of(schema=deep(300)),
    "a chain that ends the process": Grammar(
        "grammar", "start: r0\n" + "".join(f"r{one}: r{one + 1}\n" for one in range(40_000)) + 'r40000: "a"'
    ),
    "minutes of time": grammar_of(
        schema={"type": "string", "allOf": [{"pattern": f".*{chr(97 + one)}.*"} for one in range(20)]}
    ),
    "too many parts": grammar_of(schema={"properties": {f"p{one}": {"type": "string"} for one in range(20_000)}}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_grammars_are_refused_in_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grammar, "PATIENCE", 2.0)
    begun = time.monotonic()
    found = HOSTILE[name]
    assert found is not None
    with pytest.raises(InputError):
        found.matching(OF_BYTES)
    assert time.monotonic() - begun < 15


def test_a_schema_that_is_itself_part_of_it_is_fine_or_refused() -> None:
    circle: dict[str, Any] = {}
    circle["items"] = circle
    with pytest.raises(InputError, match="schema cannot be written as JSON"):
        grammar_of(schema=circle)
    tree = {"type": "object", "properties": {"left": {"$ref": "#"}}, "additionalProperties": False}
    answer = writer(OF_BYTES).generate("x", schema=tree, seed=2, **WILD)
    assert set(answer.text) <= set('{}"left: \n\t')


def test_a_text_that_no_token_spells() -> None:
    metadata = pieces_metadata()
    words = list(metadata["tokenizer.ggml.tokens"])
    kept = [place for place, text in enumerate(words) if not text.startswith("<0x")]
    for name in ("tokens", "token_type", "scores"):
        metadata[f"tokenizer.ggml.{name}"] = [metadata[f"tokenizer.ggml.{name}"][place] for place in kept]
    model = writer(tokenizer_from_gguf(metadata))
    with pytest.raises(InputError, match="no token of the model goes on with a text as it is wanted"):
        model.generate("the", regex="the Ω end", **WILD)


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "llguidance", None)
    with pytest.raises(PluginError, match=r"pip install 'tract-transformers\[grammar\]'"):
        Grammar("regex", "never asked before").matching(OF_BYTES)
