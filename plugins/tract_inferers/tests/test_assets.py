"""Assets: policies as one file, written and read back, and what loads them."""

from __future__ import annotations

import io
import pickle
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asset_models as models
import numpy as np
import pytest
from click.testing import CliRunner
from tract_inferers import AssetData, AssetKind, InfererExt
from tract_inferers.assets.format import CrvoWriter

import tract_core as tract
from tract_core.cli.frame import app
from tract_core.errors import CorruptModel, InputError, LimitExceeded, MissingFile, ModelError, PluginError, Unsupported
from tract_core.limits import LoadLimits
from tract_core.model.typed import TypedModel
from tract_core.testing.toys import toy_registry

KINDS = {AssetKind.ONNX: models.onnx_policy(), AssetKind.NNEF: models.old_archive()}
OBSERVATIONS = np.array([[1, -1], [0.5, 2], [0, 0]], np.float32)
NOISE = np.array([[0, 0.25, 0], [1, 0, -1], [0, 0, 0]], np.float32)


class Dripping:
    """A reader that gives so many bytes at a time."""

    def __init__(self, content: bytes, count: int = 1) -> None:
        self.content = io.BytesIO(content)
        self.count = count

    def read(self, count: int) -> bytes:
        return self.content.read(min(count, self.count))


@pytest.fixture(params=KINDS, ids=str)
def asset(request: pytest.FixtureRequest) -> AssetData:
    return AssetData(request.param, KINDS[request.param])


def run(model: Any, **named: np.ndarray) -> np.ndarray:
    model = model.into_model() if hasattr(model, "into_model") else model
    return model.into_runnable().run(named)[0].view()


# --- what is in the file ---


def test_the_header_is_four_letters_three_zeros_and_the_kind() -> None:
    assert AssetData(AssetKind.ONNX, b"model").serialize() == b"CRVO\0\0\0\x01model"
    assert AssetData(AssetKind.NNEF, b"").serialize() == b"CRVO\0\0\0\x02"


def test_an_asset_is_read_as_it_was_written(asset: AssetData, tmp_path: Path) -> None:
    content = asset.serialize()
    asset.save(tmp_path / "policy.crvo")
    assert (tmp_path / "policy.crvo").read_bytes() == content
    with (tmp_path / "policy.crvo").open("rb") as file:
        found = AssetData.deserialize(file)
    assert found == asset == AssetData.deserialize(content) == AssetData.load(tmp_path / "policy.crvo")
    assert (found.kind, found.data) == (asset.kind, KINDS[asset.kind])
    assert pickle.loads(pickle.dumps(found)) == asset
    assert hash(found) == hash(asset)
    assert len(repr(found)) < 200


def test_the_model_is_not_looked_at_before_it_is_loaded() -> None:
    asset = AssetData.deserialize(b"CRVO\0\0\0\x01no model")
    assert asset.data == b"no model"
    with pytest.raises(CorruptModel, match=r"^asset: model: "):
        asset.load_model()


def test_a_reader_may_give_a_few_bytes_at_a_time(asset: AssetData) -> None:
    for count in (1, 3, 7, 8, 9, 1000):
        assert AssetData.deserialize(Dripping(asset.serialize(), count)) == asset
        assert AssetData.from_reader(asset.kind, Dripping(asset.data, count)) == asset


def test_a_socket_is_a_reader(asset: AssetData) -> None:
    here, there = socket.socketpair()
    with here, there, there.makefile("rb") as reader:
        content = asset.serialize()
        here.sendall(content[:5])
        here.sendall(content[5:3000])
        here.shutdown(socket.SHUT_WR)
        assert AssetData.deserialize(reader).data == content[8:3000]


def test_kinds_go_by_member_number_and_name() -> None:
    assert AssetKind(1) is AssetKind("onnx") is AssetKind.ONNX
    assert AssetKind(2) is AssetKind("nnef") is AssetKind.NNEF
    assert [str(kind) for kind in AssetKind] == ["onnx", "nnef"]
    for value in (0, 3, "Onnx", None, b"onnx"):
        with pytest.raises(InputError, match=r"there is no kind of asset .*, wanted 1 \(onnx\) or 2 \(nnef\)"):
            AssetKind(value)
    assert AssetData("nnef", b"").kind is AssetKind.NNEF  # pyright: ignore[reportArgumentType]: as untyped callers do


def test_any_buffer_is_taken_and_copied() -> None:
    data = bytearray(b"abc")
    asset = AssetData(AssetKind.ONNX, memoryview(data))  # pyright: ignore[reportArgumentType]: as untyped callers do
    data[0] = 0
    assert asset.data == b"abc"


# --- what is refused ---


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"^asset: it has 0 bytes, of the 8 that an asset begins with\n  hint: it was cut off"),
        (b"CRVO\0\0\0", "it has 7 bytes"),
        (
            b"CRV0\0\0\0\x01",
            r"it begins with b'CRV0', wanted b'CRVO' as assets do\n  hint: an asset is what 'tract inf",
        ),
        (b"<!doctype html><html>", r"it begins with b'<!do', which is an HTML page"),
        (b"CRVO\0\1\0\x01", r"its bytes 4 to 6 are b'\\x00\\x01\\x00', wanted zeros"),
        (b"CRVO\0\0\0\0", r"its byte 7, the kind of model, is 0, wanted 1 \(onnx\) or 2 \(nnef\)"),
        (b"CRVO\0\0\0\xff", "is 255, wanted"),
    ],
)
def test_headers_that_are_none(content: bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(CorruptModel, match=message):
        AssetData.deserialize(content)
    path = tmp_path / "policy.crvo"
    path.write_bytes(content or b"C")
    with pytest.raises(CorruptModel, match=r"policy\.crvo: it") as caught:
        tract.load(path)
    assert caught.value.hint


@pytest.mark.parametrize("kind", AssetKind, ids=str)
@pytest.mark.parametrize("kept", [0.0, 0.01, 0.1, 0.5, 0.7])
def test_a_model_that_was_cut_off(kind: AssetKind, kept: float) -> None:
    whole = KINDS[kind]
    with pytest.raises(ModelError, match=r"^asset: ") as caught:
        AssetData(kind, whole[: int(len(whole) * kept)]).load_model()
    assert caught.value.hint


class Failing:
    def read(self, count: int) -> bytes:
        raise ConnectionResetError(104, "Connection reset by peer")


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (io.StringIO("CRVO"), r"the reader gave str, wanted bytes\n  hint: open the file with 'rb'"),
        (Failing(), "the reader failed: Connection reset by peer"),
        ("policy.crvo", r"read from bytes or a reader, got str\n  hint: AssetData.load\(path\)"),
        (None, "got NoneType"),
    ],
)
def test_readers_that_are_none(reader: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^asset: .*{message}"):
        AssetData.deserialize(reader)
    with pytest.raises(InputError, match=f"^asset: .*{message}"):
        AssetData.from_reader(AssetKind.ONNX, reader)


def test_no_more_is_read_than_is_allowed() -> None:
    class Endless:
        given = 0

        def read(self, count: int) -> bytes:
            self.given += count
            return bytes(count)

    reader = Endless()
    with pytest.raises(LimitExceeded, match="5000000 are allowed"):
        AssetData.from_reader(AssetKind.ONNX, reader, limits=LoadLimits(max_bytes=5_000_000))
    assert reader.given < 8_000_000


def test_limits_hold_for_the_model(asset: AssetData, tmp_path: Path) -> None:
    limits = LoadLimits(max_nodes=1)
    with pytest.raises(LimitExceeded, match=r"^asset: .*more than 1 nodes"):
        AssetData.deserialize(asset.serialize(), limits=limits).load_model()
    asset.save(tmp_path / "policy.crvo")
    with pytest.raises(LimitExceeded, match=r"policy\.crvo: .*more than 1 nodes"):
        tract.load(tmp_path / "policy.crvo", limits=limits)
    with pytest.raises(LimitExceeded, match="10 are allowed"):
        AssetData.load(tmp_path / "policy.crvo", limits=LoadLimits(max_bytes=10))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "policy.crvo").touch()
    with pytest.raises(MissingFile, match=r"did you mean '.*policy.crvo'"):
        AssetData.load(tmp_path / "policy2.crvo")
    with pytest.raises(CorruptModel, match="the file is empty"):
        AssetData.load(tmp_path / "policy.crvo")
    with pytest.raises(InputError, match="it cannot be written"):
        AssetData(AssetKind.ONNX, b"").save(tmp_path / "absent" / "policy.crvo")
    with pytest.raises(InputError, match="a folder, which is not written over"):
        AssetData(AssetKind.ONNX, b"").save(tmp_path)


# --- as a format ---


def test_it_loads_as_any_model_does(asset: AssetData, tmp_path: Path) -> None:
    asset.save(tmp_path / "policy.crvo")
    names = ("obs", "noise") if asset.kind is AssetKind.ONNX else ("vector_observation_0", "epsilon_0")
    given = dict(zip(names, (OBSERVATIONS, NOISE), strict=True))
    wanted = models.expected(OBSERVATIONS, NOISE)
    for model in (
        tract.load(tmp_path / "policy.crvo"),
        tract.crvo().load(tmp_path / "policy.crvo"),
        tract.crvo().load_bytes(asset.serialize()),
        asset.load_model(),
    ):
        np.testing.assert_allclose(run(model, **given), wanted, rtol=1e-6)


def test_a_model_is_saved_as_an_asset_with_an_archive(tmp_path: Path) -> None:
    model = tract.onnx().load_bytes(models.onnx_policy()).into_model()
    model.save(tmp_path / "policy.crvo")
    asset = AssetData.load(tmp_path / "policy.crvo")
    assert asset.kind is AssetKind.NNEF
    assert tract.load(tmp_path / "policy.crvo").typed == model.typed
    model.save(tmp_path / "again.crvo")
    assert (tmp_path / "again.crvo").read_bytes() == asset.serialize()
    assert asset.data.startswith(b"graph.nnef\0")


def test_operators_that_only_onnx_has_are_written_and_read(tmp_path: Path) -> None:
    tract.onnx().load_bytes(models.trees_policy()).into_model().save(tmp_path / "policy.crvo")
    given = np.array([[0], [0.5], [0.75]], np.float32)
    np.testing.assert_array_equal(run(tract.load(tmp_path / "policy.crvo"), obs=given), [[1], [1], [2]])


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "policy.crvo"
    path.write_bytes(b"before")
    monkeypatch.setattr("tract_inferers.assets.format.nnef_bytes", lambda _: 1 / 0)
    with pytest.raises(tract.errors.PluginError):
        tract.onnx().load_bytes(models.onnx_policy()).into_model().save(path)
    assert path.read_bytes() == b"before"
    assert [one.name for one in tmp_path.iterdir()] == ["policy.crvo"]


def call(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_commands_of_every_model_take_it(asset: AssetData, tmp_path: Path) -> None:
    path = tmp_path / "policy.crvo"
    asset.save(path)
    assert "Tanh" in call(path, "dump").output
    report = call(path, "doctor")
    assert report.exit_code == 0
    assert f"of kind {asset.kind}, {len(asset.data)} bytes" in report.output
    cooked = call("cook", path, "-o", tmp_path / "cooked.crvo")
    assert cooked.exit_code == 0, cooked.output
    assert AssetData.load(tmp_path / "cooked.crvo").kind is AssetKind.NNEF
    assert call(path, "save", tmp_path / "saved.crvo").exit_code == 0


def test_the_doctor_examines_what_does_not_load(tmp_path: Path) -> None:
    path = tmp_path / "policy.crvo"
    unknown = models.onnx_policy().replace(b"Tanh", b"Tonh")
    AssetData(AssetKind.ONNX, unknown).save(path)
    report = call(path, "doctor")
    assert report.exit_code == 1
    assert "Tonh" in report.output
    assert "operator sets  ai.onnx 17" in report.output
    path.write_bytes(b"CRVO\0\0\0\x09")
    assert "its byte 7, the kind of model, is 9" in call(path, "doctor").output


# --- from ONNX to NNEF ---


def batch(asset: AssetData) -> dict[int, dict[str, np.ndarray]]:
    names = ("obs", "noise") if asset.kind is AssetKind.ONNX else ("vector_observation_0", "epsilon_0")
    return {
        7 * row: dict(zip(names, pair, strict=True)) for row, pair in enumerate(zip(OBSERVATIONS, NOISE, strict=True))
    }


@pytest.mark.parametrize(
    "load",
    [
        AssetData.load_basic,
        lambda asset: AssetData.load_fixed(asset, [2], runtime="reference"),
        lambda asset: AssetData.load_memoizing(asset, [3]),
        AssetData.load_memoizing,
        AssetData.load_dynamic,
    ],
    ids=["basic", "fixed", "preloaded", "memoizing", "dynamic"],
)
def test_it_becomes_a_policy(asset: AssetData, load: Callable[[AssetData], InfererExt]) -> None:
    found = load(asset).infer_batch(batch(asset))
    wanted = models.expected(OBSERVATIONS, NOISE)
    (name,) = found.arrays
    for row in range(len(wanted)):
        np.testing.assert_allclose(found[7 * row][name], wanted[row], rtol=1e-6)


@pytest.mark.parametrize("size", ["batch", "N", 1])
def test_an_archive_takes_any_number_of_agents(size: str | int) -> None:
    asset = AssetData(AssetKind.ONNX, models.onnx_policy(size))
    found = asset.to_nnef()
    assert found.kind is AssetKind.NNEF
    model = found.load_model()
    assert [str(fact) for fact in (model.input_fact(0), model.input_fact(1), model.output_fact(0))] == [
        "N,2,f32",
        "N,3,f32",
        "N,3,f32",
    ]
    for rows in (0, 1, 3):
        act = run(found.load_model(), obs=OBSERVATIONS[:rows], noise=NOISE[:rows])
        np.testing.assert_allclose(act, models.expected(OBSERVATIONS[:rows], NOISE[:rows]), rtol=1e-6)
    np.testing.assert_array_equal(
        found.load_dynamic().infer_batch(batch(asset)).arrays["act"],
        asset.load_dynamic().infer_batch(batch(asset)).arrays["act"],
    )


def test_the_same_model_gives_the_same_bytes() -> None:
    first, second = (AssetData(AssetKind.ONNX, models.onnx_policy()).to_nnef() for _ in range(2))
    assert first == second
    assert first.data.startswith(b"graph.nnef\0")
    assert AssetData.deserialize(first.serialize()) == first


def test_an_archive_for_so_many_agents() -> None:
    found = AssetData(AssetKind.ONNX, models.onnx_policy()).to_nnef(3)
    model = found.load_model()
    assert str(model.input_fact(0)) == "3,2,f32"
    act = run(model, obs=OBSERVATIONS, noise=NOISE)
    np.testing.assert_allclose(act, models.expected(OBSERVATIONS, NOISE), rtol=1e-6)


def test_operators_that_only_onnx_has_are_converted() -> None:
    found = AssetData(AssetKind.ONNX, models.trees_policy()).to_nnef()
    act = run(found.load_model(), obs=np.array([[0], [0.75]], np.float32))
    np.testing.assert_array_equal(act, [[1], [2]])


def test_what_cannot_be_converted() -> None:
    with pytest.raises(InputError, match=r"^asset: it is NNEF already\n  hint: only ONNX assets"):
        AssetData(AssetKind.NNEF, models.old_archive()).to_nnef()
    for size in (0, -1, True, 2.0, "3"):
        with pytest.raises(InputError, match="a batch size is an integer from 1 on, got"):
            AssetData(AssetKind.ONNX, models.onnx_policy()).to_nnef(size)  # pyright: ignore[reportArgumentType]
    for_four = AssetData(AssetKind.ONNX, models.onnx_policy(4))
    for make in (AssetData.to_nnef, AssetData.load_basic, AssetData.load_dynamic):
        with pytest.raises(Unsupported, match=r"^asset: .*input 'obs': 4,2,f32 has no axis of agents"):
            make(for_four)


def test_without_the_format_nnef_nothing_is_written(tmp_path: Path) -> None:
    model = TypedModel(registry=toy_registry("toys"))
    with pytest.raises(
        PluginError, match=r"format 'nnef' is not installed.*\n  hint: tract-nnef is installed, but not in use"
    ):
        CrvoWriter().write(model, tmp_path / "policy.crvo")
    assert not list(tmp_path.iterdir())
