"""Every call of the protocol over gRPC, by the client that Triton's users have, and by plain messages."""

from __future__ import annotations

import asyncio
import os
import queue
import time
from collections.abc import Iterator
from typing import Any

import grpc
import numpy as np
import pytest
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio
from protocol import KINDS, SHAPES, repository, same, values
from servers import Running, serving
from tritonclient.grpc import service_pb2, service_pb2_grpc
from tritonclient.utils import InferenceServerException
from tritonclient.utils import shared_memory as shm


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(repository(tmp_path_factory.mktemp("models"))) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Running) -> Iterator[Any]:
    with triton.InferenceServerClient(server.grpc) as made:
        yield made


@pytest.fixture(scope="module")
def stub(server: Running) -> Iterator[Any]:
    with grpc.insecure_channel(server.grpc) as channel:
        yield service_pb2_grpc.GRPCInferenceServiceStub(channel)


def put_in(name: str, datatype: str, array: Any) -> Any:
    made = triton.InferInput(name, list(array.shape), datatype)
    made.set_data_from_numpy(array)
    return made


def test_the_server_says_what_it_is(server: Running, client: Any) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    told = client.get_server_metadata(as_json=True)
    assert told["name"] == "tract"
    assert {"system_shared_memory", "model_repository", "statistics"} <= set(told["extensions"])


@pytest.mark.parametrize(
    ("service", "status"), [("", 1), ("inference.GRPCInferenceService", 1), ("two", 1), ("none", 2)]
)
def test_the_health_service_of_grpc(server: Running, service: str, status: int) -> None:
    with grpc.insecure_channel(server.grpc) as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        assert check(b"\x0a" + bytes([len(service)]) + service.encode()) == bytes([8, status])


def test_a_model_says_what_it_takes(client: Any) -> None:
    assert client.is_model_ready("two")
    assert client.is_model_ready("two", "3")
    assert not client.is_model_ready("two", "2")
    assert not client.is_model_ready("none")
    told = client.get_model_metadata("two")
    assert list(told.versions) == ["1", "3"]
    assert [(one.name, one.datatype, list(one.shape)) for one in told.inputs] == [
        ("a", "FP32", [-1, 4]),
        ("b", "FP32", [-1, 4]),
    ]
    assert [one.name for one in told.outputs] == ["sum", "difference"]
    with pytest.raises(InferenceServerException, match="did you mean 'two'") as caught:
        client.get_model_metadata("tow")
    assert caught.value.status() == "StatusCode.NOT_FOUND"


def test_the_configuration(client: Any) -> None:
    told = client.get_model_config("ranked").config
    assert (told.name, told.max_batch_size, told.dynamic_batching.priority_levels) == ("ranked", 8, 3)
    assert list(told.input[0].dims) == [4]
    assert client.get_model_config("any_BF16").config.input[0].data_type == 14


def test_statistics_count(client: Any) -> None:
    array = np.ones((3, 4), np.float32)
    for version in ("1", "3", "3"):
        client.infer("two", [put_in("a", "FP32", array), put_in("b", "FP32", array)], model_version=version)
    told = client.get_inference_statistics("two").model_stats
    assert [one.version for one in told] == ["1", "3"]
    assert told[1].inference_stats.success.count >= 2
    assert told[1].inference_count >= 6
    assert [one.version for one in client.get_inference_statistics("two", "3").model_stats] == ["3"]
    assert len(client.get_inference_statistics().model_stats) > len(KINDS)


@pytest.mark.parametrize("datatype", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_element_type_as_bytes(client: Any, datatype: str, shape: tuple[int, ...]) -> None:
    array = values(datatype, shape)
    answer = client.infer(f"any_{datatype}", [put_in("x", datatype, array)])
    same(answer.as_numpy("y"), array)
    told = answer.get_output("y")
    assert (told.datatype, list(told.shape)) == (datatype, list(shape))


CONTENTS = {
    "BOOL": "bool_contents",
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
    "INT64": "int64_contents",
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}


def typed(datatype: str, shape: tuple[int, ...], elements: list[Any], model: str = "any_") -> Any:
    asked = service_pb2.ModelInferRequest(model_name=f"{model}{datatype}")
    contents = service_pb2.InferTensorContents(**{CONTENTS[datatype]: elements})
    asked.inputs.add(name="x", datatype=datatype, shape=shape, contents=contents)
    return asked


@pytest.mark.parametrize("datatype", CONTENTS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_element_type_as_typed_contents(stub: Any, datatype: str, shape: tuple[int, ...]) -> None:
    array = values(datatype, shape)
    answer = stub.ModelInfer(typed(datatype, shape, array.reshape(-1).tolist()))
    if datatype == "BYTES":
        wanted = b"".join(len(one).to_bytes(4, "little") + one for one in array.reshape(-1))
    else:
        wanted = array.tobytes()
    assert answer.raw_output_contents[0] == wanted
    assert not answer.outputs[0].HasField("contents")


def test_tensors_without_axes(client: Any, stub: Any) -> None:
    array = np.array(7, np.int64)
    same(client.infer("scalar_INT64", [put_in("x", "INT64", array)]).as_numpy("y"), array)
    same(
        client.infer("scalar_BYTES", [put_in("x", "BYTES", np.array(b"\xff", object))]).as_numpy("y").reshape(1),
        np.array([b"\xff"], object),
    )
    assert stub.ModelInfer(typed("FP32", (), [1.5], "scalar_")).raw_output_contents[0] == np.float32(1.5).tobytes()


@pytest.mark.parametrize(
    ("datatype", "elements", "problem"),
    [
        ("INT8", [1, 2, 128], "outside -128 to 127"),
        ("UINT16", [1, 2, 1 << 16], "outside 0 to 65535"),
        ("FP32", [1.0, 2.0], "has 2 elements, wanted 3"),
    ],
)
def test_typed_contents_that_do_not_fit(stub: Any, datatype: str, elements: list[Any], problem: str) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        stub.ModelInfer(typed(datatype, (1, 3), elements))
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert problem in caught.value.details()


def test_typed_contents_of_another_type(stub: Any) -> None:
    asked = typed("FP32", (1, 3), [1.0, 2.0, 3.0])
    asked.inputs[0].contents.int_contents.append(1)
    with pytest.raises(grpc.RpcError, match="it comes in int_contents, wanted fp32_contents"):
        stub.ModelInfer(asked)
    asked = service_pb2.ModelInferRequest(model_name="any_FP16")
    asked.inputs.add(name="x", datatype="FP16", shape=[1, 1]).contents.fp32_contents.append(1)
    with pytest.raises(grpc.RpcError, match="wanted raw_input_contents"):
        stub.ModelInfer(asked)


def test_ids_outputs_and_versions(client: Any) -> None:
    a, b = np.full((2, 4), 3, np.float32), np.ones((2, 4), np.float32)
    given = [put_in("a", "FP32", a), put_in("b", "FP32", b)]
    answer = client.infer("two", given, request_id="42", model_version="1")
    told = answer.get_response()
    assert (told.id, told.model_name, told.model_version) == ("42", "two", "1")
    same(answer.as_numpy("sum"), a + b)
    same(answer.as_numpy("difference"), a - b)
    answer = client.infer("two", given, outputs=[triton.InferRequestedOutput("difference")])
    assert answer.get_response().model_version == "3"
    assert [one.name for one in answer.get_response().outputs] == ["difference"]
    same(answer.as_numpy("difference"), a - b)
    with pytest.raises(InferenceServerException, match="versions: 1, 3"):
        client.infer("two", given, model_version="2")
    with pytest.raises(InferenceServerException, match="there is no output 'none'"):
        client.infer("two", given, outputs=[triton.InferRequestedOutput("none")])


def test_classification_priority_timeout_and_parameters(client: Any) -> None:
    array = np.array([[1, 5, 10, 5]], np.float32)
    given = [put_in("x", "FP32", array)]
    answer = client.infer("row", given, outputs=[triton.InferRequestedOutput("y", class_count=2)])
    assert answer.as_numpy("y").tolist() == [[b"10.000000:2", b"5.000000:1"]]
    for priority in (0, 1, 3):
        answer = client.infer(
            "ranked", given, priority=priority, timeout=5_000_000, parameters={"mine": 3.5, "b": True}
        )
        same(answer.as_numpy("y"), array)


@pytest.mark.parametrize("algorithm", ["gzip", "deflate", "none"])
def test_compression(client: Any, algorithm: str) -> None:
    array = np.zeros((1000, 4), np.float32)
    same(client.infer("row", [put_in("x", "FP32", array)], compression_algorithm=algorithm).as_numpy("y"), array)


def test_a_call_ends_when_its_client_says(client: Any) -> None:
    array = np.zeros((1, 4), np.float32)
    long = [put_in("x", "FP32", array), put_in("turns", "INT64", np.array(4_000_000))]
    with pytest.raises(InferenceServerException) as caught:
        client.infer("slow", long, client_timeout=0.02)
    assert caught.value.status() == "StatusCode.DEADLINE_EXCEEDED"
    short = [put_in("x", "FP32", array), put_in("turns", "INT64", np.array(1))]
    with pytest.raises(InferenceServerException, match=r"it waited for 0\.02 seconds") as caught:
        client.infer("slow", short, timeout=20_000)
    assert caught.value.status() == "StatusCode.DEADLINE_EXCEEDED"
    assert client.infer("slow", short).as_numpy("y").shape == (1, 4)


def test_calls_by_threads_are_answered_and_cancelled(client: Any) -> None:
    answers: queue.Queue[Any] = queue.Queue()
    arrays = [np.full((1, 4), number, np.float32) for number in range(40)]
    for array in arrays:
        client.async_infer(
            "row",
            [put_in("x", "FP32", array)],
            lambda result, error: answers.put((result, error)),
            request_id=str(array[0, 0]),
        )
    for _ in arrays:
        result, error = answers.get(timeout=20)
        assert error is None
        same(result.as_numpy("y"), np.full((1, 4), float(result.get_response().id), np.float32))
    long = [put_in("x", "FP32", arrays[0]), put_in("turns", "INT64", np.array(2_000_000))]
    call = client.async_infer("slow", long, lambda result, error: answers.put((result, error)))
    call.cancel()
    assert "CANCELLED" in str(answers.get(timeout=20)[1])


def test_a_stream_answers_in_order(client: Any) -> None:
    answers: queue.Queue[Any] = queue.Queue()
    client.start_stream(lambda result, error: answers.put((result, error)))
    arrays = [np.full((1, 4), number, np.float32) for number in range(30)]
    for number, array in enumerate(arrays):
        client.async_stream_infer(
            "row" if number % 10 != 5 else "none", [put_in("x", "FP32", array)], request_id=str(number)
        )
    for number, array in enumerate(arrays):
        result, error = answers.get(timeout=20)
        if number % 10 == 5:
            assert "there is no model 'none'" in str(error)
            continue
        assert error is None
        told = result.get_response()
        assert told.id == str(number)
        assert told.parameters["triton_final_response"].bool_param
        same(result.as_numpy("y"), array)
    client.stop_stream()


def test_models_are_listed_loaded_and_unloaded(client: Any, stub: Any) -> None:
    told = {(one.name, one.version): one.state for one in client.get_model_repository_index().models}
    assert told["two", "3"] == "READY"
    client.unload_model("row")
    assert not client.is_model_ready("row")
    index = stub.RepositoryIndex(service_pb2.RepositoryIndexRequest(ready=True))
    assert "row" not in [one.name for one in index.models]
    with pytest.raises(InferenceServerException, match="unloaded") as caught:
        client.infer("row", [put_in("x", "FP32", np.ones((1, 4), np.float32))])
    assert caught.value.status() == "StatusCode.UNAVAILABLE"
    client.load_model("row", config='{"max_batch_size": 5}')
    assert client.get_model_config("row").config.max_batch_size == 5
    client.load_model("row")
    with pytest.raises(InferenceServerException, match="no model 'none'"):
        client.load_model("none")
    # As KServe's clients write it, whose message has the name in the first field.
    stub.RepositoryModelUnload(service_pb2.RepositoryModelUnloadRequest(repository_name="row"))
    assert not client.is_model_ready("row")
    stub.RepositoryModelLoad(service_pb2.RepositoryModelLoadRequest(repository_name="row"))
    assert client.is_model_ready("row")
    with pytest.raises(grpc.RpcError, match="there is no repository 'mine'"):
        stub.RepositoryModelLoad(service_pb2.RepositoryModelLoadRequest(repository_name="mine", model_name="row"))


def test_tensors_in_shared_memory(client: Any) -> None:
    key = f"/tract-serve-{os.getpid()}-{time.monotonic_ns()}"
    handle = shm.create_shared_memory_region("theirs", key, 256)
    try:
        a, b = np.arange(8, dtype=np.float32).reshape(2, 4), np.full((2, 4), 2, np.float32)
        shm.set_shared_memory_region(handle, [a, b])
        client.register_system_shared_memory("both", key, 200, offset=0)
        told = client.get_system_shared_memory_status().regions["both"]
        assert (told.name, told.key, told.offset, told.byte_size) == ("both", key, 0, 200)
        given = [triton.InferInput(name, [2, 4], "FP32") for name in "ab"]
        given[0].set_shared_memory("both", 32)
        given[1].set_data_from_numpy(b)
        outputs = [triton.InferRequestedOutput(name) for name in ("sum", "difference")]
        outputs[0].set_shared_memory("both", 64, offset=64)
        answer = client.infer("two", given, outputs=outputs)
        assert answer.get_output("sum").parameters["shared_memory_byte_size"].int64_param == 32
        same(shm.get_contents_as_numpy(handle, np.float32, [2, 4], 64), a + b)
        same(answer.as_numpy("difference"), a - b)
        with pytest.raises(InferenceServerException, match="registered already"):
            client.register_system_shared_memory("both", key, 256)
        client.unregister_system_shared_memory("both")
        client.unregister_system_shared_memory("both")
        with pytest.raises(InferenceServerException, match="no region 'both'") as caught:
            client.infer("two", given)
        assert caught.value.status() == "StatusCode.NOT_FOUND"
        client.unregister_system_shared_memory()
        assert not client.get_system_shared_memory_status().regions
    finally:
        shm.destroy_shared_memory_region(handle)


def test_memory_of_devices_is_refused(client: Any) -> None:
    assert not client.get_cuda_shared_memory_status().regions
    with pytest.raises(InferenceServerException, match="use system shared memory"):
        client.register_cuda_shared_memory("mine", b"eA==", 0, 4)
    client.unregister_cuda_shared_memory()


def test_settings_of_traces_and_logs(client: Any) -> None:
    assert list(client.get_trace_settings().settings["trace_level"].value) == ["OFF"]
    told = client.update_trace_settings(settings={"trace_rate": "100"})
    assert list(told.settings["trace_rate"].value) == ["100"]
    told = client.update_trace_settings("two", {"trace_level": ["OFF"]})
    assert list(told.settings["trace_rate"].value) == ["0"]
    with pytest.raises(InferenceServerException, match="wanted a number"):
        client.update_trace_settings(settings={"trace_rate": "often"})
    assert client.get_log_settings().settings["log_error"].bool_param
    told = client.update_log_settings({"log_verbose_level": 1})
    assert told.settings["log_verbose_level"].uint32_param == 1
    told = client.update_log_settings({"log_verbose_level": 0, "log_info": True})
    assert told.settings["log_info"].bool_param
    with pytest.raises(InferenceServerException, match="cannot be set"):
        client.update_log_settings({"log_file": "/x"})


def test_the_client_of_asyncio(server: Running) -> None:
    arrays = [np.full((1, 4), number, np.float32) for number in range(20)]

    async def asked() -> Any:
        for number, array in enumerate(arrays):
            yield {"model_name": "row", "inputs": [put_in("x", "FP32", array)], "request_id": str(number)}

    async def all_of_them() -> None:
        async with triton_aio.InferenceServerClient(server.grpc) as made:
            assert await made.is_server_live()
            assert await made.is_server_ready()
            assert await made.is_model_ready("row")
            assert (await made.get_server_metadata()).name == "tract"
            assert (await made.get_model_metadata("row")).name == "row"
            assert (await made.get_model_config("row")).config.name == "row"
            assert (await made.get_model_repository_index()).models
            assert (await made.get_inference_statistics("row")).model_stats
            assert not (await made.get_system_shared_memory_status()).regions
            answers = await asyncio.gather(*[made.infer("row", [put_in("x", "FP32", array)]) for array in arrays])
            for answer, array in zip(answers, arrays, strict=True):
                same(answer.as_numpy("y"), array)
            with pytest.raises(InferenceServerException):
                await made.infer("none", [put_in("x", "FP32", arrays[0])])
            number = 0
            async for result, error in made.stream_infer(asked()):
                assert error is None
                same(result.as_numpy("y"), arrays[number])
                number += 1
            assert number == len(arrays)

    asyncio.run(all_of_them())
