"""Inputs that say which turn of a sequence it is, as Triton's control inputs: clients do not give them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tritonclient.grpc
import tritonclient.http
import tritonclient.utils
from onnx import TensorProto, helper
from servers import Running, network, put, serving
from tract_serve.repository.repository import Repository
from tract_serve.settings import Settings

FLOAT, INT32, BOOL, UINT64, STRING = (
    *(TensorProto.FLOAT, TensorProto.INT32, TensorProto.BOOL),
    *(TensorProto.UINT64, TensorProto.STRING),
)


def control(name: str, kind: str, values: str) -> str:
    return f'{{ name: "{name}" control [ {{ kind: CONTROL_SEQUENCE_{kind} {values} }} ] }}'


CONTROLS = ", ".join(
    [
        control("START", "START", "int32_false_true: [ 0, 1 ]"),
        control("READY", "READY", "bool_false_true: [ false, true ]"),
        control("END", "END", "fp32_false_true: [ -1, 2.5 ]"),
        control("CORRID", "CORRID", "data_type: TYPE_UINT64"),
    ]
)
STATE = 'state [ { input_name: "sum" output_name: "sum_out" } ]'


def adding(rows: str | int = "N") -> Any:
    """``sum_out`` [N, 1] = ``x`` + ``sum``, which START makes 0; and what the controls say, as ``said`` [N, 3]."""
    nodes = [
        helper.make_node("Cast", ["START"], ["starts"], to=BOOL),
        helper.make_node("Sub", ["sum", "sum"], ["nothing"]),
        helper.make_node("Where", ["starts", "nothing", "sum"], ["before"]),
        helper.make_node("Add", ["x", "before"], ["sum_out"]),
        helper.make_node("Cast", ["READY"], ["ready"], to=FLOAT),
        helper.make_node("Cast", ["CORRID"], ["id"], to=FLOAT),
        helper.make_node("Concat", ["ready", "END", "id"], ["said"], axis=1),
        helper.make_node("Identity", ["sum_out"], ["y"]),
    ]
    sizes = [rows, 1]
    kinds = {"x": FLOAT, "sum": FLOAT, "START": INT32, "READY": BOOL, "END": FLOAT, "CORRID": UINT64}
    outputs = [("y", FLOAT, sizes), ("sum_out", FLOAT, sizes), ("said", FLOAT, [rows, 3])]
    return network(nodes, [(name, kind, sizes) for name, kind in kinds.items()], outputs)


def named() -> Any:
    """``y`` [2]: ``x``, and the name of the sequence."""
    node = helper.make_node("Concat", ["x", "CORRID"], ["y"], axis=0)
    return network([node], [("x", STRING, [1]), ("CORRID", STRING, [1])], [("y", STRING, [2])])


def marked() -> Any:
    """``y`` [1] = ``x`` + START, of a model without state."""
    node = helper.make_node("Add", ["x", "START"], ["y"])
    return network([node], [("x", FLOAT, [1]), ("START", FLOAT, [1])], [("y", FLOAT, [1])])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("repository")
    both = f"sequence_batching {{ control_input [ {CONTROLS} ] {STATE} }}"
    put(folder, "adding", adding(), config=f"max_batch_size: 8 {both}")
    put(folder, "one", adding(1), config=both)
    named_by = control("CORRID", "CORRID", "data_type: TYPE_STRING")
    put(folder, "named", named(), config=f"sequence_batching {{ control_input [ {named_by} ] }}")
    starts = control("START", "START", "fp32_false_true: [ 0, 10 ]")
    put(folder, "marked", marked(), config=f"sequence_batching {{ control_input [ {starts} ] }}")
    with serving(folder) as running:
        yield running


@pytest.fixture(params=[tritonclient.http, tritonclient.grpc], ids=["http", "grpc"])
def module(request: pytest.FixtureRequest) -> Any:
    return request.param


class Client:
    """Asks a model whose input is ``x``."""

    def __init__(self, server: Running, module: Any) -> None:
        self._module = module
        self._client = module.InferenceServerClient(server.http if module is tritonclient.http else server.grpc)

    def ask(self, model: str, x: Any, **asked: Any) -> Any:
        given = self._module.InferInput("x", list(x.shape), "BYTES" if x.dtype.kind == "O" else "FP32")
        given.set_data_from_numpy(x)
        return self._client.infer(model, [given], **asked)


def row(*values: float) -> Any:
    return np.array(values, np.float32).reshape(-1, 1)


@pytest.mark.parametrize(("model", "rows"), [("adding", 1), ("adding", 3), ("one", 1)])
def test_each_turn_says_which_it_is(server: Running, module: Any, model: str, rows: int) -> None:
    client, number = Client(server, module), rows + 10 * (module is tritonclient.grpc)
    for turn in range(4):
        x = row(*range(turn, turn + rows))
        marks = {"sequence_start": turn in (0, 2), "sequence_end": turn == 3}  # the third begins anew
        found = client.ask(model, x, sequence_id=number, **marks)
        before = row(*range(turn - 1, turn - 1 + rows)) if turn in (1, 3) else 0
        np.testing.assert_array_equal(found.as_numpy("y"), x + before)
        wanted = np.array([[1, 2.5 if turn == 3 else -1, number]] * rows, np.float32)
        np.testing.assert_array_equal(found.as_numpy("said"), wanted)


def test_a_request_alone_is_the_first_and_the_last(server: Running, module: Any) -> None:
    found = Client(server, module).ask("adding", row(5))
    np.testing.assert_array_equal(found.as_numpy("y"), row(5))
    np.testing.assert_array_equal(found.as_numpy("said"), np.array([[1, 2.5, 0]], np.float32))


def test_turns_of_many_sequences_are_laid_together_each_with_its_own(server: Running) -> None:
    def turns(number: int) -> list[Any]:
        client = Client(server, tritonclient.http)
        return [
            client.ask("adding", row(number), sequence_id=number, sequence_start=turn == 0, sequence_end=turn == 9)
            for turn in range(10)
        ]

    with ThreadPoolExecutor(8) as threads:
        for number, found in enumerate(threads.map(turns, range(100, 108)), 100):
            assert [float(one.as_numpy("y")[0, 0]) for one in found] == [number * turn for turn in range(1, 11)]
            assert [one.as_numpy("said").tolist() for one in found[:-1]] == [[[1, -1, number]]] * 9


def test_a_model_without_state_may_have_them(server: Running, module: Any) -> None:
    client, x = Client(server, module), np.zeros(1, np.float32)
    found = [
        client.ask("marked", x, sequence_id=5, sequence_start=turn == 0, sequence_end=turn == 2) for turn in (0, 1, 2)
    ]
    assert [one.as_numpy("y").tolist() for one in found] == [[10], [0], [0]]


def test_ids_are_texts_where_the_input_is_one(server: Running, module: Any) -> None:
    client, x = Client(server, module), np.array([b"I am"], object)
    for name, wanted in (("camera 7", b"camera 7"), (7, b"7")):
        found = client.ask("named", x, sequence_id=name, sequence_start=True, sequence_end=True)
        assert found.as_numpy("y").tolist() == [b"I am", wanted]
    assert client.ask("named", x).as_numpy("y").tolist() == [b"I am", b""]


def test_an_id_that_the_input_cannot_hold_is_refused(server: Running, module: Any) -> None:
    client = Client(server, module)
    with pytest.raises(
        tritonclient.utils.InferenceServerException, match="takes no sequence 'camera 7', wanted a number"
    ):
        client.ask("adding", row(1), sequence_id="camera 7", sequence_start=True)
    with pytest.raises(tritonclient.utils.InferenceServerException, match="was not started"):
        client.ask("adding", row(1), sequence_id="camera 7")


def test_clients_neither_see_them_nor_give_them(server: Running) -> None:
    client = tritonclient.http.InferenceServerClient(server.http)
    assert [one["name"] for one in client.get_model_metadata("adding")["inputs"]] == ["x"]
    assert [one["name"] for one in client.get_model_metadata("adding")["outputs"]] == ["y", "said"]
    told = client.get_model_config("adding")["sequence_batching"]["control_input"]
    assert [one["name"] for one in told] == ["START", "READY", "END", "CORRID"]
    given = tritonclient.http.InferInput("START", [1, 1], "INT32")
    given.set_data_from_numpy(np.zeros((1, 1), np.int32))
    with pytest.raises(
        tritonclient.utils.InferenceServerException, match="the inputs are x; missing: x; unknown: START"
    ):
        client.infer("adding", [given])


@pytest.mark.parametrize(
    ("controls", "problem"),
    [
        (control("GO", "START", "int32_false_true: [ 0, 1 ]"), "there is no input 'GO'; inputs: x, START"),
        (control("START", "START", "int32_false_true: [ 0, 1 ]"), "the input is 1,f32, the configuration wants i32"),
        (control("START", "START", "fp32_false_true: [ 0 ]"), "wanted two values in one of int32_false_true, "),
        (control("START", "START", ""), "wanted two values in one of int32_false_true, "),
        (
            control("START", "START", "fp32_false_true: [ 0, 1 ] int32_false_true: [ 0, 1 ]"),
            "wanted two values in one of",
        ),
        (control("START", "CORRID", "data_type: TYPE_FP32"), "the input is 1,f32, the configuration wants whole"),
        (control("START", "CORRID", ""), "the input is 1,f32, the configuration wants u64 or i64 or"),
        ('{ name: "START" }', "control_input 'START' has 0 controls, wanted one"),
        (", ".join([control("START", "START", "fp32_false_true: [ 0, 1 ]")] * 2), "an input is named twice"),
    ],
)
def test_configurations_that_name_none_are_refused(tmp_path: Path, controls: str, problem: str) -> None:
    put(tmp_path, "marked", marked(), config=f"sequence_batching {{ control_input [ {controls} ] }}")

    async def started() -> str:
        repository = Repository(tmp_path, Settings(watch_s=0, preload=False))
        await repository.start()
        (entry,) = repository.index
        await repository.close()
        return entry.reason

    assert problem in asyncio.run(started())
