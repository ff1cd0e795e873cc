"""The service of the protocol over gRPC."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import grpc

from tract_core.errors import TractError
from tract_serve.errors import BadRequest, Refusal, status_of, text_of
from tract_serve.grpc import calls
from tract_serve.grpc.infer import inferred
from tract_serve.http.application import check_token
from tract_serve.logs import LOGGER
from tract_serve.messages import PACKAGE, message
from tract_serve.serving import Serving

Call: TypeAlias = Callable[[Serving, Any], Awaitable[Any]]

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
    "RepositoryModelLoad": ("RepositoryModelRequest", "Nothing", calls.load),
    "RepositoryModelUnload": ("RepositoryModelRequest", "Nothing", calls.unload),
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

    def handlers(self) -> list[Any]:
        """What a server of gRPC is given."""
        made = {name: self._unary(*told) for name, told in METHODS.items()}
        response = message("ModelInferResponse").SerializeToString
        request = message("ModelInferRequest").FromString
        made["ModelInfer"] = grpc.unary_unary_rpc_method_handler(self._infer, request, response)
        streamed = message("ModelStreamInferResponse").SerializeToString
        made["ModelStreamInfer"] = grpc.stream_stream_rpc_method_handler(self._stream, request, streamed)
        health = self._unary("HealthCheckRequest", "HealthCheckResponse", calls.health)
        return [
            grpc.method_handlers_generic_handler(f"{PACKAGE}.GRPCInferenceService", made),
            grpc.method_handlers_generic_handler("grpc.health.v1.Health", {"Check": health}),
        ]

    def _unary(self, asked: str, answered: str, call: Call) -> Any:
        async def method(request: Any, context: Any) -> Any:
            return await self._guarded(call(self._serving, request), context)

        return grpc.unary_unary_rpc_method_handler(
            method, message(asked).FromString, message(answered).SerializeToString
        )

    async def _infer(self, request: Any, context: Any) -> Any:
        answer = inferred(self._serving, request, context.time_remaining())
        return await self._guarded(answer, context)

    async def _guarded(self, answer: Awaitable[Any], context: Any) -> Any:
        """The answer; a call that is not done ends with a status, and the reason."""
        try:
            self._check_token(context)
        except Refusal as error:
            _close(answer)
            await context.abort(CODES[error.status], text_of(error))
        try:
            return await answer
        except asyncio.CancelledError:
            raise
        except Exception as error:  # every call has an answer
            code = CODES.get(status_of(error), grpc.StatusCode.INTERNAL)
            _log(error)
            text = text_of(error)
        await context.abort(code, text)

    async def _stream(self, requests: AsyncIterator[Any], context: Any) -> AsyncIterator[Any]:
        """Answers in the order of the requests. One that is not done is told in its place; the stream goes on."""
        made: Any = message("ModelStreamInferResponse")
        try:
            self._check_token(context)
        except Refusal as error:
            await context.abort(CODES[error.status], text_of(error))
        async for request in requests:
            try:
                answer = await inferred(self._serving, request, None)
                yield made(infer_response=answer)
            except asyncio.CancelledError:
                raise
            except Exception as error:  # every request has an answer
                _log(error)
                failed = made(error_message=text_of(error))
                failed.infer_response.id = request.id
                yield failed

    def _check_token(self, context: Any) -> None:
        if self._serving.settings.tokens:
            told: Mapping[str, Any] = dict(context.invocation_metadata() or ())
            check_token(self._serving.settings, str(told.get("authorization", "")))


def _log(error: BaseException) -> None:
    if not isinstance(error, TractError):
        LOGGER.exception("request.failed")


def _close(answer: Any) -> None:
    close = getattr(answer, "close", None)
    if close is not None:
        close()


def grpc_server(serving: Serving, addresses: Sequence[str], credentials: Any = None) -> tuple[Any, list[int]]:
    """A server that is not started yet, and the ports that it has. Raises BadRequest for an address that is taken."""
    limits = serving.settings.limits
    options = [
        ("grpc.max_receive_message_length", min(limits.body_bytes, 2**31 - 1)),
        ("grpc.max_send_message_length", min(limits.response_bytes, 2**31 - 1)),
        ("grpc.max_metadata_size", limits.header_bytes),
        ("grpc.so_reuseport", 0),
        ("grpc.max_concurrent_streams", limits.connections),
    ]
    server = grpc.aio.server(options=options, maximum_concurrent_rpcs=limits.connections)
    server.add_generic_rpc_handlers(Service(serving).handlers())
    ports: list[int] = []
    for address in addresses:
        try:
            add = server.add_insecure_port if credentials is None else server.add_secure_port
            ports.append(add(address) if credentials is None else add(address, credentials))
        except RuntimeError:
            raise BadRequest(
                f"the address {address} cannot be listened on", hint="name another port: --grpc-port"
            ) from None
    return server, ports
