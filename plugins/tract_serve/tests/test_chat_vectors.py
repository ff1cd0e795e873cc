"""Vectors and ranks of texts by the server, beside the same models in this process; and what files are served as."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
import tract_transformers
from chat_models import parameters, put_text
from servers import Running, serving
from tract_serve.chat.embeddings import TOGETHER
from tract_serve.kinds import kind_of

from tiny_bert import bert_file, bert_folder  # isort: skip - of tract-transformers, whose place chat_models tells
from halves_files import write_folder  # isort: skip

TEXTS = ["the quick fox", "a lazy dog", "jumps", "", "the end the end"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("models")
    put_text(found, "writes")
    put_text(found, "decoder", config=parameters(kind="vectors", pooling="mean"))
    for name in ("file", "ranks_file"):
        (found / name / "1").mkdir(parents=True)
    bert_file(found / "file" / "1" / "model.gguf")
    bert_file(found / "ranks_file" / "1" / "model.gguf", head=True)
    bert_folder(found / "folder" / "1")
    bert_folder(found / "ranks" / "1", head=True)
    return found


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    with serving(folder) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"http://{server.http}/v1", api_key="none", max_retries=0) as made:
        yield made


def test_files_say_what_they_are(folder: Path, tmp_path: Path) -> None:
    kinds = {name: kind_of(folder / name / "1") for name in ("folder", "ranks")}
    kinds |= {name: kind_of(folder / name / "1" / "model.gguf") for name in ("writes", "file", "ranks_file")}
    assert kinds == {
        "folder": "vectors",
        "ranks": "scores",
        "writes": "text",
        "file": "vectors",
        "ranks_file": "scores",
    }
    (tmp_path / "broken.gguf").write_bytes(b"GGUF")
    assert kind_of(tmp_path / "broken.gguf") == "text"
    assert kind_of(write_folder(tmp_path / "t5", "t5")) == "text"
    (tmp_path / "model.onnx").write_bytes(b"")
    assert kind_of(tmp_path / "model.onnx") == "tensors"


def test_all_are_listed(client: openai.OpenAI) -> None:
    found = {one.id: (one.model_extra or {})["kind"] for one in client.models.list().data}
    assert found == {
        "writes": "text",
        "decoder": "vectors",
        "file": "vectors",
        "folder": "vectors",
        "ranks": "scores",
        "ranks_file": "scores",
    }


@pytest.mark.parametrize("name", ["file", "folder", "decoder"])
def test_vectors_are_those_of_the_model_alone(client: openai.OpenAI, folder: Path, name: str) -> None:
    path = folder / name / "1" / ("" if name == "folder" else "model.gguf")
    alone = tract_transformers.load_embedder(path, "cpu", **({"pooling": "mean"} if name == "decoder" else {}))
    wanted = alone.embed(TEXTS)
    found = client.embeddings.create(model=name, input=TEXTS)
    assert [one.index for one in found.data] == list(range(len(TEXTS)))
    assert np.abs(np.array([one.embedding for one in found.data]) - wanted).max() < 1e-6
    assert found.usage.prompt_tokens == found.usage.total_tokens == alone.count(TEXTS)
    as_numbers = client.embeddings.create(model=name, input=TEXTS[0], encoding_format="float")
    assert np.abs(np.array(as_numbers.data[0].embedding) - wanted[0]).max() < 1e-6
    same = client.embeddings.create(model=name, input=TEXTS[0], dimensions=wanted.shape[1])
    assert len(same.data[0].embedding) == wanted.shape[1]


def test_many_texts_come_in_turns(client: openai.OpenAI, folder: Path) -> None:
    texts = [f"{text} {number}" for number in range(TOGETHER) for text in ("the fox", "dogs")][: 2 * TOGETHER + 1]
    wanted = tract_transformers.load_embedder(folder / "file" / "1" / "model.gguf", "cpu").embed(texts)
    found = client.embeddings.create(model="file", input=texts, encoding_format="float")
    assert np.abs(np.array([one.embedding for one in found.data]) - wanted).max() < 1e-5


@pytest.mark.parametrize(
    ("given", "param", "problem"),
    [
        ({"input": []}, "input", "is an empty list"),
        ({"input": [1, 2]}, "input", "holds tokens"),
        ({"input": [[1], [2]]}, "input", "holds tokens"),
        ({"input": ["a", 3]}, r"input[1]", "is 3, wanted a text"),
        ({"input": "a fox " * 100}, "input", "the model's context is 64"),
        ({"input": "a", "dimensions": 7}, "dimensions", "the model's vectors have 32"),
        ({"input": "a", "encoding_format": "hex"}, "encoding_format", "wanted 'float' or 'base64'"),
        ({"input": "a", "model": "writes"}, "model", "of the kind 'text'"),
        ({"input": "a", "model": "ranks"}, "model", "of the kind 'scores'"),
    ],
)
def test_vectors_of_nonsense(client: openai.OpenAI, given: dict[str, Any], param: str, problem: str) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.embeddings.create(**{"model": "folder", **given})
    assert raised.value.param == param
    assert problem in str(raised.value)


def rerank(server: Running, **body: Any) -> tuple[int, Any]:
    connection = HTTPConnection(server.http)
    connection.request("POST", "/v1/rerank", json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    return answer.status, found


@pytest.mark.parametrize("name", ["ranks", "ranks_file"])
def test_ranks_are_those_of_the_model_alone(server: Running, folder: Path, name: str) -> None:
    path = folder / name / "1" / ("" if name == "ranks" else "model.gguf")
    alone = tract_transformers.load_reranker(path, "cpu")
    wanted = alone.rank("fox", TEXTS)
    documents: list[Any] = [{"text": TEXTS[0]}, *TEXTS[1:]]
    status, found = rerank(server, model=name, query="fox", documents=documents)
    assert status == 200
    assert [one["index"] for one in found["results"]] == [place for place, _ in wanted]
    assert [one["document"]["text"] for one in found["results"]] == [TEXTS[place] for place, _ in wanted]
    scores = [one["relevance_score"] for one in found["results"]]
    assert scores == pytest.approx([1 / (1 + np.exp(-score)) for _, score in wanted], abs=1e-6)
    assert found["usage"]["total_tokens"] == alone.count("fox", TEXTS)
    _, few = rerank(server, model=name, query="fox", documents=documents, top_n=2, return_documents=False)
    assert few["results"] == [{k: v for k, v in one.items() if k != "document"} for one in found["results"][:2]]


def test_vectors_rank_by_their_angle(server: Running, folder: Path) -> None:
    wanted = tract_transformers.load_embedder(folder / "file" / "1" / "model.gguf", "cpu").rank("fox", TEXTS)
    status, found = rerank(server, model="file", query="fox", documents=TEXTS)
    assert status == 200
    assert [one["index"] for one in found["results"]] == [place for place, _ in wanted]
    assert [one["relevance_score"] for one in found["results"]] == pytest.approx([near for _, near in wanted], abs=1e-6)


@pytest.mark.parametrize(
    ("given", "param"),
    [
        ({"documents": []}, "documents"),
        ({"documents": "a"}, "documents"),
        ({"documents": [3]}, "documents[0]"),
        ({"documents": [{"title": "a"}]}, "documents[0].text"),
        ({"query": None}, "query"),
        ({"top_n": 0}, "top_n"),
        ({"model": "writes"}, "model"),
        ({"documents": ["a fox " * 100]}, "documents"),
    ],
)
def test_ranks_of_nonsense(server: Running, given: dict[str, Any], param: str) -> None:
    status, found = rerank(server, **{"model": "ranks", "query": "a", "documents": ["b"], **given})
    assert (status, found["error"]["param"]) == (400, param)


def test_a_model_with_an_encoder_writes_one_text_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "t5").mkdir()
    alone = tract_transformers.load(write_folder(tmp_path / "t5" / "1", "t5"), "cpu", bytes=True)
    with serving(tmp_path) as running, openai.OpenAI(base_url=f"http://{running.http}/v1", api_key="x") as client:
        wanted = alone.generate("t5 t6 t7", max_tokens=6, seed=4)
        found = client.completions.create(model="t5", prompt="t5 t6 t7", max_tokens=6, seed=4, n=2)
        assert found.choices[0].text == wanted.text
        assert found.choices[1].text == alone.generate("t5 t6 t7", max_tokens=6, seed=5).text
        assert found.usage is not None
        assert found.usage.prompt_tokens == wanted.prompt_tokens
        streamed = client.completions.create(model="t5", prompt="t5 t6 t7", max_tokens=6, seed=4, stream=True)
        assert "".join(one.choices[0].text for one in streamed) == wanted.text
        with pytest.raises(openai.BadRequestError, match="which has no chat template"):
            client.chat.completions.create(model="t5", messages=[{"role": "user", "content": "a"}])
        with pytest.raises(openai.BadRequestError, match="give the prompt as one text"):
            client.completions.create(model="t5", prompt=[3, 4])
