"""Models on disk: which there are, what is said of them, how they are loaded, replaced and left."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from servers import identity, network, put
from tract_serve.config import ModelConfig
from tract_serve.errors import BadRequest, Busy, Failed, NotFound
from tract_serve.models.served import Served, Wish
from tract_serve.repository.layout import files_in, found_in
from tract_serve.repository.repository import Repository
from tract_serve.settings import Settings

from tract_core.data import DatumType
from tract_core.errors import CorruptModel, InputError, MissingFile, ModelError

SETTINGS = Settings(watch_s=0, preload=False, threads=1)


def scaled(factor: float) -> Any:
    """A model that multiplies x: N,2 by a number."""
    number = helper.make_tensor("number", TensorProto.FLOAT, [], [factor])
    node = helper.make_node("Mul", ["x", "number"], ["y"])
    sizes = ["N", 2]
    return network([node], [("x", TensorProto.FLOAT, sizes)], [("y", TensorProto.FLOAT, sizes)], [number])


async def answer(repository: Repository, name: str, version: str = "") -> float:
    """What a model makes of 1."""
    model = repository.model(name, version)
    assert isinstance(model, Served)
    (found,) = await model.infer({"x": (DatumType.F32, np.ones((1, 2), np.float32))}, Wish())
    return float(found[0, 0])


def run(source: Path, work: Callable[[Repository], Awaitable[None]], settings: Settings = SETTINGS) -> None:
    """A repository, started, for a test."""

    async def whole() -> None:
        repository = Repository(source, settings)
        await repository.start()
        await work(repository)
        await repository.close()

    asyncio.run(asyncio.wait_for(whole(), 60))


def states(repository: Repository) -> dict[tuple[str, str], str]:
    return {(one.name, one.version): one.state for one in repository.index}


def test_layouts_that_are_known(tmp_path: Path) -> None:
    put(tmp_path, "numbered", scaled(1), 3)
    put(tmp_path, "numbered", scaled(1), 12)
    onnx.save(scaled(1), tmp_path / "file.onnx")
    (tmp_path / "plain").mkdir()
    onnx.save(scaled(1), tmp_path / "plain" / "anything.onnx")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "notes").mkdir()
    (tmp_path / "README.md").write_text("nothing")
    found = found_in(tmp_path, SETTINGS)
    assert {name: [*one.versions] for name, one in found.items()} == {"file": [1], "numbered": [12], "plain": [1]}
    assert found["plain"].versions[1].name == "anything.onnx"


@pytest.mark.parametrize(
    ("policy", "versions"),
    [
        ("", [4]),
        ("version_policy { latest { num_versions: 2 } }", [2, 4]),
        ("version_policy { all { } }", [1, 2, 4]),
        ("version_policy { specific { versions: [1, 3] } }", [1]),
    ],
)
def test_versions_that_are_served(tmp_path: Path, policy: str, versions: list[int]) -> None:
    for number in (1, 2, 4):
        put(tmp_path, "scaled", scaled(number), number, policy)

    async def work(repository: Repository) -> None:
        assert [*repository.models["scaled"]] == versions
        assert await answer(repository, "scaled") == max(versions)
        assert await answer(repository, "scaled", str(versions[0])) == versions[0]
        with pytest.raises(NotFound, match="there is no version '9'; versions: "):
            repository.model("scaled", "9")

    run(tmp_path, work)


def test_one_file_is_a_model(tmp_path: Path) -> None:
    onnx.save(scaled(2), tmp_path / "double.onnx")

    async def work(repository: Repository) -> None:
        assert await answer(repository, "double", "1") == 2

    run(tmp_path / "double.onnx", work)


def test_the_folder_of_one_model_is_one_model(tmp_path: Path) -> None:
    config = "version_policy { all { } }"
    folder = put(tmp_path, "scaled", scaled(2), config=config)
    put(tmp_path, "scaled", scaled(3), 2)
    assert [*found_in(folder, SETTINGS)["scaled"].versions] == [1, 2]
    assert [*found_in(folder, Settings(name="other"))] == ["other"]
    (tmp_path / "plain").mkdir()
    onnx.save(scaled(1), tmp_path / "plain" / "named.onnx")
    (tmp_path / "plain" / "config.pbtxt").write_text("max_batch_size: 3")
    found = found_in(tmp_path / "plain", SETTINGS)["named"]
    assert found.config.told.max_batch_size == 3


def test_sources_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="there is no such file or folder"):
        found_in(tmp_path / "nothing", SETTINGS)
    with pytest.raises(InputError, match="the folder holds no model"):
        found_in(tmp_path, SETTINGS)


def test_a_broken_model_harms_no_other(tmp_path: Path) -> None:
    put(tmp_path, "good", scaled(2))
    (tmp_path / "bad" / "1").mkdir(parents=True)
    (tmp_path / "bad" / "1" / "model.onnx").write_bytes(b"\xff" * 100)
    put(tmp_path, "odd", scaled(1), config="colour: 1 {")
    (tmp_path / "empty" / "1").mkdir(parents=True)

    async def work(repository: Repository) -> None:
        assert await answer(repository, "good") == 2
        assert states(repository)["bad", "1"] == states(repository)["odd", ""] == "UNAVAILABLE"
        with pytest.raises(Busy, match=r"(?s)it is not ready \(UNAVAILABLE\): .*is no configuration of a model"):
            repository.model("odd")
        with pytest.raises(NotFound, match=r"there is no model 'goot'; models: .*good") as caught:
            repository.model("goot")
        assert caught.value.hint == "did you mean 'good'?"

    run(tmp_path, work)
    with pytest.raises(ModelError, match="model 'bad'"):
        run(tmp_path, work, Settings(watch_s=0, preload=False, strict=True))


def test_a_model_whose_process_ends_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "scaled", scaled(1))
    monkeypatch.setattr("sys.executable", shutil.which("false"))

    async def work(repository: Repository) -> None:
        with pytest.raises(Busy, match="it ended the process that tried it, with status 1"):
            repository.model("scaled")

    run(tmp_path, work, Settings(watch_s=0))


def test_tried_in_a_process_of_its_own(tmp_path: Path) -> None:
    put(tmp_path, "scaled", scaled(3))

    async def work(repository: Repository) -> None:
        assert await answer(repository, "scaled") == 3
        model = repository.model("scaled")
        assert isinstance(model, Served)
        assert model.found.rows is not None

    run(tmp_path, work, Settings(watch_s=0))


def test_reloading_replaces_what_changed_and_drops_no_request(tmp_path: Path) -> None:
    put(tmp_path, "changes", scaled(1))
    put(tmp_path, "stays", scaled(5))
    put(tmp_path, "goes", scaled(6))

    async def work(repository: Repository) -> None:
        before, same = repository.model("changes"), repository.model("stays")
        given = {"x": (DatumType.F32, np.ones((1, 2), np.float32))}
        asked = asyncio.ensure_future(before.infer(given, Wish()))  # type: ignore[attr-defined]
        await asyncio.sleep(0)
        put(tmp_path, "changes", scaled(2))
        shutil.rmtree(tmp_path / "goes")
        put(tmp_path, "comes", scaled(7))
        await repository.reload()
        assert (await asked)[0][0, 0] == 1
        assert await answer(repository, "changes") == 2
        assert await answer(repository, "comes") == 7
        assert repository.model("stays") is same
        with pytest.raises(NotFound, match="there is no model 'goes'"):
            repository.model("goes")

    run(tmp_path, work)


def test_a_model_that_breaks_leaves_the_one_before(tmp_path: Path) -> None:
    put(tmp_path, "scaled", scaled(1))

    async def work(repository: Repository) -> None:
        (tmp_path / "scaled" / "1" / "model.onnx").write_bytes(b"nothing")
        await repository.reload()
        assert await answer(repository, "scaled") == 1
        with pytest.raises(Failed, match="wanted a binary ONNX file"):
            await repository.load("scaled")
        assert await answer(repository, "scaled") == 1

    run(tmp_path, work)


def test_loading_and_unloading_by_name(tmp_path: Path) -> None:
    put(tmp_path, "scaled", scaled(1))

    async def work(repository: Repository) -> None:
        await repository.unload("scaled")
        with pytest.raises(Busy, match="unloaded"):
            repository.model("scaled")
        await repository.reload()  # which does not bring it back
        assert states(repository) == {("scaled", "1"): "UNAVAILABLE"}
        await repository.load("scaled", '{"max_batch_size": 2}')
        model = repository.model("scaled")
        assert isinstance(model, Served)
        assert model.config.waiting(model.found.rows).most_rows == 2
        with pytest.raises(NotFound, match="there is no model 'other'"):
            await repository.load("other")
        with pytest.raises(NotFound, match="there is no model 'other'"):
            await repository.unload("other")
        with pytest.raises(BadRequest, match="is no configuration of a model"):
            await repository.load("scaled", "{")
        assert await answer(repository, "scaled") == 1

    run(tmp_path, work)


def test_files_that_change_are_seen_once_they_rest(tmp_path: Path) -> None:
    put(tmp_path, "scaled", scaled(1))

    async def work(repository: Repository) -> None:
        put(tmp_path, "scaled", scaled(4))
        os.utime(tmp_path / "scaled" / "1" / "model.onnx", ns=(1, 1))
        while await answer(repository, "scaled") != 4:
            await asyncio.sleep(0.01)

    run(tmp_path, work, Settings(watch_s=0.02, preload=False, threads=1))


@pytest.mark.parametrize(
    "path", ["a.onnx", "a/config.pbtxt", "a/1/model.onnx", "a/1/model/graph.nnef", "a/initial_state/h"]
)
def test_whoever_watches_sees_each_file(tmp_path: Path, path: str) -> None:
    for name in ("b", "c"):
        put(tmp_path, name, identity())
    (tmp_path / "nowhere").symlink_to(tmp_path / "is-not-there")
    (tmp_path / "round").symlink_to(tmp_path)
    seen = [files_in(tmp_path), files_in(tmp_path)]
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    for text in ("one", "three"):
        file.write_text(text)
        seen.append(files_in(tmp_path))
    file.unlink()
    seen.append(files_in(tmp_path))
    assert [one == seen[0] for one in seen] == [True, True, False, False, True]
    assert seen[2] != seen[3]
    assert files_in(tmp_path / "b" / "1" / "model.onnx") <= seen[0]
    assert files_in(file) == frozenset()


def test_what_a_configuration_says_reaches_the_model(tmp_path: Path) -> None:
    config = """
        name: "scaled"
        max_batch_size: 8
        input [ { name: "x" data_type: TYPE_FP32 dims: [ 2 ] } ]
        dynamic_batching { max_queue_delay_microseconds: 500 priority_levels: 2 default_priority_level: 2
          default_queue_policy { default_timeout_microseconds: 250000 max_queue_size: 7 } }
        instance_group [ { count: 2 kind: KIND_CPU } ]
        parameters { key: "runtime" value { string_value: "reference" } }
        parameters { key: "facts" value { string_value: '{"x": "B,2,f32"}' } }
        optimization { cuda { graphs: true } }
    """
    put(tmp_path, "scaled", scaled(1), config=config)

    async def work(repository: Repository) -> None:
        model = repository.model("scaled")
        assert isinstance(model, Served)
        assert model.runtime == "reference"
        assert model.signature.inputs[0].fact == "B,2,f32"
        policy = model.config.waiting(model.found.rows)
        assert (policy.most_rows, policy.delay_s, policy.most_waiting, policy.instances) == (8, 0.0005, 7, 2)
        assert (policy.priority, policy.levels, policy.timeout_s, policy.allows_timeout) == (2, 2, 0.25, False)

    run(tmp_path, work)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name 1", "is no configuration of a model"),
        ('{"name": 1, ', "is no configuration of a model"),
        ("[" * 100_000, "is no configuration of a model"),
        ('{"a":' * 100_000, "is no configuration of a model"),
        ('parameters { key: "colour" value { string_value: "red" } }', "there is no parameter 'colour'; parameters: "),
        ('parameters { key: "threads" value { string_value: "0" } }', "threads is '0', wanted a number from 1 on"),
        ('parameters { key: "facts" value { string_value: "[]" } }', "facts is '[]', wanted a dict of JSON"),
        ('parameters { key: "facts" value { string_value: "{\\"x\\": 1}" } }', "facts: wanted texts"),
        ('parameters { key: "transforms" value { string_value: "{" } }', "transforms is '{', wanted a list of JSON"),
    ],
)
def test_configurations_that_are_none(text: str, problem: str) -> None:
    with pytest.raises(CorruptModel) as caught:
        ModelConfig.of_text(text, "config.pbtxt")
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('input { name: "z" }', "there is no input 'z'; inputs: x"),
        ('input { name: "x" data_type: TYPE_INT32 }', "the configuration says INT32, the model FP32"),
        ('input { name: "x" dims: [3] }', "the configuration says dims [3], the model has [-1, 2]"),
        ('max_batch_size: 4 input { name: "x" dims: [3] }', "the configuration says dims [3]"),
        ('output { name: "y" data_type: TYPE_STRING }', "the configuration says BYTES, the model FP32"),
        ('default_model_filename: "../model.onnx"', "there is no '../model.onnx', which the configuration names"),
        ('parameters { key: "kind" value { string_value: "toast" } }', "kind is 'toast', wanted one of tensors"),
        ('parameters { key: "runtime" value { string_value: "toast" } }', "runtime 'toast' is not installed"),
    ],
)
def test_configurations_that_do_not_fit(tmp_path: Path, text: str, problem: str) -> None:
    put(tmp_path, "scaled", scaled(1), config=text)

    async def work(repository: Repository) -> None:
        (entry,) = repository.index
        assert entry.state == "UNAVAILABLE"
        assert problem.lower() in entry.reason.lower()

    run(tmp_path, work)


def test_many_models(tmp_path: Path) -> None:
    for number in range(30):
        put(tmp_path, f"model_{number}", identity() if number % 2 else scaled(number))

    async def work(repository: Repository) -> None:
        assert len(repository.models) == 30
        assert await answer(repository, "model_28") == 28

    run(tmp_path, work)
