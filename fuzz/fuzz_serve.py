"""Ask a server what it should not be asked: each request has an answer, which is right, or refused with a reason.

    python fuzz/fuzz_serve.py [--seconds 60] [--seed 0] [--replay FILE ...]

Seeds are requests of all kinds over HTTP and gRPC. What they say is changed at random (`serve_requests`), and they are
answered by the ASGI application and by the methods of gRPC, without connections, in a process of its own whose memory
is limited. A *finding* is what `driver` says, a status of 500 (INTERNAL), an answer without a reason, memory that the
server counts and does not give back, and a request that keeps others from being answered.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import shutil
import struct
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from driver import Finding, Target, main
from serve_requests import grpc as by_grpc
from serve_requests import http, mutated, taken_apart

SHARED = os.environ.setdefault("TRACT_FUZZ", f"tract-fuzz-{os.getpid()}")
"""The name of shared memory, and of a folder: of this process, which those that it starts inherit."""
FOLDER = Path(tempfile.gettempdir()) / SHARED
MEMORY = Path("/dev/shm") / SHARED
MODELS = ("plain", "texts", "whole", "two", "sums", "spare")


def models(folder):
    """A repository of small models, one of them with a state that it keeps."""
    import onnx
    from onnx import TensorProto, helper

    def put(name, nodes, inputs, outputs, config=None):
        infos = [[helper.make_tensor_value_info(*one) for one in ports] for ports in (inputs, outputs)]
        graph = helper.make_graph([helper.make_node(*node) for node in nodes], name, *infos)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        place = folder / name / "1"
        place.mkdir(parents=True)
        onnx.save(made, place / "model.onnx")
        if config is not None:
            (place.parent / "config.pbtxt").write_text(config)

    kinds = {"plain": TensorProto.FLOAT, "texts": TensorProto.STRING, "whole": TensorProto.INT8}
    for name, kind in kinds.items():
        put(name, [("Identity", ["x"], ["y"])], [("x", kind, ["N", "M"])], [("y", kind, ["N", "M"])])
    rows, floats = ["N", 4], TensorProto.FLOAT
    put("spare", [("Identity", ["x"], ["y"])], [("x", floats, rows)], [("y", floats, rows)])
    nodes = [("Add", ["a", "b"], ["sum"]), ("Sub", ["a", "b"], ["difference"])]
    put("two", nodes, [("a", floats, rows), ("b", floats, rows)], [("sum", floats, rows), ("difference", floats, rows)])
    nodes = [("Add", ["x", "h"], ["y"]), ("Identity", ["y"], ["h_out"])]
    state = 'sequence_batching { state [ { input_name: "h" output_name: "h_out" } ] }'
    ports = [("x", floats, rows), ("h", floats, rows)], [("y", floats, rows), ("h_out", floats, rows)]
    put("sums", nodes, *ports, state)
    return folder


ROW = struct.pack("<4f", 0, 1, 2, 3)


def seeds():
    """Requests of all kinds, always in the same order."""
    return [*_inferences(), *_sequences(), *_others(), *_seeds_of_grpc()]


def _infer(model, inputs, *, behind=b"", **more):
    body = json.dumps({"inputs": inputs, **more}).encode()
    told = {"inference_header_content_length": len(body)} if behind else {}
    return http("POST", f"/v2/models/{model}/infer", body + behind, **told)


def _tensor(shape, data=None, name="x", datatype="FP32", **parameters):
    made = {"name": name, "datatype": datatype, "shape": shape}
    return made | ({"parameters": parameters} if data is None else {"data": data})


def _inferences():
    four = [1, 2, 3, 4]
    yield _infer("plain", [_tensor([2, 2], [1, 2.5, -3, 4e9])], id="a")
    told = {"priority": 0, "timeout": 10**6}
    yield _infer("plain", [_tensor([2, 2], [[1, 2], [3, 4]])], outputs=[{"name": "y"}], parameters=told)
    yield _infer("plain", [_tensor([1, 4], binary_data_size=16)], behind=ROW)
    output = {"name": "y", "parameters": {"classification": 2, "binary_data": True}}
    yield _infer("plain", [_tensor([1, 4], four)], outputs=[output])
    yield _infer("texts", [_tensor([1, 2], ["a", "größer"], datatype="BYTES")])
    output = {"name": "y", "parameters": {"binary_data": True}}
    texts = b"\x02\0\0\0ab\x01\0\0\0\xff"
    asked = _tensor([1, 2], datatype="BYTES", binary_data_size=len(texts))
    yield _infer("texts", [asked], behind=texts, outputs=[output])
    yield _infer("whole", [_tensor([1, 3], [-128, 0, 127], datatype="INT8")], parameters={"binary_data_output": True})
    both = [_tensor([1, 4], four, "a"), _tensor([1, 4], None, "b", binary_data_size=16)]
    yield _infer("two", both, behind=ROW)
    yield http("POST", "/v2/models/spare/infer", ROW, inference_header_content_length=0)
    key = {"key": f"/{SHARED}", "offset": 0, "byte_size": 4096}
    yield http("POST", "/v2/systemsharedmemory/region/region/register", json.dumps(key).encode())
    shared = {"shared_memory_region": "region", "shared_memory_byte_size": 16, "shared_memory_offset": 64}
    output = {"name": "y", "parameters": shared | {"shared_memory_offset": 0}}
    yield _infer("plain", [_tensor([1, 4], None, **shared)], outputs=[output])
    yield http("POST", "/v2/systemsharedmemory/region/region/unregister")


def _sequences():
    for told in (
        {"sequence_id": 5, "sequence_start": True},
        {"sequence_id": 5},
        {"sequence_id": "five", "sequence_start": True, "sequence_end": True},
    ):
        yield _infer("sums", [_tensor([1, 4], [1, 2, 3, 4])], parameters=told)


def _others():
    for path in (
        "/v2",
        "/v2/health/ready",
        "/v2/models",
        "/v2/models/plain",
        "/v2/models/two/config",
        "/v2/models/sums/stats",
        "/v2/models/plain/versions/1/ready",
        "/metrics",
        "/v2/systemsharedmemory/status",
    ):
        yield http("GET", path)
    yield http("POST", "/v2/repository/index", b'{"ready": true}')
    config = json.dumps({"max_batch_size": 4, "parameters": {"threads": {"string_value": "1"}}})
    yield http("POST", "/v2/repository/models/spare/load", json.dumps({"parameters": {"config": config}}).encode())
    yield http("POST", "/v2/repository/models/spare/unload", b'{"parameters": {"unload_dependents": false}}')
    yield http("POST", "/v2/trace/setting", b'{"trace_rate": "0", "trace_level": ["OFF"]}')
    yield http("POST", "/v2/logging", b'{"log_verbose_level": 0, "log_info": true}')


def _asked(model, datatype="FP32", shape=(1, 4), raw=None):
    from tract_serve.messages import message

    made = message("ModelInferRequest")(model_name=model, id="a")
    made.inputs.add(name="x", datatype=datatype, shape=shape)
    if raw is not None:
        made.raw_input_contents.append(raw)
    return made


def _seeds_of_grpc():
    from tract_serve.messages import message

    made = _asked("plain", raw=ROW)
    made.outputs.add(name="y").parameters["classification"].int64_param = 2
    yield by_grpc("ModelInfer", made.SerializeToString())
    yield by_grpc("ModelStreamInfer", made.SerializeToString())
    for model, kind, field, elements in (
        ("plain", "FP32", "fp32_contents", [1.0, 2.0]),
        ("texts", "BYTES", "bytes_contents", [b"a", b"\xff"]),
        ("whole", "INT8", "int_contents", [-128, 127]),
    ):
        made = _asked(model, kind, (1, 2))
        getattr(made.inputs[0].contents, field).extend(elements)
        made.parameters["priority"].int64_param = 0
        yield by_grpc("ModelInfer", made.SerializeToString())
    made = _asked("sums", raw=ROW)
    made.parameters["sequence_id"].int64_param = 7
    made.parameters["sequence_start"].bool_param = True
    yield by_grpc("ModelStreamInfer", made.SerializeToString())
    region = {"name": "region", "key": f"/{SHARED}", "byte_size": 4096}
    yield by_grpc("SystemSharedMemoryRegister", message("SystemRegion")(**region).SerializeToString())
    made = _asked("plain")
    made.inputs[0].parameters["shared_memory_region"].string_param = "region"
    made.inputs[0].parameters["shared_memory_byte_size"].int64_param = 16
    yield by_grpc("ModelInfer", made.SerializeToString())
    for method, name, fields in (
        ("SystemSharedMemoryStatus", "RegionRequest", {"name": "region"}),
        ("SystemSharedMemoryUnregister", "RegionRequest", {"name": "region"}),
        ("ModelReady", "ModelReadyRequest", {"name": "plain", "version": "1"}),
        ("ModelMetadata", "ModelMetadataRequest", {"name": "two"}),
        ("ModelConfig", "ModelConfigRequest", {"name": "sums"}),
        ("ModelStatistics", "ModelStatisticsRequest", {"name": "plain"}),
        ("RepositoryIndex", "RepositoryIndexRequest", {"ready": True}),
        ("RepositoryModelLoad", "RepositoryModelRequest", {"model_name": "spare"}),
        ("RepositoryModelUnload", "RepositoryModelRequest", {"model_name": "spare"}),
        ("TraceSetting", "TraceSettingRequest", {"model_name": "plain"}),
        ("LogSettings", "LogSettingsRequest", {}),
    ):
        yield by_grpc(method, message(name)(**fields).SerializeToString())


class Asked:
    """A server without connections. Whoever makes one ends it with `close`."""

    def __init__(self):
        from tract_serve.grpc.service import Service
        from tract_serve.http.application import Application
        from tract_serve.routes import ROUTES
        from tract_serve.serving import Serving
        from tract_serve.settings import Limits, Settings

        self.folder = FOLDER / str(os.getpid())
        self.folder.mkdir(parents=True)
        limits = Limits(
            body_bytes=1 << 20,
            json_bytes=1 << 19,
            grpc_bytes=1 << 20,
            bodies_bytes=64 << 20,
            response_bytes=1 << 22,
            sequences=50,
            sequence_idle_s=5,
        )
        settings = Settings(http_port=None, grpc_port=None, preload=False, watch_s=0, limits=limits)
        self.limits = limits
        self.serving = Serving(models(self.folder), settings)
        self.application = Application(self.serving, ROUTES)
        self.loop = asyncio.new_event_loop()
        self.loop.run_until_complete(self.serving.start())
        self.methods = Service(self.serving).handlers()
        MEMORY.write_bytes(bytes(4096))

    def close(self):
        self.loop.run_until_complete(self.serving.close())
        self.loop.close()
        clean_up()

    def examine(self, content):
        """What became of a request, in a word. Raises Finding."""
        return self.loop.run_until_complete(asyncio.wait_for(self._examine(content), 8))

    async def _examine(self, content):
        transport, words, headers, body = taken_apart(content)
        if transport == "GRPC":
            found = await self._by_grpc(words[0], body)
        else:
            found = await self._by_http(words[0], words[-1], headers, body)
        await self._look()
        return found

    async def _look(self):
        """The server is as it was: what it held is given back, and another request is answered rightly."""
        for _ in range(200):
            if not self.serving.room.taken:
                break
            await asyncio.sleep(0.005)
        if self.serving.room.taken:
            raise Finding(f"{self.serving.room.taken} bytes are not given back")
        for name in MODELS:
            if name not in self.serving.repository.models or (name == "spare" and self.serving.repository._given):
                await self.serving.repository.load(name)
        asked = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1, 2]}]}
        status, _, body = await self._asgi("POST", "/v2/models/plain/infer", [], json.dumps(asked).encode())
        if status != 200 or json.loads(body)["outputs"][0]["data"] != [1.0, 2.0]:
            raise Finding(f"others are not answered any more: {status}")

    async def _asgi(self, method, path, headers, body):
        from urllib.parse import unquote

        parts = [body[:1000], body[1000:]] if len(body) > 1000 else [body]
        sent = []

        async def receive():
            if parts:
                return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message):
            sent.append(message)

        raw, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": unquote(raw),
            "raw_path": raw.encode("latin-1"),
            "query_string": query.encode("latin-1"),
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers],
            "client": ("127.0.0.1", 1),
        }
        await self.application(scope, receive, send)
        return sent[0]["status"], dict(sent[0]["headers"]), b"".join(bytes(one["body"]) for one in sent[1:])

    async def _by_http(self, method, path, headers, body):
        status, told, answer = await self._asgi(method, path, headers, body)
        if status == 500:
            raise Finding(f"500: {answer[:200]!r}")
        if len(answer) > self.limits.response_bytes:
            raise Finding("the answer is too long")
        if status >= 400:
            reason = json.loads(answer)["error"]
            if not (isinstance(reason, str) and reason) or len(reason) > 5000:
                raise Finding(f"no reason: {reason!r}"[:200])
        elif told[b"content-type"] == b"application/json" and b"content-encoding" not in told:
            json.loads(answer)
        return f"HTTP {status}"

    async def _by_grpc(self, method, body):
        import grpc

        context = Context(body)
        details = type("Details", (), {"method": f"/inference.GRPCInferenceService/{method}"})()
        handler = next((found for one in self.methods if (found := one.service(details)) is not None), None)
        if handler is None:
            return "gRPC UNIMPLEMENTED"
        function = handler.stream_unary or handler.stream_stream
        try:
            answer = await function(None, context)
            if answer is not None:
                context.written.append(answer)
        except Aborted as aborted:
            code, reason = aborted.args
            if code in (grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN) or not reason:
                raise Finding(f"{code.name}: {reason[:200]}") from None
            return f"gRPC {code.name}"
        finally:
            context.end()
        if not context.written or not all(isinstance(one, bytes) for one in context.written):
            raise Finding("no answer")
        return "gRPC OK"


def clean_up():
    shutil.rmtree(FOLDER, ignore_errors=True)
    MEMORY.unlink(missing_ok=True)


class Aborted(Exception):
    """A call was ended with a status."""


class Context:
    """A call of gRPC, as its methods see it."""

    def __init__(self, body):
        self.bodies, self.written, self.callbacks = [body], [], []

    async def read(self):
        import grpc

        return self.bodies.pop() if self.bodies else grpc.aio.EOF

    async def write(self, content):
        self.written.append(content)

    async def abort(self, code, details):
        raise Aborted(code, details)

    def add_done_callback(self, callback):
        self.callbacks.append(callback)

    def time_remaining(self):
        return None

    def invocation_metadata(self):
        return ()

    def end(self):
        for one in self.callbacks:
            one(self)


_ASKED = []


def examine(content, chance):
    """What became of a request: its transport and status. Raises whatever is a finding."""
    if not _ASKED:
        import logging

        logging.disable(logging.CRITICAL)
        _ASKED.append(Asked())
    return _ASKED[0].examine(content)


TARGET = Target(__file__, ".request", seeds, mutated, examine)

if __name__ == "__main__":
    if "--work" not in sys.argv:  # such a process is killed, and the one that started it cleans up
        atexit.register(clean_up)
    sys.exit(main(TARGET, __doc__))
