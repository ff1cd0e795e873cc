"""``/v1/embeddings`` and ``/v1/rerank``."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Sequence
from time import time
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from tract_core.errors import InputError
from tract_serve.chat.calls import new_id
from tract_serve.chat.errors import WrongParameter, about, failed
from tract_serve.chat.fields import Fields, checked
from tract_serve.chat.models import wanted
from tract_serve.chat.running import client_of, while_there
from tract_serve.chat.served import ServedScores, ServedTexts, ServedVectors
from tract_serve.chat.turns import Client
from tract_serve.http.exchange import Answer, HttpRequest

T = TypeVar("T")

MOST_TEXTS: Final = 2048
"""Of one request."""

MOST_CHARACTERS: Final = 1 << 20
"""Of one text."""

MOST_IN_ALL: Final = 1 << 23
"""Characters of all texts of a request."""

TOGETHER: Final = 32
"""Texts that are computed in one turn."""

Vectors = npt.NDArray[np.float32]


async def embeddings(request: HttpRequest) -> Answer:
    """Vectors of texts."""
    asked = Fields(await request.json())
    served = wanted(request.serving, asked, ServedVectors)
    texts = _texts(asked, "input")
    kind = asked.one_of("encoding_format", ("float", "base64"), "float")
    client = client_of(request, asked.text("user", "", most=1000))
    served.turns.check(client)
    parts, count = await while_there(request, _in_turns(served, client, texts, "input", _embed(served)))
    vectors: Vectors = np.concatenate(parts)
    width = asked.whole("dimensions", 1, 1 << 20)
    if width is not None and width != vectors.shape[1]:
        raise asked.wrong("dimensions", f"is {width}, and the model's vectors have {vectors.shape[1]}")
    data = [
        {"object": "embedding", "index": place, "embedding": _written(one, kind)} for place, one in enumerate(vectors)
    ]
    usage = {"prompt_tokens": count, "total_tokens": count}
    return Answer.of_json({"object": "list", "data": data, "model": served.name, "usage": usage})


async def rerank(request: HttpRequest) -> Answer:
    """Texts by how well they answer a query, as Jina, Cohere and vLLM have it."""
    asked = Fields(await request.json())
    served = wanted(request.serving, asked, ServedScores, ServedVectors)
    query = asked.text("query", most=MOST_CHARACTERS)
    documents = _documents(asked)
    most = asked.whole("top_n", 1, 1 << 30) or len(documents)
    shows = asked.flag("return_documents", default=True)
    client = client_of(request, asked.text("user", "", most=1000))
    served.turns.check(client)
    scores, count = await while_there(request, _scores(served, client, query, documents))
    order = sorted(range(len(scores)), key=lambda place: -scores[place])[:most]
    results = [
        {
            "index": place,
            "relevance_score": scores[place],
            **({"document": {"text": documents[place]}} if shows else {}),
        }
        for place in order
    ]
    found = {"id": f"rerank-{new_id(24)}", "object": "rerank", "created": int(time()), "model": served.name}
    return Answer.of_json({**found, "results": results, "usage": {"prompt_tokens": count, "total_tokens": count}})


async def _scores(
    served: ServedScores | ServedVectors, client: Client, query: str, documents: Sequence[str]
) -> tuple[list[float], int]:
    """A score from 0 to 1 of each, or its cosine; and how many tokens there were. Raises WrongParameter."""
    if isinstance(served, ServedScores):

        def score(texts: Sequence[str]) -> tuple[Vectors, int]:
            return served.model.scores(query, texts), served.model.count(query, texts)

        parts, count = await _in_turns(served, client, documents, "documents", score)
        return [(1 + math.tanh(float(one) / 2)) / 2 for part in parts for one in part], count
    (near, *_), more = await _in_turns(served, client, [query], "query", _embed(served))
    parts, count = await _in_turns(served, client, documents, "documents", _embed(served))
    return [float(one) for part in parts for one in part @ near[0]], count + more


def _embed(served: ServedVectors) -> Callable[[Sequence[str]], tuple[Vectors, int]]:
    return lambda texts: (served.model.embed(texts), served.model.count(texts))


async def _in_turns(
    served: ServedTexts,
    client: Client,
    texts: Sequence[str],
    param: str,
    function: Callable[[Sequence[str]], tuple[T, int]],
) -> tuple[list[T], int]:
    """What a function makes of texts, some at a time, in turns with other clients; and how many tokens they have."""
    found: list[T] = []
    count = 0
    with served.request():
        for start in range(0, len(texts), TOGETHER):
            some = texts[start : start + TOGETHER]
            async with served.turns.of(client):
                try:
                    result, tokens = await served.apart(function, some)
                except InputError as error:
                    raise about(param, error) from None
                except Exception as error:
                    raise failed(error) from None
            found.append(result)
            count += tokens
    served.counted.prompts += count
    return found, count


def _texts(asked: Fields, name: str) -> list[str]:
    """A text, or several. Raises WrongParameter, also for tokens, which are another model's as a rule."""
    given = asked.get(name)
    if given is None:
        raise asked.wrong(name, "is missing, wanted a text or a list of texts")
    several = [given] if isinstance(given, str) else list(asked.list(name, MOST_TEXTS))
    if not several:
        raise asked.wrong(name, "is an empty list")
    if isinstance(several[0], (int, list)):
        hint = "send texts: in LangChain, check_embedding_ctx_length=False"
        raise asked.wrong(name, "holds tokens, and this server has the model's own tokenizer", hint=hint)
    return _bounded(
        name, [_text(one, name if isinstance(given, str) else f"{name}[{place}]") for place, one in enumerate(several)]
    )


def _bounded(name: str, texts: list[str]) -> list[str]:
    """Itself. Raises WrongParameter for too many characters."""
    count = sum(map(len, texts))
    if count > MOST_IN_ALL:
        raise WrongParameter(name, f"has {count} characters in all, at most {MOST_IN_ALL} are taken")
    return texts


def _text(given: object, param: str) -> str:
    text: str = checked(given, str, param)
    return Fields({param: text}).text(param, most=MOST_CHARACTERS)


def _documents(asked: Fields) -> list[str]:
    """Texts, or objects with one. Raises WrongParameter."""
    given = asked.list("documents", MOST_TEXTS)
    if not given:
        raise asked.wrong("documents", "is missing or empty, wanted a list of texts")
    texts = [
        _text(one, f"documents[{place}]")
        if isinstance(one, str)
        else Fields(one, f"documents[{place}]").text("text", most=MOST_CHARACTERS)
        for place, one in enumerate(given)
    ]
    return _bounded("documents", texts)


def _written(vector: Vectors, kind: str) -> Any:
    if kind == "float":
        return [float(one) for one in vector]
    return base64.b64encode(np.ascontiguousarray(vector, "<f4").tobytes()).decode()
