"""Our table of messages beside the modules that Triton's client was generated with: the same numbers and types."""

from __future__ import annotations

from typing import Any

import pytest
from tract_serve.messages import ENUMS, MESSAGES, message, plain
from tritonclient.grpc import model_config_pb2, service_pb2

THEIRS = {**service_pb2.DESCRIPTOR.message_types_by_name, **model_config_pb2.DESCRIPTOR.message_types_by_name}
NESTED = {
    "TensorMetadata": "ModelMetadataResponse.TensorMetadata",
    "InferInputTensor": "ModelInferRequest.InferInputTensor",
    "InferRequestedOutputTensor": "ModelInferRequest.InferRequestedOutputTensor",
    "InferOutputTensor": "ModelInferResponse.InferOutputTensor",
    "ModelIndex": "RepositoryIndexResponse.ModelIndex",
    "SystemRegion": "SystemSharedMemoryStatusResponse.RegionStatus",
    "CudaRegion": "CudaSharedMemoryStatusResponse.RegionStatus",
    "TraceValue": "TraceSettingResponse.SettingValue",
    "LogValue": "LogSettingsResponse.SettingValue",
    "Latest": "ModelVersionPolicy.Latest",
    "Specific": "ModelVersionPolicy.Specific",
    "InitialState": "ModelSequenceBatching.InitialState",
    "SequenceState": "ModelSequenceBatching.State",
    "Control": "ModelSequenceBatching.Control",
    "ControlInput": "ModelSequenceBatching.ControlInput",
    "WarmupInput": "ModelWarmup.Input",
    "RegionRequest": "SystemSharedMemoryStatusRequest",
    "RepositoryModelRequest": "RepositoryModelLoadRequest",
}
"""What is called otherwise here."""
OURS = ("Nothing", "All", "HealthCheckRequest", "HealthCheckResponse", "RepositoryModelResponse")


def theirs(name: str) -> Any:
    outer, _, inner = NESTED.get(name, name).partition(".")
    found = THEIRS[outer]
    return found.nested_types_by_name[inner] if inner else found


@pytest.mark.parametrize("name", [name for name in MESSAGES if name not in OURS])
def test_fields_have_the_numbers_and_types_that_clients_know(name: str) -> None:
    known = theirs(name).fields_by_name
    for field in message(name).DESCRIPTOR.fields:
        assert field.name in known, f"{name} has no {field.name}"
        there = known[field.name]
        assert (field.number, field.type, field.is_repeated) == (there.number, there.type, there.is_repeated)


def test_types_of_elements_have_the_numbers_that_clients_know() -> None:
    assert ENUMS["DataType"] == dict(model_config_pb2.DataType.items())
    assert ENUMS["Format"] == dict(model_config_pb2.ModelInput.Format.items())
    assert ENUMS["ControlKind"] == dict(model_config_pb2.ModelSequenceBatching.Control.Kind.items())


def test_a_message_as_json() -> None:
    made: Any = message("ModelConfig")(name="m", max_batch_size=2)
    made.input.add(name="x", data_type=11, dims=[1 << 40])
    made.parameters["threads"].string_value = "2"
    told = plain(made)
    assert told["input"][0]["dims"] == [1 << 40]
    assert told["input"][0]["data_type"] == "TYPE_FP32"
    assert told["parameters"] == {"threads": {"string_value": "2"}}
    assert "dynamic_batching" not in told
    assert told["output"] == []
