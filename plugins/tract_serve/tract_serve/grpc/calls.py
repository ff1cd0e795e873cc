"""The calls of the protocol over gRPC, but for inference itself."""

from __future__ import annotations

from typing import Any

from tract_core.errors import TractError
from tract_serve.errors import BadRequest
from tract_serve.inference.said import config_of, metadata_of, statistics_of
from tract_serve.inference.watching import log_settings, trace_settings
from tract_serve.messages import ENUMS, message
from tract_serve.repository.sent import FILE
from tract_serve.serving import Serving
from tract_serve.texts import shown


async def server_live(serving: Serving, request: Any) -> Any:
    """The server answers."""
    return message("ServerLiveResponse")(live=True)


async def server_ready(serving: Serving, request: Any) -> Any:
    """Whether the models are loaded."""
    return message("ServerReadyResponse")(ready=serving.is_ready)


async def health(serving: Serving, request: Any) -> Any:
    """What orchestrators ask: whether the server, or the model of that name, is ready."""
    status = ENUMS["ServingStatus"]
    if not request.service or request.service.endswith("GRPCInferenceService"):
        found = "SERVING" if serving.is_ready else "NOT_SERVING"
    else:
        found = "SERVING" if _is_ready(serving, request.service, "") else "NOT_SERVING"
    return message("HealthCheckResponse")(status=status[found])


async def model_ready(serving: Serving, request: Any) -> Any:
    """Whether a model is ready."""
    return message("ModelReadyResponse")(ready=_is_ready(serving, request.name, request.version))


def _is_ready(serving: Serving, name: str, version: str) -> bool:
    try:
        serving.repository.model(name, version)
    except TractError:
        return False
    return True


async def server_metadata(serving: Serving, request: Any) -> Any:
    """What the server is."""
    return message("ServerMetadataResponse")(**serving.metadata())


async def model_metadata(serving: Serving, request: Any) -> Any:
    """The inputs and outputs of a model."""
    served = serving.tensors(request.name, request.version)
    return message("ModelMetadataResponse")(**metadata_of(serving.repository, served))


async def model_config(serving: Serving, request: Any) -> Any:
    """The configuration of a model."""
    return message("ModelConfigResponse")(config=config_of(serving.tensors(request.name, request.version)))


async def model_statistics(serving: Serving, request: Any) -> Any:
    """How often models were asked."""
    return statistics_of(serving, request.name, request.version)


async def index(serving: Serving, request: Any) -> Any:
    """The models of the repository."""
    made: Any = message("RepositoryIndexResponse")()
    for one in serving.repository.index:
        if not request.ready or one.state == "READY":
            made.models.add(name=one.name, version=one.version, state=one.state, reason=one.reason)
    return made


async def load(serving: Serving, request: Any) -> Any:
    """Load a model, or load it again."""
    serving.check_control()
    told = request.parameters
    files = {name.removeprefix(FILE): told[name].bytes_param for name in told if name.startswith(FILE)}
    config = request.parameters["config"].string_param if "config" in request.parameters else None
    name = _model_of(request)
    await serving.repository.load(name, config, files)
    return message("RepositoryModelResponse")(model_name=name, done=True)


async def unload(serving: Serving, request: Any) -> Any:
    """Take a model out."""
    serving.check_control()
    name = _model_of(request)
    await serving.repository.unload(name)
    return message("RepositoryModelResponse")(model_name=name, done=True)


def _model_of(request: Any) -> str:
    """The model that is meant: KServe's clients send its name in the field where Triton's name a repository."""
    if request.model_name and request.repository_name:
        raise BadRequest(f"there is no repository {shown(request.repository_name)}", hint="leave repository_name out")
    return request.model_name or request.repository_name


async def regions(serving: Serving, request: Any) -> Any:
    """The regions of shared memory."""
    made: Any = message("SystemSharedMemoryStatusResponse")()
    for one in serving.regions().status(request.name):
        made.regions[one["name"]].CopyFrom(message("SystemRegion")(**one))
    return made


async def register(serving: Serving, request: Any) -> Any:
    """Take a region of shared memory."""
    serving.regions().register(request.name, request.key, request.offset, request.byte_size)
    return message("Nothing")()


async def unregister(serving: Serving, request: Any) -> Any:
    """Leave a region of shared memory, or all."""
    serving.regions().unregister(request.name)
    return message("Nothing")()


async def no_regions(serving: Serving, request: Any) -> Any:
    """The regions of memory of devices: none."""
    return message("CudaSharedMemoryStatusResponse")()


async def no_cuda(serving: Serving, request: Any) -> Any:
    """Memory of devices is not taken."""
    raise BadRequest("memory of CUDA devices is not shared", hint="use system shared memory")


async def nothing(serving: Serving, request: Any) -> Any:
    """There is nothing to do."""
    return message("Nothing")()


async def traces(serving: Serving, request: Any) -> Any:
    """Which requests are traced."""
    asked = {name: list(one.value) for name, one in request.settings.items()}
    if request.model_name:
        serving.repository.model(request.model_name)
    made: Any = message("TraceSettingResponse")()
    for name, value in trace_settings(serving, asked).items():
        made.settings[name].value.extend(value if isinstance(value, list) else [value])
    return made


async def logs(serving: Serving, request: Any) -> Any:
    """What is logged."""
    asked = {name: getattr(one, one.WhichOneof("choice") or "bool_param") for name, one in request.settings.items()}
    made: Any = message("LogSettingsResponse")()
    for name, value in log_settings(serving, asked).items():
        kind = "bool_param" if isinstance(value, bool) else "uint32_param" if isinstance(value, int) else "string_param"
        setattr(made.settings[name], kind, value)
    return made
