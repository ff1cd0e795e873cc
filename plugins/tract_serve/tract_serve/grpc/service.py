"""The service of the protocol over gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

import grpc

from tract_core.errors import TractError
from tract_serve.errors import BadRequest, Refusal, RequestTooLarge, TooSlow, status_of, text_of
from tract_serve.grpc import calls
from tract_serve.grpc.incoming import FILES, SMALL, UNFOLDED, Incoming, read_as
from tract_serve.grpc.infer import inferred
from tract_serve.logs import LOGGER
from tract_serve.messages import PACKAGE, message
from tract_serve.serving import CONTROL_BYTES, Holding, Serving
from tract_serve.tokens import check_token
from tract_serve.tracing import traced

Call: TypeAlias = Callable[[Serving, Any], Awaitable[Any]]
Work: TypeAlias = Callable[[Any, Holding], Awaitable[Any]]

_UNARY: Final = cast("Callable[[Any], Any]", grpc.stream_unary_rpc_method_handler)

MOST_REASON: Final = 1000
"""Characters of the reason for which a call is not done."""

CODES: Final[dict[int, Any]] = {
    400: grpc.StatusCode.INVALID_ARGUMENT,
    401: grpc.StatusCode.UNAUTHENTICATED,
    403: grpc.StatusCode.PERMISSION_DENIED,
    404: grpc.StatusCode.NOT_FOUND,
    408: grpc.StatusCode.DEADLINE_EXCEEDED,
    413: grpc.StatusCode.RESOURCE_EXHAUSTED,
    503: grpc.StatusCode.UNAVAILABLE,
    504: grpc.StatusCode.DEADLINE_EXCEEDED,
}

METHODS: Final[dict[str, tuple[str, str, Call]]] = {
    "ServerLive": ("Nothing", "ServerLiveResponse", calls.server_live),
    "ServerReady": ("Nothing", "ServerReadyResponse", calls.server_ready),
    "ModelReady": ("ModelReadyRequest", "ModelReadyResponse", calls.model_ready),
    "ServerMetadata": ("Nothing", "ServerMetadataResponse", calls.server_metadata),
    "ModelMetadata": ("ModelMetadataRequest", "ModelMetadataResponse", calls.model_metadata),
    "ModelConfig": ("ModelConfigRequest", "ModelConfigResponse", calls.model_config),
    "ModelStatistics": ("ModelStatisticsRequest", "ModelStatisticsResponse", calls.model_statistics),
    "RepositoryIndex": ("RepositoryIndexRequest", "RepositoryIndexResponse", calls.index),
    "RepositoryModelLoad": ("RepositoryModelRequest", "RepositoryModelResponse", calls.load),
    "RepositoryModelUnload": ("RepositoryModelRequest", "RepositoryModelResponse", calls.unload),
    "SystemSharedMemoryStatus": ("RegionRequest", "SystemSharedMemoryStatusResponse", calls.regions),
    "SystemSharedMemoryRegister": ("SystemRegion", "Nothing", calls.register),
    "SystemSharedMemoryUnregister": ("RegionRequest", "Nothing", calls.unregister),
    "CudaSharedMemoryStatus": ("RegionRequest", "CudaSharedMemoryStatusResponse", calls.no_regions),
    "CudaSharedMemoryRegister": ("CudaSharedMemoryRegisterRequest", "Nothing", calls.no_cuda),
    "CudaSharedMemoryUnregister": ("RegionRequest", "Nothing", calls.nothing),
    "TraceSetting": ("TraceSettingRequest", "TraceSettingResponse", calls.traces),
    "LogSettings": ("LogSettingsRequest", "LogSettingsResponse", calls.logs),
}


class Service:
    """The methods of the protocol for one server."""

    def __init__(self, serving: Serving) -> None:
        self._serving = serving
        self._incoming = Incoming(serving.settings.limits)

    def handlers(self) -> list[Any]:
        """What a server of gRPC is given. Messages are bytes for it: what is none is refused like other requests.

        Whether one request or several come is looked at here, so all of them are streams for it.
        """
        made = {name: self._unary(*told) for name, told in METHODS.items()}
        made["ModelInfer"] = grpc.stream_unary_rpc_method_handler(self._infer)
        made["ModelStreamInfer"] = grpc.stream_stream_rpc_method_handler(self._stream)
        health = self._unary("HealthCheckRequest", "HealthCheckResponse", calls.health, is_open=True)
        return [
            grpc.method_handlers_generic_handler(f"{PACKAGE}.GRPCInferenceService", made),
            grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": health}),
        ]

    def _unary(self, asked: str, answered: str, call: Call, *, is_open: bool = False) -> Any:
        """``answered``: the message of its answer. ``is_open``: whether it needs no token.

        That is so for what is asked by whoever watches over the server.
        """

        async def work(context: Any, holding: Holding) -> Any:
            content = await self._incoming.one(context)
            if call is calls.load:
                holding.more(self._incoming.cost(content, FILES))
                return await call(self._serving, read_as(asked, content))
            if len(content) > CONTROL_BYTES:
                raise RequestTooLarge(f"the request has {len(content)} bytes, at most {CONTROL_BYTES} are taken")
            holding.more(UNFOLDED * len(content))
            return await call(self._serving, read_as(asked, content))

        async def method(requests: Any, context: Any) -> Any:
            return await self._guarded(work, context, is_open=is_open)

        return _UNARY(method)

    async def _infer(self, requests: Any, context: Any) -> Any:
        return await self._guarded(self._inferred, context)

    async def _inferred(self, context: Any, holding: Holding) -> Any:
        content = await self._incoming.one(context)
        told = context.invocation_metadata() if self._serving.trace_rate else None
        trace = traced(self._serving, {name: str(value) for name, value in told or ()})
        holding.more(self._incoming.cost(content))
        request = read_as("ModelInferRequest", content)
        return await inferred(self._serving, request, context.time_remaining(), holding, trace)

    async def _guarded(self, work: Work, context: Any, *, is_open: bool = False) -> Any:
        """The answer; a call that is not done ends with a status, and the reason.

        What it holds is given back once the call is over, which is when the client has taken its answer.
        """
        holding = Holding(self._serving.room)
        context.add_done_callback(_ignoring(holding.release))
        try:
            if not is_open:
                self._check_token(context)
            found = self._written(await work(context, holding), holding)
            self._wait_for_writing(context, len(found))
        except asyncio.CancelledError:
            raise
        except Exception as error:  # every call has an answer
            code, text = _status_of(error)
        else:
            return found
        return await context.abort(code, text)

    def _written(self, answer: Any, holding: Holding) -> bytes:
        """An answer as bytes. Raises BadRequest where it has too many."""
        most, count = self._serving.settings.limits.response_bytes, answer.ByteSize()
        if count > most:
            hint = "ask for fewer outputs, or for less at once"
            raise BadRequest(f"the answer has {count} bytes, at most {most} are sent", hint=hint)
        holding.anyway(count)
        return answer.SerializeToString()

    def _wait_for_writing(self, context: Any, count: int) -> None:
        """End a call whose client does not take a long answer in time."""
        task = asyncio.current_task()
        if count > SMALL and task is not None:
            clock = asyncio.get_running_loop().call_later(self._serving.settings.limits.write_s, task.cancel)
            context.add_done_callback(_ignoring(clock.cancel))

    async def _stream(self, requests: Any, context: Any) -> None:
        """Answers in the order of the requests. One that is not done is told in its place; the stream goes on."""
        incoming = self._incoming
        try:
            self._check_token(context)
            incoming.begin_stream()
        except Refusal as error:
            await context.abort(*_status_of(error))
        try:
            while (content := await incoming.next(context)) is not None:
                await self._answer_one(content, context)
        except Refusal as error:
            await context.abort(*_status_of(error))
        finally:
            incoming.end_stream()

    async def _answer_one(self, content: bytes, context: Any) -> None:
        """Answer one request of a stream. Raises TooSlow where the client does not take the answer."""
        limits, holding = self._serving.settings.limits, Holding(self._serving.room)
        made: Any = message("ModelStreamInferResponse")
        request: Any = None
        try:
            try:
                holding.more(self._incoming.cost(content))
                request = read_as("ModelInferRequest", content)
                answer = made(infer_response=await inferred(self._serving, request, None, holding))
                answer.infer_response.parameters["triton_final_response"].bool_param = True
                found = self._written(answer, holding)
            except asyncio.CancelledError:
                raise
            except Exception as error:  # every request has an answer
                _log(error)
                failed = made(error_message=text_of(error))
                failed.infer_response.id = "" if request is None else request.id
                found = failed.SerializeToString()
            async with asyncio.timeout(limits.write_s):
                await context.write(found)
        except TimeoutError:
            raise TooSlow(f"the answer was not taken within {limits.write_s:g} seconds") from None
        finally:
            holding.release()

    def _check_token(self, context: Any) -> None:
        if self._serving.settings.tokens:
            told: Mapping[str, Any] = dict(context.invocation_metadata() or ())
            check_token(self._serving.settings, str(told.get("authorization", "")))


def _status_of(error: BaseException) -> tuple[Any, str]:
    """How a call ends: the status, and the reason, which has to be short among gRPC's headers."""
    _log(error)
    return CODES.get(status_of(error), grpc.StatusCode.INTERNAL), text_of(error)[:MOST_REASON]


def _ignoring(function: Callable[[], None]) -> Callable[[Any], None]:
    """A function that is given the call that is over, and does not look at it."""
    return lambda _call: function()


def _log(error: BaseException) -> None:
    if not isinstance(error, TractError):
        LOGGER.error("request.failed", exc_info=error)


def _milliseconds(seconds: float) -> int:
    return int(min(seconds * 1000, 2**31 - 1))


def grpc_server(serving: Serving, addresses: Sequence[str], credentials: Any = None) -> tuple[Any, list[int]]:
    """A server that is not started yet, and the ports that it has. Raises BadRequest for an address that is taken."""
    limits = serving.settings.limits
    options = [
        ("grpc.max_receive_message_length", min(limits.grpc_bytes, 2**31 - 1)),
        ("grpc.max_send_message_length", min(limits.response_bytes, 2**31 - 1)),
        ("grpc.max_metadata_size", limits.header_bytes),
        ("grpc.so_reuseport", 0),
        ("grpc.max_concurrent_streams", limits.connections),
        ("grpc.max_allowed_incoming_connections", limits.connections),
        ("grpc.server_handshake_timeout_ms", _milliseconds(limits.read_s)),
        ("grpc.max_connection_idle_ms", _milliseconds(limits.idle_s)),
        ("grpc.keepalive_time_ms", _milliseconds(limits.idle_s)),  # a client that is gone is found out
        ("grpc.http2.bdp_probe", 0),  # a window that grows by itself would let clients send before they are asked
    ]
    server = grpc.aio.server(options=options, maximum_concurrent_rpcs=limits.connections)
    server.add_generic_rpc_handlers(Service(serving).handlers())
    ports: list[int] = []
    for address in addresses:
        try:
            if credentials is None:
                ports.append(server.add_insecure_port(address))
            else:
                ports.append(server.add_secure_port(address, credentials))
        except RuntimeError:
            raise BadRequest(
                f"the address {address} cannot be listened on", hint="name another port: --grpc-port"
            ) from None
    return server, ports
