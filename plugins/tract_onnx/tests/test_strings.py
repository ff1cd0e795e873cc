"""Operators on texts, against written-down results and Python's own functions."""

from __future__ import annotations

import time

import numpy as np
import pytest
from onnx_check import load, run
from onnx_single import node_model, outputs_of, refused, same_as_onnxruntime, texts

from tract_core.errors import CorruptModel, FactError, LimitExceeded, RunError, Unsupported
from tract_core.runtime.plan import TypedSimplePlan


def test_concat_stretches():
    a, b = texts("a", "b").reshape(2, 1), texts("x", "ÿ", "")
    (found,) = outputs_of("StringConcat", [a, b], "")
    assert found.tolist() == [["ax", "aÿ", "a"], ["bx", "bÿ", "b"]]
    same_as_onnxruntime("StringConcat", [a, b], "", symbolic=False)


def test_concat_wants_texts():
    refused(FactError, "StringConcat wants texts, found 2,f32", "StringConcat", [np.ones(2, np.float32)] * 2, "")


@pytest.mark.parametrize(
    ("options", "pieces", "counts"),
    [
        ({}, [["a,b", "c"], ["", ""], [",,d", ""]], [2, 0, 1]),
        ({"delimiter": ","}, [["a", "b  c", ""], ["  ", "", ""], ["", "", "d"]], [2, 1, 3]),
        ({"delimiter": ",", "maxsplit": 1}, [["a", "b  c"], ["  ", ""], ["", ",d"]], [2, 1, 2]),
        ({"maxsplit": 0}, [["a,b  c"], [""], [",,d"]], [1, 0, 1]),
    ],
)
def test_split(options, pieces, counts):
    x = texts("a,b  c", "  ", ",,d")
    found, how_many = outputs_of("StringSplit", [x], "", outputs=2, batch="N", **options)
    assert found.tolist() == pieces
    assert how_many.tolist() == counts
    assert how_many.dtype == np.int64


def test_split_of_nothing():
    found, how_many = outputs_of("StringSplit", [texts().reshape(0, 2)], "", outputs=2)
    assert found.shape == (0, 2, 0)
    assert how_many.shape == (0, 2)


def test_two_runs_with_other_widths():
    plan = TypedSimplePlan(load(node_model("StringSplit", [texts("")], "", outputs=2, batch="N")).into_typed())
    assert plan.run([texts("a b c")])[0].shape == (1, 3)
    assert plan.run([texts("a", "b c", "")])[0].shape == (3, 2)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"stopwords": ["monday"]}, ["Tuesday", "straße"]),
        ({"stopwords": ["monday"], "is_case_sensitive": 1}, ["Monday", "Tuesday", "straße"]),
        ({"stopwords": ["Monday"], "case_change_action": "UPPER"}, ["TUESDAY", "STRASSE"]),
        ({"stopwords": ["MONDAY"], "case_change_action": "LOWER"}, ["tuesday", "straße"]),
        ({"stopwords": ["Monday", "Tuesday", "STRASSE", "straße"], "locale": ""}, [""]),
        ({}, ["Monday", "Tuesday", "straße"]),
    ],
)
def test_normalizer(options, wanted):
    x = texts("Monday", "Tuesday", "straße")
    (found,) = outputs_of("StringNormalizer", [x], "", **options)
    assert found.tolist() == wanted
    (row,) = outputs_of("StringNormalizer", [x[None]], "", batch="N", **options)
    assert row.tolist() == [wanted]


@pytest.mark.parametrize(
    ("locale", "upper", "lower"),
    [("tr_TR", "İI", "iı"), ("az-AZ.UTF-8", "İI", "iı"), ("en_US", "II", "i̇i"), ("C", "II", "i̇i")],
)
def test_normalizer_follows_the_locale(locale, upper, lower):
    (found,) = outputs_of("StringNormalizer", [texts("iı")], "", case_change_action="UPPER", locale=locale)
    assert found.tolist() == [upper]
    (found,) = outputs_of("StringNormalizer", [texts("İI")], "", case_change_action="LOWER", locale=locale)
    assert found.tolist() == [lower]


def test_normalizer_refuses():
    x = texts("a")
    refused(Unsupported, "'locale' is '../x', wanted a language", "StringNormalizer", [x], "", locale="../x")
    refused(
        Unsupported,
        "attribute 'case_change_action' of StringNormalizer is 'UP'",
        "StringNormalizer",
        [x],
        "",
        case_change_action="UP",
    )
    refused(FactError, "a matrix of one row, found 2,1,string", "StringNormalizer", [texts("a", "b")[:, None]], "")
    with pytest.raises(RunError, match="a matrix of one row, found 2 rows"):
        outputs_of("StringNormalizer", [texts("a", "b")[:, None]], "", batch="N")


def test_regex():
    x = texts("www.google.com", "www.facebook.com", "")
    (found,) = outputs_of("RegexFullMatch", [x], "", pattern=r"www\.[\w.-]+\.\bcom\b", batch="N")
    assert found.tolist() == [True, True, False]
    assert found.dtype == np.bool_
    (found,) = outputs_of("RegexFullMatch", [texts("aé", "aéb")], "", pattern="a.")
    assert found.tolist() == [True, False]


@pytest.mark.parametrize("pattern", ["(", r"(a)\1", "(?=a)b", "a{1001}", "(((a{99}){99}){99}){99}"])
def test_what_is_no_regular_expression(pattern):
    refused(CorruptModel, "is not a regular expression", "RegexFullMatch", [texts("a")], "", pattern=pattern)


def test_regex_takes_linear_time():
    start = time.perf_counter()
    (found,) = outputs_of("RegexFullMatch", [texts("a" * 50_000 + "b")], "", pattern="(a*)*(a|aa)*(a+)+$")
    assert not found.any()
    assert time.perf_counter() - start < 5


POOL = {
    "ngram_counts": [0, 4],
    "ngram_indexes": [0, 1, 2, 3, 4, 5, 6],
    "min_gram_length": 1,
    "max_gram_length": 2,
    "max_skip_count": 0,
    "mode": "TF",
}
NUMBERS = {**POOL, "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7]}
ROWS = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]])


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, [[0, 3, 0, 0, 0, 0, 0], [0, 0, 1, 0, 1, 0, 1]]),
        ({"max_skip_count": 4}, [[0, 3, 0, 0, 0, 0, 0], [0, 0, 1, 0, 1, 1, 1]]),
        ({"min_gram_length": 2, "max_skip_count": 5}, [[0] * 7, [0, 0, 0, 0, 1, 1, 1]]),
        ({"max_gram_length": 1}, [[0, 3, 0, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0, 0]]),
        ({"mode": "IDF", "weights": [9.0, 2, 3, 1, 0.5, 1, 4]}, [[0, 2, 0, 0, 0, 0, 0], [0, 0, 3, 0, 0.5, 0, 4]]),
        ({"mode": "TFIDF", "weights": [9.0, 2, 3, 1, 0.5, 1, 4]}, [[0, 6, 0, 0, 0, 0, 0], [0, 0, 3, 0, 0.5, 0, 4]]),
        ({"ngram_indexes": [6, 5, 4, 3, 2, 1, 0]}, [[0, 0, 0, 0, 0, 3, 0], [1, 0, 1, 0, 1, 0, 0]]),
    ],
)
def test_tfidf(changes, wanted):
    options = {**NUMBERS, **changes}
    for x in (ROWS, ROWS.astype(np.int32)):
        (found,) = outputs_of("TfIdfVectorizer", [x], "", batch="N", **options)
        assert found.tolist() == wanted
        assert found.dtype == np.float32
    (row,) = outputs_of("TfIdfVectorizer", [ROWS[1]], "", batch="N", **options)
    assert row.tolist() == wanted[1]
    words = {**options, "pool_strings": [f"w{item}" for item in options["pool_int64s"]]}
    del words["pool_int64s"]
    (found,) = outputs_of("TfIdfVectorizer", [np.char.add("w", ROWS.astype(str)).astype(object)], "", **words)
    assert found.tolist() == wanted


def test_tfidf_weights_belong_to_ngrams_not_to_places():
    options = {"mode": "TFIDF", "weights": [1.0, 2, 3, 4, 5, 6, 7], "ngram_indexes": [6, 5, 4, 3, 2, 1, 0]}
    (found,) = outputs_of("TfIdfVectorizer", [ROWS[1]], "", **{**NUMBERS, **options})
    assert found.tolist() == [7, 0, 5, 0, 3, 0, 0]


@pytest.mark.parametrize(
    ("error", "match", "changes"),
    [
        (CorruptModel, "does not divide a pool of 10 items", {"ngram_counts": [0, 3]}),
        (CorruptModel, "does not divide a pool of 10 items", {"ngram_counts": [0, 12]}),
        (CorruptModel, "begins with 2, wanted 0", {"ngram_counts": [2, 4]}),
        (CorruptModel, "'ngram_indexes' has 1 places", {"ngram_indexes": [0]}),
        (CorruptModel, "no place below 0", {"ngram_indexes": [0, 1, 2, 3, 4, 5, -6]}),
        (LimitExceeded, "names place 1099511627776", {"ngram_indexes": [0, 1, 2, 3, 4, 5, 1 << 40]}),
        (CorruptModel, "n-grams of 2 to 1 items", {"min_gram_length": 2, "max_gram_length": 1}),
        (CorruptModel, "with up to -1 between them", {"max_skip_count": -1}),
        (Unsupported, "attribute 'mode' of TfIdfVectorizer is 'X', wanted one of 'TF', 'IDF', 'TFIDF'", {"mode": "X"}),
        (CorruptModel, "exclude each other", {"pool_strings": ["a"]}),
    ],
)
def test_tfidf_refuses(error, match, changes):
    refused(error, match, "TfIdfVectorizer", [ROWS], "", **{**NUMBERS, **changes})


def test_tfidf_wants_the_type_of_its_pool():
    refused(FactError, "a list or a matrix of i64, found 1,string", "TfIdfVectorizer", [texts("a")], "", **NUMBERS)


def test_a_huge_skip_count_ends():
    (found,) = outputs_of("TfIdfVectorizer", [ROWS], "", **{**NUMBERS, "max_skip_count": 1 << 40})
    assert found.shape == (2, 7)


def test_texts_flow_through_other_operators():
    x = texts("a", "b", "a", "c").reshape(2, 2)
    assert outputs_of("Gather", [x, np.array([1])], "")[0].tolist() == [["a", "c"]]
    assert outputs_of("Equal", [x, texts("a", "b")], "")[0].tolist() == [[True, True], [True, False]]
    assert outputs_of("Where", [x == "a", x, texts("?")], "")[0].tolist() == [["a", "?"], ["a", "?"]]
    assert outputs_of("Concat", [x, x], "", axis=1)[0].shape == (2, 4)
    assert outputs_of("Transpose", [x], "")[0].tolist() == [["a", "a"], ["b", "c"]]
    assert outputs_of("Slice", [x, np.array([1]), np.array([2])], "", fixed=(1, 2))[0].tolist() == [["a", "c"]]
    assert outputs_of("Cast", [texts("1", " 2.5e3", "-INF")], "", to=1)[0].tolist() == [1.0, 2500.0, -np.inf]
    assert outputs_of("Cast", [np.array([1, -2])], "", to=8)[0].tolist() == ["1", "-2"]
    assert run(node_model("Identity", [x], ""), {"x0": x})[0].tolist() == x.tolist()


def test_what_is_no_number_cannot_be_cast():
    with pytest.raises(RunError, match="'x' is not a number"):
        outputs_of("Cast", [texts("x")], "", to=7)


TOKENIZER = {"mark": 0, "pad_value": "#", "mincharnum": 1}


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"separators": [" "]}, [["a1", "b22", "c"], ["foo,", "bar", "#"], ["#", "#", "#"]]),
        ({"separators": ["[0-9]+", "b| "]}, [["a", "c"], ["foo,", "ar"], ["#", "#"]]),
        ({"separators": [" "], "mincharnum": 2}, [["a1", "b22"], ["foo,", "bar"], ["#", "#"]]),
        ({"tokenexp": "[a-z]+"}, [["a", "b", "c"], ["foo", "bar", "#"], ["#", "#", "#"]]),
        ({"tokenexp": "f|fo|b[0-9]|b[0-9]+"}, [["b22"], ["fo"], ["#"]]),
        ({"tokenexp": "[a-z]+", "mark": 1}, [list("\2abc\3"), ["\2", "foo", "bar", "\3", "#"], list("\2\3###")]),
    ],
)
def test_tokenizer(options, wanted):
    x = texts("a1 b22  c", " foo, bar", "")
    (found,) = outputs_of("Tokenizer", [x], "com.microsoft", **{**TOKENIZER, **options})
    assert found.tolist() == wanted
    same_as_onnxruntime("Tokenizer", [x], "com.microsoft", **{**TOKENIZER, **options})


def test_tokenizer_of_characters():
    x = texts("äb", "", "c").reshape(3, 1)
    (found,) = outputs_of("Tokenizer", [x], "com.microsoft", separators=[""], **TOKENIZER)
    assert found.tolist() == [[["ä", "b"]], [["#", "#"]], [["c", "#"]]]


def test_tokenizer_of_texts_without_tokens():
    (found,) = outputs_of("Tokenizer", [texts("", " ")], "com.microsoft", separators=[" "], **TOKENIZER)
    assert found.shape == (2, 0)


def test_tokenizer_is_refused():
    def refuse(error, match, x, **options):
        refused(error, match, "Tokenizer", [x], "com.microsoft", **{**TOKENIZER, **options})

    refuse(FactError, "one axis or two, found 1,1,1,str", texts("a").reshape(1, 1, 1), separators=[" "])
    refuse(CorruptModel, "neither an expression", texts("a"))
    refuse(
        CorruptModel,
        "attribute 'mincharnum' of Tokenizer is 0, wanted 1 or more",
        texts("a"),
        separators=[" "],
        mincharnum=0,
    )
    refuse(CorruptModel, "not a regular expression", texts("a"), separators=["("])
