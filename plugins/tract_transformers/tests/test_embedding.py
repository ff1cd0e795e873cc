"""Vectors of texts, beside the same network in f64 with a head that changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tract_transformers
from model_files import NETWORK, folder_with_model, gguf_with_model
from tiny_llama import TinyLlama
from tract_transformers.generation.embedding import HiddenStates, TextEmbedder
from vocabularies import trained_bytes

from tract_core.errors import InputError, Unsupported
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel

TEXTS = ["the quick fox", "x", "the lazy dog and the other dogs, größer", " ".join(["end"] * 40)]

Array = np.ndarray[Any, Any]


def hidden(tokens: list[int]) -> Array:
    """[S, width], in f64: what the head is given."""
    found = TinyLlama(vocabulary=NETWORK.vocabulary, seed=3)
    found.weights = {**NETWORK.weights, "head": np.eye(NETWORK.width, dtype=np.float32)}
    return found.logits(tokens)


def exact(text: str, pooling: str, behind: list[int], begin: list[int]) -> Array:
    states = hidden([*begin, *trained_bytes().encode(text, add_special_tokens=False).ids, *behind])
    one = states.mean(axis=0) if pooling == "mean" else states[-1]
    return one / np.linalg.norm(one)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_with_model(tmp_path_factory.mktemp("model"))


@pytest.mark.parametrize("pooling", ["last", "mean"])
@pytest.mark.parametrize("end", [False, True])
def test_vectors_are_those_of_f64(folder: Path, pooling: Any, end: bool) -> None:
    model = tract_transformers.load_embedder(folder, pooling=pooling, end=end)
    behind = [trained_bytes().token_to_id("<|end|>")] if end else []
    found = model.embed(TEXTS)
    assert (found.dtype, found.shape) == (np.float32, (4, NETWORK.width))
    wanted = np.stack([exact(text, pooling, behind, []) for text in TEXTS])
    assert np.abs(found - wanted).max() < 1e-5
    assert np.abs(model.embed(TEXTS[2]) - wanted[2:3]).max() < 1e-5
    assert len(model.embed([])) == 0


def test_a_file_of_gguf_and_its_beginning(tmp_path: Path) -> None:
    model = tract_transformers.load_embedder(gguf_with_model(tmp_path / "model.gguf"))
    begin = [trained_bytes().token_to_id("<|start|>")]
    assert np.abs(model.embed("the fox")[0] - exact("the fox", "last", [], begin)).max() < 1e-5
    assert np.abs(model.embed("")[0] - exact("", "last", [], begin)).max() < 1e-5


def test_texts_by_how_near_they_are(folder: Path) -> None:
    model = tract_transformers.load_embedder(folder, pooling="mean")
    wanted = np.stack([exact(text, "mean", [], []) for text in TEXTS])
    near = wanted @ exact("the dog", "mean", [], [])
    found = model.rank("the dog", TEXTS)
    assert [place for place, _ in found] == np.argsort(-near).tolist()
    assert all(abs(cosine - near[place]) < 1e-5 for place, cosine in found)
    assert model.rank("the dog", []) == []


def test_texts_that_are_none(folder: Path) -> None:
    model = tract_transformers.load_embedder(folder)
    for texts, problem in (
        ([3], "a text is a int"),
        ("", "a text is empty"),
        ("the quick " * 200, "the model's context is 128"),
    ):
        with pytest.raises(InputError, match=problem):
            model.embed(texts)
    with pytest.raises(InputError, match="pooling is 'first', wanted one of last, mean"):
        TextEmbedder(model.runnable, tract_transformers.generation.loading.words_of(folder), "first")  # pyright: ignore


def test_a_model_without_a_head() -> None:
    model = TypedModel()
    outlet = model.add_source("logits", parse_typed_fact("B,S,8,f32", model.symbols))
    model.set_outputs([outlet])
    with pytest.raises(Unsupported, match="no head that is known"):
        HiddenStates("logits").apply(model)
