"""Every call of the protocol over HTTP, by the client that Triton's users have, and by plain requests."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import json
import os
import time
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tritonclient.http as triton
import tritonclient.http.aio as triton_aio
from protocol import KINDS, SHAPES, repository, same, values
from servers import Running, serving
from tritonclient.utils import InferenceServerException
from tritonclient.utils import shared_memory as shm


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(repository(tmp_path_factory.mktemp("models"))) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Running) -> Iterator[Any]:
    with triton.InferenceServerClient(server.http, concurrency=4) as made:
        yield made


def put_in(name: str, datatype: str, array: Any, *, binary: bool = True) -> Any:
    made = triton.InferInput(name, list(array.shape), datatype)
    made.set_data_from_numpy(array, binary_data=binary)
    return made


def ask(server: Running, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, Any, Any]:
    """Status, headers and body of a plain request."""
    connection = http.client.HTTPConnection(server.http, timeout=20)
    try:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


def infer(server: Running, model: str, asked: dict[str, Any], path: str = "infer", **headers: str) -> tuple[int, Any]:
    status, _, body = ask(server, "POST", f"/v2/models/{model}/{path}", json.dumps(asked).encode(), **headers)
    return status, json.loads(body)


def test_the_server_says_what_it_is(server: Running, client: Any) -> None:
    assert client.is_server_live()
    assert client.is_server_ready()
    told = client.get_server_metadata()
    assert told["name"] == "tract"
    assert {"binary_tensor_data", "system_shared_memory", "model_repository", "statistics"} <= set(told["extensions"])
    assert json.loads(ask(server, "GET", "/v2/health/live")[2]) == {"live": True}
    assert json.loads(ask(server, "GET", "/v2/health/ready")[2]) == {"ready": True, "live": True}
    assert ask(server, "GET", "/v2")[2] == ask(server, "GET", "/v2/")[2]
    assert "two" in json.loads(ask(server, "GET", "/v2/models")[2])["models"]


def test_a_model_says_what_it_takes(server: Running, client: Any) -> None:
    assert client.is_model_ready("two")
    assert client.is_model_ready("two", "3")
    assert not client.is_model_ready("two", "2")
    assert not client.is_model_ready("none")
    assert json.loads(ask(server, "GET", "/v2/models/two/ready")[2]) == {"name": "two", "ready": True}
    told = client.get_model_metadata("two")
    assert told["versions"] == ["1", "3"]
    assert told["inputs"] == [{"name": name, "datatype": "FP32", "shape": [-1, 4]} for name in "ab"]
    assert [one["name"] for one in told["outputs"]] == ["sum", "difference"]
    assert client.get_model_metadata("scalar_BYTES")["inputs"] == [{"name": "x", "datatype": "BYTES", "shape": []}]
    with pytest.raises(InferenceServerException, match="there is no model 'tow'") as caught:
        client.get_model_metadata("tow")
    assert "did you mean 'two'?" in str(caught.value)
    assert caught.value.status() == "404"


def test_the_configuration_has_numbers(client: Any) -> None:
    told = client.get_model_config("two")
    assert told["name"] == "two"
    assert told["max_batch_size"] == 32
    assert told["input"][0]["dims"] == [4]
    assert told["input"][0]["data_type"] == "TYPE_FP32"
    assert told["version_policy"] == {"all": {}}
    assert client.get_model_config("any_BYTES")["output"][0]["data_type"] == "TYPE_STRING"


def test_statistics_count_and_are_numbers(client: Any) -> None:
    array = np.ones((3, 4), np.float32)
    for version in ("1", "3", "3"):
        client.infer("two", [put_in("a", "FP32", array), put_in("b", "FP32", array)], model_version=version)
    told = client.get_inference_statistics("two")["model_stats"]
    assert [one["version"] for one in told] == ["1", "3"]
    assert told[1]["inference_stats"]["success"]["count"] >= 2
    assert told[1]["inference_count"] >= 6
    assert told[1]["inference_stats"]["cache_hit"] == {"count": 0, "ns": 0}
    assert told[1]["last_inference"] > 1_600_000_000_000
    assert {one["version"] for one in client.get_inference_statistics("two", "3")["model_stats"]} == {"3"}
    assert len(client.get_inference_statistics()["model_stats"]) > len(KINDS)
    with pytest.raises(InferenceServerException, match="no model"):
        client.get_inference_statistics("none")


@pytest.mark.parametrize("datatype", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_element_type_as_bytes(client: Any, datatype: str, shape: tuple[int, ...]) -> None:
    array = values(datatype, shape)
    answer = client.infer(
        f"any_{datatype}",
        [put_in("x", datatype, array)],
        outputs=[triton.InferRequestedOutput("y", binary_data=True)],
    )
    same(answer.as_numpy("y"), array)
    told = answer.get_output("y")
    assert (told["datatype"], told["shape"]) == (datatype, list(shape))


@pytest.mark.parametrize("datatype", KINDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("nested", [False, True])
def test_every_element_type_as_json(server: Running, datatype: str, shape: tuple[int, ...], nested: bool) -> None:
    array = values(datatype, shape)
    if datatype == "BYTES":
        array[:] = "größer €😀\n\x00"
    data = array.astype(np.float64).tolist() if KINDS[datatype][1] is KINDS["BF16"][1] else array.tolist()
    flat = data if nested else [one for row in data for one in row]
    asked = {"inputs": [{"name": "x", "datatype": datatype, "shape": list(shape), "data": flat}]}
    status, told = infer(server, f"any_{datatype}", asked)
    assert (status, told.get("error")) == (200, None)
    output = told["outputs"][0]
    assert (output["datatype"], output["shape"]) == (datatype, list(shape))
    found = np.array(output["data"], array.dtype)
    same(found.reshape(shape), array)


@pytest.mark.parametrize("datatype", ["FP32", "INT64", "BYTES"])
@pytest.mark.parametrize("binary", [True, False])
def test_tensors_without_axes(client: Any, datatype: str, binary: bool) -> None:
    array = np.array("a text", object) if datatype == "BYTES" else np.array(7, KINDS[datatype][1])
    output = triton.InferRequestedOutput("y", binary_data=binary)
    answer = client.infer(f"scalar_{datatype}", [put_in("x", datatype, array, binary=binary)], outputs=[output])
    assert answer.get_output("y")["shape"] == []
    found = answer.as_numpy("y")
    assert found.shape == ()
    assert found == (b"a text" if datatype == "BYTES" and binary else array)


def test_texts_that_are_no_unicode_come_as_bytes_alone(server: Running, client: Any) -> None:
    array = np.array([[b"\xff"]], object)
    with pytest.raises(InferenceServerException, match="ask for binary_data"):
        client.infer(
            "any_BYTES", [put_in("x", "BYTES", array)], outputs=[triton.InferRequestedOutput("y", binary_data=False)]
        )


def test_numbers_that_are_none_and_text_in_one_request(server: Running) -> None:
    body = b'{"id":"n\\u00e4h","inputs":[{"name":"x","datatype":"FP32","shape":[1,3],"data":[NaN,-Infinity,1e400]}]}'
    status, _, answer = ask(server, "POST", "/v2/models/any_FP32/infer", body)
    told = json.loads(answer)
    assert status == 200
    assert told["id"] == "näh"
    assert np.isnan(told["outputs"][0]["data"][0])
    assert told["outputs"][0]["data"][1:] == [-np.inf, np.inf]


def test_ids_outputs_and_versions(client: Any) -> None:
    a, b = np.full((2, 4), 3, np.float32), np.ones((2, 4), np.float32)
    given = [put_in("a", "FP32", a), put_in("b", "FP32", b, binary=False)]
    answer = client.infer("two", given, request_id="42", model_version="1")
    told = answer.get_response()
    assert (told["id"], told["model_name"], told["model_version"]) == ("42", "two", "1")
    same(answer.as_numpy("sum"), a + b)
    same(answer.as_numpy("difference"), a - b)
    answer = client.infer("two", given, outputs=[triton.InferRequestedOutput("difference", binary_data=False)])
    told = answer.get_response()
    assert told["model_version"] == "3"
    assert "id" not in told
    assert [one["name"] for one in told["outputs"]] == ["difference"]
    assert told["outputs"][0]["data"] == [2.0] * 8
    with pytest.raises(InferenceServerException, match="versions: 1, 3"):
        client.infer("two", given, model_version="2")
    with pytest.raises(InferenceServerException, match="there is no output 'none'; outputs: sum, difference"):
        client.infer("two", given, outputs=[triton.InferRequestedOutput("none")])


def test_classification(client: Any) -> None:
    array = np.array([[1, 5, 10, 5], [np.nan, -1, np.inf, -2]], np.float32)
    asked = [triton.InferRequestedOutput("y", class_count=3, binary_data=one) for one in (True, False)]
    for output in asked:
        answer = client.infer("row", [put_in("x", "FP32", array)], outputs=[output])
        found = [[one if isinstance(one, str) else one.decode() for one in row] for row in answer.as_numpy("y")]
        assert found == [["10.000000:2", "5.000000:1", "5.000000:3"], ["inf:2", "-1.000000:1", "-2.000000:3"]]
        assert answer.get_output("y")["datatype"] == "BYTES"
    whole = np.array([[-128, 127, 127]], np.int8)
    answer = client.infer(
        "any_INT8", [put_in("x", "INT8", whole)], outputs=[triton.InferRequestedOutput("y", class_count=9)]
    )
    assert answer.as_numpy("y").tolist() == [[b"127:1", b"127:2", b"-128:0"]]


def test_priority_timeout_and_other_parameters(server: Running, client: Any) -> None:
    array = np.ones((1, 4), np.float32)
    given = [put_in("x", "FP32", array)]
    for priority in (0, 1, 3):
        answer = client.infer("ranked", given, priority=priority, timeout=5_000_000, parameters={"mine": "value"})
        same(answer.as_numpy("y"), array)
    asked = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]}
    status, told = infer(server, "row", asked | {"parameters": {"priority": "high"}})
    assert (status, "wanted a number from 0 on" in told["error"]) == (400, True)
    client.infer("row", given, timeout=5_000_000, headers={"x-mine": "1"}, query_params={"a": "b"})


def test_a_request_that_waits_too_long_is_told(server: Running, client: Any) -> None:
    array = np.zeros((1, 4), np.float32)
    long = [put_in("x", "FP32", array), put_in("turns", "INT64", np.array(6_000_000))]
    running = client.async_infer("slow", long)
    waiting = client.async_infer("slow", [long[0], put_in("turns", "INT64", np.array(1))], timeout=20_000)
    with pytest.raises(InferenceServerException, match=r"it waited for 0\.02 seconds") as caught:
        waiting.get_result()
    assert caught.value.status() == "504"
    assert running.get_result().as_numpy("y").shape == (1, 4)


@pytest.mark.parametrize("sent", [None, "gzip", "deflate"])
@pytest.mark.parametrize("taken", [None, "gzip", "deflate"])
@pytest.mark.parametrize("binary", [True, False])
def test_compression_both_ways(client: Any, sent: str | None, taken: str | None, binary: bool) -> None:
    array = np.arange(4000, dtype=np.float32).reshape(1000, 4)
    answer = client.infer(
        "row",
        [put_in("x", "FP32", array, binary=binary)],
        outputs=[triton.InferRequestedOutput("y", binary_data=binary)],
        request_compression_algorithm=sent,
        response_compression_algorithm=taken,
    )
    same(answer.as_numpy("y"), array)


def test_what_is_compressed_is_said(server: Running) -> None:
    asked = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1000, 4], "data": [1.5] * 4000}]}
    body = gzip.compress(json.dumps(asked).encode())
    status, headers, answer = ask(
        server, "POST", "/v2/models/row/infer", body, Content_Encoding="gzip", Accept_Encoding="deflate;q=0, gzip;q=0.5"
    )
    assert (status, headers["content-encoding"], headers["content-type"]) == (200, "gzip", "application/json")
    asked["parameters"] = {"binary_data_output": True}
    body_of_bytes = json.dumps(asked).encode()
    assert (
        "content-encoding"
        not in ask(server, "POST", "/v2/models/row/infer", body_of_bytes, Accept_Encoding="gzip, deflate")[1]
    )
    asked.pop("parameters")
    assert json.loads(gzip.decompress(answer))["outputs"][0]["data"] == [1.5] * 4000
    plain = ask(
        server, "POST", "/v2/models/row/infer", zlib.compress(json.dumps(asked).encode()), Content_Encoding="deflate"
    )
    assert "content-encoding" not in plain[1]
    assert json.loads(plain[2])["outputs"][0]["data"] == [1.5] * 4000


def test_bodies_that_the_client_builds_and_reads_apart(client: Any, server: Running) -> None:
    array = np.arange(8, dtype=np.float32).reshape(2, 4)
    body, length = triton.InferenceServerClient.generate_request_body([put_in("x", "FP32", array)], request_id="own")
    headers = {"Inference_Header_Content_Length": str(length)} if length is not None else {}
    status, told, answer = ask(server, "POST", "/v2/models/row/infer", body, **headers)
    assert status == 200
    read = triton.InferenceServerClient.parse_response_body(
        answer, header_length=int(told["Inference-Header-Content-Length"])
    )
    same(read.as_numpy("y"), array)
    assert read.get_response()["id"] == "own"


def test_bytes_without_json(server: Running) -> None:
    array = np.arange(8, dtype=np.float32).reshape(2, 4)
    status, headers, answer = ask(
        server, "POST", "/v2/models/row/infer", array.tobytes(), Inference_Header_Content_Length="0"
    )
    length = int(headers["inference-header-content-length"])
    assert status == 200
    assert json.loads(answer[:length])["outputs"][0]["shape"] == [2, 4]
    assert answer[length:] == array.tobytes()
    status, _, answer = ask(server, "POST", "/v2/models/row/infer", b"odd", Inference_Header_Content_Length="0")
    assert (status, b"3 bytes came" in answer) == (400, True)
    status, _, answer = ask(
        server, "POST", "/v2/models/any_FP32/infer", array.tobytes(), Inference_Header_Content_Length="0"
    )
    assert (status, b"no more than one may be any" in answer) == (400, True)


def test_a_plugin_of_the_client_changes_headers(server: Running) -> None:
    class Plugin(triton.InferenceServerClientPlugin):
        def __call__(self, request: Any) -> None:
            request.headers["x-plugin"] = "1"

    with triton.InferenceServerClient(server.http) as made:
        made.register_plugin(Plugin())
        assert made.is_server_live()
        assert made.plugin() is not None
        made.unregister_plugin()


def test_models_are_listed_loaded_and_unloaded(server: Running, client: Any) -> None:
    told = client.get_model_repository_index()
    assert {"name": "two", "version": "3", "state": "READY", "reason": ""} in told
    client.unload_model("row")
    assert not client.is_model_ready("row")
    listed = [one for one in client.get_model_repository_index() if one["name"] == "row"]
    assert [(one["state"], one["reason"].split()[0]) for one in listed] == [("UNAVAILABLE", "unloaded")]
    assert "row" not in [
        one["name"] for one in json.loads(ask(server, "POST", "/v2/repository/index", b'{"ready":true}')[2])
    ]
    with pytest.raises(InferenceServerException, match="unloaded") as caught:
        client.infer("row", [put_in("x", "FP32", np.ones((1, 4), np.float32))])
    assert caught.value.status() == "503"
    client.load_model("row", config='{"max_batch_size": 5, "parameters": {"threads": {"string_value": "1"}}}')
    assert client.get_model_config("row")["max_batch_size"] == 5
    client.load_model("row")
    assert client.get_model_config("row")["max_batch_size"] == 32
    with pytest.raises(InferenceServerException, match="no model 'none'"):
        client.load_model("none")
    with pytest.raises(InferenceServerException, match="is no configuration of a model"):
        client.load_model("row", config="{")
    with pytest.raises(InferenceServerException, match="no model 'none'"):
        client.unload_model("none")
    assert client.is_model_ready("row")


@pytest.fixture
def region() -> Iterator[Any]:
    name = f"/tract-serve-{os.getpid()}-{time.monotonic_ns()}"
    made = shm.create_shared_memory_region("theirs", name, 256)
    yield made, name
    shm.destroy_shared_memory_region(made)


def test_tensors_in_shared_memory(client: Any, region: Any) -> None:
    handle, key = region
    a, b = np.arange(8, dtype=np.float32).reshape(2, 4), np.full((2, 4), 2, np.float32)
    shm.set_shared_memory_region(handle, [a, b])
    client.register_system_shared_memory("both", key, 256)
    assert client.get_system_shared_memory_status() == [{"name": "both", "key": key, "offset": 0, "byte_size": 256}]
    assert client.get_system_shared_memory_status("both")[0]["key"] == key
    given = [triton.InferInput(name, [2, 4], "FP32") for name in "ab"]
    given[0].set_shared_memory("both", 32)
    given[1].set_shared_memory("both", 32, offset=32)
    outputs = [triton.InferRequestedOutput(name) for name in ("sum", "difference")]
    outputs[0].set_shared_memory("both", 64, offset=64)
    answer = client.infer("two", given, outputs=outputs)
    told = answer.get_output("sum")
    assert told["parameters"] == {
        "shared_memory_region": "both",
        "shared_memory_offset": 64,
        "shared_memory_byte_size": 32,
    }
    assert "data" not in told
    same(shm.get_contents_as_numpy(handle, np.float32, [2, 4], 64), a + b)
    same(answer.as_numpy("difference"), a - b)
    with pytest.raises(InferenceServerException, match="registered already"):
        client.register_system_shared_memory("both", key, 256)
    client.unregister_system_shared_memory("both")
    client.unregister_system_shared_memory("both")
    with pytest.raises(InferenceServerException, match="no region 'both'"):
        client.infer("two", given)
    client.register_system_shared_memory("part", key, 64, offset=64)
    client.unregister_system_shared_memory()
    assert client.get_system_shared_memory_status() == []


def test_texts_in_shared_memory(client: Any, region: Any) -> None:
    from tritonclient.utils import serialized_byte_size

    handle, key = region
    array = np.array([["ä".encode(), b"\xff", b""]], object)
    packed = np.array([[b"".join(len(one).to_bytes(4, "little") + one for one in array[0])]], object)
    shm.set_shared_memory_region(handle, [np.frombuffer(packed[0, 0], np.uint8)])
    client.register_system_shared_memory("texts", key, 256)
    asked = triton.InferInput("x", [1, 3], "BYTES")
    asked.set_shared_memory("texts", len(packed[0, 0]))
    same(client.infer("any_BYTES", [asked]).as_numpy("y"), array)
    client.unregister_system_shared_memory("texts")
    assert serialized_byte_size(packed) == len(packed[0, 0])


def test_memory_of_devices_is_refused(client: Any) -> None:
    assert client.get_cuda_shared_memory_status() == []
    with pytest.raises(InferenceServerException, match="use system shared memory"):
        client.register_cuda_shared_memory("mine", b"x", 0, 4)
    client.unregister_cuda_shared_memory()


def test_settings_of_traces(client: Any) -> None:
    assert client.get_trace_settings()["trace_level"] == ["OFF"]
    told = client.update_trace_settings(settings={"trace_rate": "100", "trace_level": ["TIMESTAMPS"]})
    assert (told["trace_rate"], told["trace_level"]) == ("100", ["TIMESTAMPS"])
    assert client.get_trace_settings("two")["trace_rate"] == "100"
    assert client.update_trace_settings(settings={"trace_rate": None})["trace_rate"] == "100"
    assert client.update_trace_settings("two", {"trace_level": ["OFF"]})["trace_rate"] == "0"
    for settings in ({"trace_rate": "often"}, {"trace_level": ["ALL"]}, {"none": "1"}, {"trace_file": "/tmp/x"}):
        with pytest.raises(InferenceServerException):
            client.update_trace_settings(settings=settings)
    with pytest.raises(InferenceServerException, match="no model"):
        client.get_trace_settings("none")


def test_settings_of_logs(client: Any) -> None:
    before = client.get_log_settings()
    told = client.update_log_settings({"log_verbose_level": 1})
    assert (told["log_verbose_level"], told["log_info"], told["log_error"]) == (1, True, True)
    told = client.update_log_settings({"log_verbose_level": 0, "log_info": False})
    assert (told["log_info"], told["log_warning"]) == (False, True)
    for settings in ({"log_info": "yes"}, {"log_verbose_level": -1}, {"log_file": "/x"}, {"none": 1}):
        with pytest.raises(InferenceServerException):
            client.update_log_settings(settings)
    told = client.update_log_settings({"log_info": True})
    assert told["log_info"]
    assert set(told) == set(before)


def test_many_at_once_by_threads_and_by_asyncio(server: Running, client: Any) -> None:
    arrays = [np.full((1, 4), number, np.float32) for number in range(40)]
    handles = [client.async_infer("row", [put_in("x", "FP32", array)]) for array in arrays]
    for handle, array in zip(handles, arrays, strict=True):
        same(handle.get_result().as_numpy("y"), array)

    async def all_of_them() -> None:
        async with triton_aio.InferenceServerClient(server.http) as made:
            assert await made.is_server_live()
            assert await made.is_server_ready()
            assert await made.is_model_ready("row")
            assert (await made.get_server_metadata())["name"] == "tract"
            assert (await made.get_model_metadata("row"))["name"] == "row"
            assert (await made.get_model_config("row"))["name"] == "row"
            assert await made.get_model_repository_index()
            assert (await made.get_inference_statistics("row"))["model_stats"]
            assert await made.get_system_shared_memory_status() == []
            assert await made.get_trace_settings()
            assert await made.get_log_settings()
            answers = await asyncio.gather(*[made.infer("row", [put_in("x", "FP32", array)]) for array in arrays])
            for answer, array in zip(answers, arrays, strict=True):
                same(answer.as_numpy("y"), array)
            with pytest.raises(InferenceServerException):
                await made.infer("none", [put_in("x", "FP32", arrays[0])])

    asyncio.run(all_of_them())


def test_head_asks_as_get_does(server: Running) -> None:
    status, headers, body = ask(server, "HEAD", "/v2/models/row")
    assert (status, body) == (200, b"")
    assert int(headers["content-length"]) == len(ask(server, "GET", "/v2/models/row")[2])


def test_a_kept_connection_answers_many_requests(server: Running) -> None:
    connection = http.client.HTTPConnection(server.http)
    for number in range(20):
        connection.request("GET", "/v2/health/live" if number % 2 else "/none")
        answer = connection.getresponse()
        assert (answer.status, bool(answer.read())) == (200 if number % 2 else 404, True)
    connection.close()
