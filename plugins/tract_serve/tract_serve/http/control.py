"""What clients have the server do, over HTTP: models, shared memory, traces, logs."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from tract_serve.errors import BadRequest, RequestTooLarge
from tract_serve.fields import checked, parameters_of, text_in, whole_in
from tract_serve.http.exchange import Answer, HttpRequest
from tract_serve.inference.watching import log_settings, trace_settings
from tract_serve.repository.sent import FILE
from tract_serve.serving import CONTROL_BYTES


async def index(request: HttpRequest) -> Answer:
    """The models of the repository, and how they are doing."""
    asked = await _asked(request)
    ready = asked.get("ready") is True
    found = [one for one in request.serving.repository.index if not ready or one.state == "READY"]
    return Answer.of_json(
        [{"name": one.name, "version": one.version, "state": one.state, "reason": one.reason} for one in found]
    )


async def load(request: HttpRequest) -> Answer:
    """Load a model, or load it again."""
    _check_control(request)
    told = parameters_of(await _asked(request, request.serving.settings.limits.json_bytes))
    files = {name.removeprefix(FILE): _content(request, told, name) for name in told if name.startswith(FILE)}
    config = told.get("config")
    if config is not None and not isinstance(config, str):
        raise BadRequest("'config' is no text")
    await request.serving.repository.load(request.parts[0], config, files)
    return Answer.of_json({"name": request.parts[0], "load": True})


def _content(request: HttpRequest, told: Mapping[str, Any], name: str) -> bytes:
    """A file that a client has sent, in base64. Raises BadRequest."""
    text = told[name]
    if not isinstance(text, str):
        raise BadRequest(f"{name[:100]!r} is a {type(text).__name__}, wanted a text of base64")
    request.holding.more(len(text))
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise BadRequest(f"{name[:100]!r} is no base64") from None


async def unload(request: HttpRequest) -> Answer:
    """Take a model out."""
    _check_control(request)
    await _asked(request)
    await request.serving.repository.unload(request.parts[0])
    return Answer.of_json({"name": request.parts[0], "unload": True})


async def regions(request: HttpRequest) -> Answer:
    """The regions of shared memory."""
    return Answer.of_json(request.serving.regions().status(*request.parts))


async def register(request: HttpRequest) -> Answer:
    """Take a region of shared memory."""
    _check_page(request)
    asked = await _asked(request)
    key = text_in(asked, "key", f"region {request.parts[0][:100]!r}")
    offset, size = whole_in(asked, "offset") or 0, whole_in(asked, "byte_size") or 0
    request.serving.regions().register(request.parts[0], key, offset, size)
    return Answer.of_json({})


async def unregister(request: HttpRequest) -> Answer:
    """Leave a region of shared memory, or all."""
    _check_page(request)
    request.serving.regions().unregister(*request.parts or [""])
    return Answer.of_json({})


async def no_regions(request: HttpRequest) -> Answer:
    """The regions of memory of devices: none."""
    return Answer.of_json([])


async def no_cuda(request: HttpRequest) -> Answer:
    """Memory of devices is not taken."""
    raise BadRequest("memory of CUDA devices is not shared", hint="use system shared memory")


async def nothing(request: HttpRequest) -> Answer:
    """There is nothing to do."""
    return Answer.of_json({})


async def settings_of_traces(request: HttpRequest) -> Answer:
    """Which requests are traced."""
    asked: Mapping[str, Any] = await _asked(request) if request.method == "POST" else {}
    _check_page(request)
    if request.parts:
        request.serving.repository.model(request.parts[0])
    return Answer.of_json(trace_settings(request.serving, asked))


async def settings_of_logs(request: HttpRequest) -> Answer:
    """What is logged."""
    asked: Mapping[str, Any] = await _asked(request) if request.method == "POST" else {}
    _check_page(request)
    return Answer.of_json(log_settings(request.serving, asked))


def _check_control(request: HttpRequest) -> None:
    """Raises Forbidden where the client may not have models loaded and unloaded."""
    request.serving.check_control()
    _check_page(request)


def _check_page(request: HttpRequest) -> None:
    """Raises Forbidden where a page in a browser may not change the server."""
    if request.method == "POST":
        request.serving.check_page(request.header(b"origin"))


async def _asked(request: HttpRequest, most: int = CONTROL_BYTES) -> Mapping[str, Any]:
    """The body of so many bytes at most as an object of JSON; an empty one as an object without anything."""
    content = await request.body()
    if len(content) > most:
        raise RequestTooLarge(f"the request has {len(content)} bytes, at most {most} are taken")
    if not content:
        return {}
    return checked(request.parsed(content), dict, "the body")
