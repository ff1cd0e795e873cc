"""What the server and its models say of themselves, over HTTP."""

from __future__ import annotations

from tract_serve.errors import Busy
from tract_serve.http.exchange import Answer, HttpRequest
from tract_serve.inference.said import config_of, metadata_of, statistics_of
from tract_serve.messages import plain


async def live(request: HttpRequest) -> Answer:
    """The server answers."""
    return Answer.of_json({"live": True})


async def ready(request: HttpRequest) -> Answer:
    """The models are loaded."""
    if not request.serving.is_ready:
        raise Busy("the models are being loaded", hint="ask again later")
    return Answer.of_json({"ready": True, "live": True})  # the specification's page has the one, its schema the other


async def server(request: HttpRequest) -> Answer:
    """What the server is, and what it knows besides the protocol."""
    return Answer.of_json(request.serving.metadata())


async def models(request: HttpRequest) -> Answer:
    """The names of the models that are ready."""
    return Answer.of_json({"models": sorted(request.serving.repository.models)})


async def model(request: HttpRequest) -> Answer:
    """The inputs and outputs of a model."""
    name, version = [*request.parts, ""][:2]
    return Answer.of_json(metadata_of(request.serving.repository, request.serving.tensors(name, version)))


async def model_ready(request: HttpRequest) -> Answer:
    """A model is ready."""
    name, version = [*request.parts, ""][:2]
    found = request.serving.repository.model(name, version)
    return Answer.of_json({"name": found.name, "ready": True})


async def config(request: HttpRequest) -> Answer:
    """What a model's configuration is, with what was left out."""
    name, version = [*request.parts, ""][:2]
    return Answer.of_json(plain(config_of(request.serving.tensors(name, version))))


async def statistics(request: HttpRequest) -> Answer:
    """How often models were asked, and how long that took."""
    name, version = [*request.parts, "", ""][:2]
    return Answer.of_json(plain(statistics_of(request.serving, name, version)))
