"""What is counted, traced and logged."""

from __future__ import annotations

import json
import logging
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import tritonclient.http as client
from click.testing import CliRunner
from prometheus_client.parser import text_string_to_metric_families
from servers import Running, put, serving, sum_and_difference
from tract_serve.logs import JsonLines, Texts
from tritonclient.utils import InferenceServerException

from tract_core.cli.frame import app


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("repository")
    put(made, "sums", sum_and_difference())
    return made


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    with serving(folder, trace_rate=1) as running:
        yield running


def ask(server: Running, rows: int, name: str = "sums", headers: dict[str, str] | None = None) -> None:
    given = [client.InferInput(one, [rows, 4], "FP32") for one in "ab"]
    for one in given:
        one.set_data_from_numpy(np.ones((rows, 4), np.float32))
    client.InferenceServerClient(server.http).infer(name, given, headers=headers)


def metrics(server: Running) -> dict[str, float]:
    """Samples of the model, by name and what tells them apart besides."""
    with urllib.request.urlopen(f"http://{server.http}/metrics") as answer:
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        text = answer.read().decode()
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            more = "".join(sample.labels.get(one, "") for one in ("reason", "le"))
            found[f"{sample.name} {more}".strip()] = sample.value
    return found


def test_metrics_under_the_names_of_triton(server: Running) -> None:
    before = metrics(server)
    for rows in (1, 3):
        ask(server, rows)
    with pytest.raises(InferenceServerException, match="there is no model"):
        ask(server, 1, "nothing")
    after = metrics(server)
    assert after["nv_inference_request_success"] - before["nv_inference_request_success"] == 2
    assert after["nv_inference_count"] - before["nv_inference_count"] == 4
    assert after["nv_inference_exec_count"] - before["nv_inference_exec_count"] == 2
    assert after["nv_inference_request_duration_us"] > before["nv_inference_request_duration_us"]
    assert after["nv_inference_pending_request_count"] == 0
    assert after["nv_inference_request_failure OTHER"] == 0
    assert after["tract_model_ready"] == 1
    assert after["tract_request_duration_seconds_bucket +Inf"] == after["nv_inference_request_success"]
    assert after["process_resident_memory_bytes"] > 1 << 20


def test_traces_with_the_nodes_of_the_run(server: Running) -> None:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    parent = "4bf92f3577b34da6a3ce929d0e0e4736"
    ask(server, 2, headers={"traceparent": f"00-{parent}-00f067aa0ba902b7-01"})
    for _ in range(500):
        spans = exporter.get_finished_spans()
        if len(spans) > 1:
            break
        server.call(_moment())
    whole = next(one for one in spans if one.name == "tract.infer")
    assert f"{whole.context.trace_id:032x}" == parent
    assert dict(whole.attributes or {})["tract.model"] == "sums"
    nodes = [one for one in spans if one.parent is not None and one.parent.span_id == whole.context.span_id]
    assert nodes
    assert all((one.end_time or 0) >= (one.start_time or 0) >= (whole.start_time or 0) for one in nodes)


async def _moment() -> None:
    import asyncio

    await asyncio.sleep(0.01)


def test_lines_of_the_log() -> None:
    record = logging.LogRecord("tract_serve", logging.INFO, "", 0, "model.ready", (), None)
    record.fields = {"model": "a\x1b[31m", "version": 1}
    told = json.loads(JsonLines().format(record))
    assert (told["event"], told["version"], told["level"]) == ("model.ready", 1, "info")
    assert "\x1b" not in Texts().format(record)
    assert "model.ready model=a" in Texts().format(record)


def test_explain(folder: Path) -> None:
    (folder / "broken.onnx").write_text("nothing")
    try:
        found = CliRunner().invoke(app, ["serve", str(folder), "--explain"])
        as_json = CliRunner().invoke(app, ["serve", str(folder), "--explain", "--log-json"])
    finally:
        (folder / "broken.onnx").unlink()
    assert found.exit_code == 0, found.output
    assert "joined: along N" in found.output
    assert "a  N,4,f32" in found.output
    told = {one["name"]: one for one in json.loads(as_json.output)["models"]}
    assert "wanted a binary ONNX file" in told["broken"]["error"]
    assert told["sums"]["runtime"] == "cpu"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ([], "serve works on a model"),
        (["FOLDER", "--serve-limit", "colour=1"], "wanted NAME=NUMBER, of body_bytes"),
        (["FOLDER", "--serve-limit", "body_bytes=-1"], "wanted NAME=NUMBER"),
        (["FOLDER", "--tls-key", "FILE"], "--tls-certificate and --tls-key go together"),
        (["FOLDER", "--store", "somewhere"], "--store and --store-key go together"),
        (["FOLDER", "--token-file", "EMPTY"], "holds no token"),
        (["FOLDER", "-i", "1,2,f32"], "are parameters in its configuration here"),
        (["NOTHING"], "there is no such file or folder"),
    ],
)
def test_command_lines_that_are_wrong(folder: Path, tmp_path: Path, words: list[str], problem: str) -> None:
    (tmp_path / "empty").touch()
    names = {"FOLDER": folder, "FILE": __file__, "EMPTY": tmp_path / "empty", "NOTHING": tmp_path / "nothing"}
    line = [str(names.get(word, word)) for word in words]
    found = CliRunner().invoke(app, ["serve", *line, "--http-port", "0", "--grpc-port", "0"])
    assert found.exit_code in (1, 2)
    assert problem in found.output
