"""KServe's own client, over HTTP and gRPC (``make test-serve-clients``: it brings some 60 packages), and curl."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from protocol import KINDS, repository, same, values
from servers import Running, serving

try:
    import kserve
except ImportError:
    kserve = None

needs_kserve = pytest.mark.skipif(kserve is None, reason="needs kserve; run by make test-serve-clients")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(repository(tmp_path_factory.mktemp("models"))) as running:
        yield running


def request(model: str, datatype: str, array: Any, *, binary: bool) -> Any:
    from kserve import InferInput, InferRequest

    asked = InferInput("x", list(array.shape), datatype)
    asked.set_data_from_numpy(array, binary_data=binary)
    wish = {"binary_data_output": True} if binary else None
    return InferRequest(model_name=model, infer_inputs=[asked], request_id="42", parameters=wish)


# What its client can say: it has no BF16, and halves as bytes alone.
SAID = [(name, True) for name in KINDS if name != "BF16"]
SAID += [(name, False) for name in KINDS if name not in ("BF16", "FP16")]


def sendable(datatype: str, *, binary: bool) -> Any:
    """Elements that its client can send and read: texts of Unicode, and as JSON numbers that JSON has."""
    array = values(datatype, (2, 3))
    if datatype == "BYTES":
        array[:] = "größer"
    elif datatype.startswith("FP") and not binary:
        array[~np.isfinite(array)] = 1.5
    return array


@needs_kserve
def test_its_client_of_http(server: Running) -> None:
    from kserve import InferenceRESTClient
    from kserve.inference_client import RESTConfig

    async def work() -> None:
        async with InferenceRESTClient(RESTConfig(protocol="v2", retries=0)) as client:
            base = f"http://{server.http}"
            assert await client.is_server_live(base)
            assert await client.is_server_ready(base)
            assert await client.is_model_ready(base, "two")
            for datatype, binary in SAID:
                array = sendable(datatype, binary=binary)
                model = f"any_{datatype}"
                answer = await client.infer(base, request(model, datatype, array, binary=binary), model)
                assert (answer.model_name, answer.id) == (model, "42")
                found = answer.outputs[0].as_numpy()
                same(found if datatype == "BYTES" else found.astype(array.dtype), array)

    asyncio.run(work())


@needs_kserve
def test_its_client_of_grpc(server: Running) -> None:
    from kserve import InferenceGRPCClient

    async def work() -> None:
        client = InferenceGRPCClient(server.grpc, retries=0)
        assert await client.is_server_live()
        assert await client.is_server_ready()
        assert await client.is_model_ready("two")
        for datatype, binary in SAID:
            array = sendable(datatype, binary=binary)
            answer = await client.infer(request(f"any_{datatype}", datatype, array, binary=binary))
            assert (answer.model_name, answer.id) == (f"any_{datatype}", "42")
            found = answer.outputs[0].as_numpy()
            same(found if datatype == "BYTES" else found.astype(array.dtype), array)
        await client.close()

    asyncio.run(work())


@needs_kserve
def test_its_messages_load_and_unload(server: Running) -> None:
    import grpc
    from kserve.protocol.grpc import grpc_predict_v2_pb2 as messages
    from kserve.protocol.grpc import grpc_predict_v2_pb2_grpc as stubs

    with grpc.insecure_channel(server.grpc) as channel:
        stub = stubs.GRPCInferenceServiceStub(channel)
        told = stub.RepositoryModelUnload(messages.RepositoryModelUnloadRequest(model_name="row"))
        assert (told.model_name, told.isUnloaded) == ("row", True)
        assert not stub.ModelReady(messages.ModelReadyRequest(name="row")).ready
        told = stub.RepositoryModelLoad(messages.RepositoryModelLoadRequest(model_name="row"))
        assert (told.model_name, told.isLoaded) == ("row", True)
        assert stub.ServerMetadata(messages.ServerMetadataRequest()).name == "tract"
        assert [one.name for one in stub.ModelMetadata(messages.ModelMetadataRequest(name="row")).inputs] == ["x"]


needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl")


def curl(*words: str, content: bytes | None = None) -> bytes:
    command = ["curl", "--silent", "--show-error", "--fail-with-body", *words]
    return subprocess.run(command, check=True, capture_output=True, input=content).stdout


@needs_curl
def test_lines_of_curl(server: Running) -> None:
    base = f"http://{server.http}/v2"
    assert json.loads(curl(f"{base}/health/ready"))["ready"]
    assert json.loads(curl(f"{base}/models/row"))["inputs"][0]["shape"] == [-1, 4]
    asked = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 4], "data": [1, 2, 3, 4]}]})
    assert json.loads(curl(f"{base}/models/row/infer", "-d", asked))["outputs"][0]["data"] == [1.0, 2.0, 3.0, 4.0]
    packed = curl(f"{base}/models/row/infer", "--compressed", "-H", "Content-Type: application/json", "-d", asked)
    assert json.loads(packed)["model_name"] == "row"
    array = np.arange(8, dtype=np.float32)
    words = ("-H", "Inference-Header-Content-Length: 0", "--data-binary", "@-", "-D", "-")
    answer = curl(f"{base}/models/row/infer", *words, content=array.tobytes())
    assert answer.endswith(array.tobytes())
    long = json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [5000, 4], "data": [0.5] * 20_000}]})
    whole = curl(f"{base}/models/row/infer", "-H", "Expect: 100-continue", "-d", "@-", content=long.encode())
    assert json.loads(whole)["outputs"][0]["shape"] == [5000, 4]
    with pytest.raises(subprocess.CalledProcessError) as caught:
        curl(f"{base}/models/none")
    assert "there is no model 'none'" in json.loads(caught.value.stdout)["error"]


def test_values_have_all_kinds() -> None:
    """That what is sent is what programs stumble over."""
    assert np.isnan(values("FP32", (2, 4))).any()
    assert values("BF16", (1, 1)).dtype == ml_dtypes.bfloat16
