"""The models of texts: which there are, and the one that a request names."""

from __future__ import annotations

from typing import TypeVar

from tract_serve.chat.errors import NoSuchModel
from tract_serve.chat.fields import Fields
from tract_serve.chat.served import ServedTexts
from tract_serve.errors import NotFound
from tract_serve.http.exchange import Answer, HttpRequest
from tract_serve.serving import Serving

S = TypeVar("S", bound=ServedTexts)

_DONE_BY = {
    "text": "/v1/chat/completions and /v1/completions",
    "vectors": "/v1/embeddings and /v1/rerank",
    "scores": "/v1/rerank",
    "tensors": "/v2/models/NAME/infer",
}
"""What asks a model of each kind."""


async def models(request: HttpRequest) -> Answer:
    """The models of texts that are ready."""
    return Answer.of_json({"object": "list", "data": [one.said() for one in _all(request.serving)]})


async def model(request: HttpRequest) -> Answer:
    """What there is to know of a model."""
    return Answer.of_json(_named(request.serving, request.parts[0]).said())


def _all(serving: Serving) -> list[ServedTexts]:
    """The latest version of each."""
    found = [versions[max(versions)] for _, versions in sorted(serving.repository.models.items())]
    return [one for one in found if isinstance(one, ServedTexts)]


def _named(serving: Serving, name: str) -> ServedTexts:
    try:
        found = serving.repository.model(name)
    except NotFound:
        names = ", ".join(one.name for one in _all(serving)) or "none"
        raise NoSuchModel(f"there is no model {name[:100]!r}; models of texts: {names}") from None
    if not isinstance(found, ServedTexts):
        raise NoSuchModel(f"the model {name!r} takes tensors, and no texts", hint=f"ask by {_DONE_BY['tensors']}")
    return found


def wanted(serving: Serving, asked: Fields, *kinds: type[S]) -> S:
    """The model that a request names. Raises NoSuchModel, Busy, and WrongParameter for one of another kind."""
    found = _named(serving, asked.text("model", most=1000))
    if not isinstance(found, kinds):
        kind = found.about.kind
        raise asked.wrong("model", f"is {found.name!r}, of the kind {kind!r}", hint=f"ask by {_DONE_BY[kind]}")
    return found
