"""The messages of the protocol, as a table, and the classes that are made of it.

Names and numbers are those of ``grpc_predict_v2.proto`` of the Open Inference Protocol, and, of its extensions, of
Triton's ``grpc_service.proto`` and ``model_config.proto``. They lie in a pool of their own, so that a client's modules
for the same protocol can be imported in the same process.

A field is ``number type``, with ``[...]`` around the type of one that comes any number of times, ``{key value}`` for a
map, and ``oneof:`` in front where only one of several is there.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

PACKAGE: Final = "inference"

_NAMED: Final = {"name": "1 string", "version": "2 string"}
_TENSOR: Final = {
    "name": "1 string",
    "datatype": "2 string",
    "shape": "3 [int64]",
    "parameters": "4 {string InferParameter}",
    "contents": "5 InferTensorContents",
}
_SETTINGS: Final = {"bool_param": "1 choice:bool", "uint32_param": "2 choice:uint32", "string_param": "3 choice:string"}

MESSAGES: Final[dict[str, dict[str, str]]] = {
    "Nothing": {},
    "ServerLiveResponse": {"live": "1 bool"},
    "ServerReadyResponse": {"ready": "1 bool"},
    "ModelReadyRequest": _NAMED,
    "ModelReadyResponse": {"ready": "1 bool"},
    "ServerMetadataResponse": {"name": "1 string", "version": "2 string", "extensions": "3 [string]"},
    "ModelMetadataRequest": _NAMED,
    "TensorMetadata": {"name": "1 string", "datatype": "2 string", "shape": "3 [int64]"},
    "ModelMetadataResponse": {
        "name": "1 string",
        "versions": "2 [string]",
        "platform": "3 string",
        "inputs": "4 [TensorMetadata]",
        "outputs": "5 [TensorMetadata]",
    },
    "InferParameter": {
        "bool_param": "1 parameter_choice:bool",
        "int64_param": "2 parameter_choice:int64",
        "string_param": "3 parameter_choice:string",
        "double_param": "4 parameter_choice:double",
        "uint64_param": "5 parameter_choice:uint64",
    },
    "InferTensorContents": {
        "bool_contents": "1 [bool]",
        "int_contents": "2 [int32]",
        "int64_contents": "3 [int64]",
        "uint_contents": "4 [uint32]",
        "uint64_contents": "5 [uint64]",
        "fp32_contents": "6 [float]",
        "fp64_contents": "7 [double]",
        "bytes_contents": "8 [bytes]",
    },
    "InferInputTensor": _TENSOR,
    "InferRequestedOutputTensor": {"name": "1 string", "parameters": "2 {string InferParameter}"},
    "InferOutputTensor": _TENSOR,
    "ModelInferRequest": {
        "model_name": "1 string",
        "model_version": "2 string",
        "id": "3 string",
        "parameters": "4 {string InferParameter}",
        "inputs": "5 [InferInputTensor]",
        "outputs": "6 [InferRequestedOutputTensor]",
        "raw_input_contents": "7 [bytes]",
    },
    "ModelInferResponse": {
        "model_name": "1 string",
        "model_version": "2 string",
        "id": "3 string",
        "parameters": "4 {string InferParameter}",
        "outputs": "5 [InferOutputTensor]",
        "raw_output_contents": "6 [bytes]",
    },
    "ModelStreamInferResponse": {"error_message": "1 string", "infer_response": "2 ModelInferResponse"},
    "ModelConfigRequest": _NAMED,
    "ModelConfigResponse": {"config": "1 ModelConfig"},
    "ModelStatisticsRequest": _NAMED,
    "StatisticDuration": {"count": "1 uint64", "ns": "2 uint64"},
    "InferStatistics": {
        "success": "1 StatisticDuration",
        "fail": "2 StatisticDuration",
        "queue": "3 StatisticDuration",
        "compute_input": "4 StatisticDuration",
        "compute_infer": "5 StatisticDuration",
        "compute_output": "6 StatisticDuration",
        "cache_hit": "7 StatisticDuration",
        "cache_miss": "8 StatisticDuration",
    },
    "InferBatchStatistics": {
        "batch_size": "1 uint64",
        "compute_input": "2 StatisticDuration",
        "compute_infer": "3 StatisticDuration",
        "compute_output": "4 StatisticDuration",
    },
    "ModelStatistics": {
        "name": "1 string",
        "version": "2 string",
        "last_inference": "3 uint64",
        "inference_count": "4 uint64",
        "execution_count": "5 uint64",
        "inference_stats": "6 InferStatistics",
        "batch_stats": "7 [InferBatchStatistics]",
    },
    "ModelStatisticsResponse": {"model_stats": "1 [ModelStatistics]"},
    "ModelRepositoryParameter": {
        "bool_param": "1 parameter_choice:bool",
        "int64_param": "2 parameter_choice:int64",
        "string_param": "3 parameter_choice:string",
        "bytes_param": "4 parameter_choice:bytes",
    },
    "RepositoryIndexRequest": {"repository_name": "1 string", "ready": "2 bool"},
    "ModelIndex": {"name": "1 string", "version": "2 string", "state": "3 string", "reason": "4 string"},
    "RepositoryIndexResponse": {"models": "1 [ModelIndex]"},
    "RepositoryModelRequest": {
        "repository_name": "1 string",
        "model_name": "2 string",
        "parameters": "3 {string ModelRepositoryParameter}",
    },
    # Empty for Triton, whose clients leave it alone; KServe's look at it.
    "RepositoryModelResponse": {"model_name": "1 string", "done": "2 bool"},
    "RegionRequest": {"name": "1 string"},
    "SystemRegion": {"name": "1 string", "key": "2 string", "offset": "3 uint64", "byte_size": "4 uint64"},
    "SystemSharedMemoryStatusResponse": {"regions": "1 {string SystemRegion}"},
    "CudaRegion": {"name": "1 string", "device_id": "2 uint64", "byte_size": "3 uint64"},
    "CudaSharedMemoryStatusResponse": {"regions": "1 {string CudaRegion}"},
    "CudaSharedMemoryRegisterRequest": {
        "name": "1 string",
        "raw_handle": "2 bytes",
        "device_id": "3 int64",
        "byte_size": "4 uint64",
    },
    "TraceValue": {"value": "1 [string]"},
    "TraceSettingRequest": {"settings": "1 {string TraceValue}", "model_name": "2 string"},
    "TraceSettingResponse": {"settings": "1 {string TraceValue}"},
    "LogValue": _SETTINGS,
    "LogSettingsRequest": {"settings": "1 {string LogValue}"},
    "LogSettingsResponse": {"settings": "1 {string LogValue}"},
    # What of model_config.proto means something here; fields besides are left alone.
    "ModelInstanceGroup": {"name": "1 string", "count": "2 int32", "kind": "4 InstanceKind"},
    "ModelTensorReshape": {"shape": "1 [int64]"},
    "ModelInput": {
        "name": "1 string",
        "data_type": "2 DataType",
        "format": "3 Format",
        "dims": "4 [int64]",
        "reshape": "5 ModelTensorReshape",
        "allow_ragged_batch": "7 bool",
        "optional": "8 bool",
    },
    "ModelOutput": {
        "name": "1 string",
        "data_type": "2 DataType",
        "dims": "3 [int64]",
        "label_filename": "4 string",
        "reshape": "5 ModelTensorReshape",
    },
    "Latest": {"num_versions": "1 uint32"},
    "All": {},
    "Specific": {"versions": "1 [int64]"},
    "ModelVersionPolicy": {
        "latest": "1 policy_choice:Latest",
        "all": "2 policy_choice:All",
        "specific": "3 policy_choice:Specific",
    },
    "ModelQueuePolicy": {
        "timeout_action": "1 TimeoutAction",
        "default_timeout_microseconds": "2 uint64",
        "allow_timeout_override": "3 bool",
        "max_queue_size": "4 uint32",
    },
    "ModelDynamicBatching": {
        "preferred_batch_size": "1 [int32]",
        "max_queue_delay_microseconds": "2 uint64",
        "preserve_ordering": "3 bool",
        "priority_levels": "4 uint64",
        "default_priority_level": "5 uint64",
        "default_queue_policy": "6 ModelQueuePolicy",
    },
    "InitialState": {
        "data_type": "1 DataType",
        "dims": "2 [int64]",
        "zero_data": "3 state_data:bool",
        "data_file": "4 state_data:string",
        "name": "5 string",
    },
    "SequenceState": {
        "input_name": "1 string",
        "output_name": "2 string",
        "data_type": "3 DataType",
        "dims": "4 [int64]",
        "initial_state": "5 [InitialState]",
    },
    "Control": {
        "kind": "1 ControlKind",
        "int32_false_true": "2 [int32]",
        "fp32_false_true": "3 [float]",
        "data_type": "4 DataType",
        "bool_false_true": "5 [bool]",
    },
    "ControlInput": {"name": "1 string", "control": "2 [Control]"},
    "ModelSequenceBatching": {
        "max_sequence_idle_microseconds": "1 uint64",
        "control_input": "2 [ControlInput]",
        "state": "5 [SequenceState]",
    },
    "ModelParameter": {"string_value": "1 string"},
    "WarmupInput": {
        "data_type": "1 DataType",
        "dims": "2 [int64]",
        "zero_data": "3 input_data_type:bool",
        "random_data": "4 input_data_type:bool",
        "input_data_file": "5 input_data_type:string",
    },
    "ModelWarmup": {
        "name": "1 string",
        "batch_size": "2 uint32",
        "inputs": "3 {string WarmupInput}",
        "count": "4 uint32",
    },
    "ModelConfig": {
        "name": "1 string",
        "platform": "2 string",
        "version_policy": "3 ModelVersionPolicy",
        "max_batch_size": "4 int32",
        "input": "5 [ModelInput]",
        "output": "6 [ModelOutput]",
        "instance_group": "7 [ModelInstanceGroup]",
        "default_model_filename": "8 string",
        "dynamic_batching": "11 scheduling_choice:ModelDynamicBatching",
        "sequence_batching": "13 scheduling_choice:ModelSequenceBatching",
        "parameters": "14 {string ModelParameter}",
        "model_warmup": "16 [ModelWarmup]",
        "backend": "17 string",
    },
    # grpc.health.v1: what orchestrators ask. Messages are known by their numbers alone.
    "HealthCheckRequest": {"service": "1 string"},
    "HealthCheckResponse": {"status": "1 ServingStatus"},
}

ENUMS: Final[dict[str, dict[str, int]]] = {
    "ControlKind": {
        "CONTROL_SEQUENCE_START": 0,
        "CONTROL_SEQUENCE_READY": 1,
        "CONTROL_SEQUENCE_END": 2,
        "CONTROL_SEQUENCE_CORRID": 3,
    },
    "Format": {"FORMAT_NONE": 0, "FORMAT_NHWC": 1, "FORMAT_NCHW": 2},
    "DataType": {
        f"TYPE_{name}": number
        for number, name in enumerate(
            [
                "INVALID",
                "BOOL",
                "UINT8",
                "UINT16",
                "UINT32",
                "UINT64",
                "INT8",
                "INT16",
                "INT32",
                "INT64",
                "FP16",
                "FP32",
                "FP64",
                "STRING",
                "BF16",
            ]
        )
    },
    "InstanceKind": {"KIND_AUTO": 0, "KIND_GPU": 1, "KIND_CPU": 2, "KIND_MODEL": 3},
    "TimeoutAction": {"REJECT": 0, "DELAY": 1},
    "ServingStatus": {"UNKNOWN": 0, "SERVING": 1, "NOT_SERVING": 2, "SERVICE_UNKNOWN": 3},
}

_FIELD: Final[Any] = descriptor_pb2.FieldDescriptorProto
_PLAIN: Final[dict[str, int]] = {
    name: getattr(_FIELD, f"TYPE_{name.upper()}")
    for name in ("bool", "int32", "int64", "uint32", "uint64", "float", "double", "string", "bytes")
}


@cache
def message(name: str) -> Any:
    """The class of the messages of that name."""
    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{PACKAGE}.{name}"))


@cache
def _pool() -> Any:
    """A pool of all messages."""
    file = descriptor_pb2.FileDescriptorProto(name="tract_serve/open_inference.proto", package=PACKAGE, syntax="proto3")
    for name, values in ENUMS.items():
        made = file.enum_type.add(name=name)
        for value, number in values.items():
            made.value.add(name=value, number=number)
    for name, fields in MESSAGES.items():
        _add(file.message_type.add(name=name), fields)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)  # pyright: ignore[reportUnknownMemberType]: its stub has no type for the argument
    return pool


def _add(made: Any, fields: dict[str, str]) -> None:
    """The fields of a message."""
    for name, told in fields.items():
        number, kind = told.split(" ", 1)
        oneof, _, kind = kind.rpartition(":")
        field = made.field.add(name=name, number=int(number), label=_FIELD.LABEL_OPTIONAL)
        if kind[0] in "[{":
            field.label = _FIELD.LABEL_REPEATED
        if kind[0] == "{":
            kind = _add_map(made, name, kind[1:-1])
        _set_type(field, kind.strip("[]"))
        if oneof:
            names = [one.name for one in made.oneof_decl]
            if oneof not in names:
                made.oneof_decl.add(name=oneof)
                names.append(oneof)
            field.oneof_index = names.index(oneof)


def _add_map(made: Any, name: str, kinds: str) -> str:
    """A map: an entry with a key and a value. Returns its type."""
    entry = made.nested_type.add(name="".join(part.capitalize() for part in name.split("_")) + "Entry")
    entry.options.map_entry = True
    for number, (part, kind) in enumerate(zip(("key", "value"), kinds.split(), strict=True), 1):
        _set_type(entry.field.add(name=part, number=number, label=_FIELD.LABEL_OPTIONAL), kind)
    return f"{made.name}.{entry.name}"


def _set_type(field: Any, kind: str) -> None:
    if kind in _PLAIN:
        field.type = _PLAIN[kind]
        return
    field.type = _FIELD.TYPE_ENUM if kind in ENUMS else _FIELD.TYPE_MESSAGE
    field.type_name = f".{PACKAGE}.{kind}"


def plain(made: Any) -> dict[str, Any]:
    """A message as JSON has it: numbers are numbers, and what is not there has the value that stands for it.

    protobuf's own JSON writes numbers of 64 bits as texts, which clients of this protocol do not read.
    """
    found: dict[str, Any] = {}
    for field in made.DESCRIPTOR.fields:
        value = getattr(made, field.name)
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            found[field.name] = {key: _plain_value(field.message_type.fields[1], value[key]) for key in value}
        elif not isinstance(value, (bool, int, float, str, bytes)) and not hasattr(value, "DESCRIPTOR"):
            found[field.name] = [_plain_value(field, one) for one in value]
        elif not field.has_presence or made.HasField(field.name):
            found[field.name] = _plain_value(field, value)
    return found


def _plain_value(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return plain(value)
    return field.enum_type.values_by_number[value].name if field.enum_type is not None else value
