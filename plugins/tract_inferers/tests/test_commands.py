"""``tract inferers``: policies shown, packaged, converted, run and measured from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import asset_models as models
import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result
from onnx import TensorProto, helper
from tract_inferers import AssetData, AssetKind, DynamicInferer
from tract_inferers.cli.axes import PlotAxis
from tract_inferers.cli.measure import Figure
from tract_inferers.cli.picture import drawn
from tract_inferers.cli.plot import plotted

import tract_core as tract
from tract_core.cli.frame import app

Call = Callable[..., Result]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with policies, which is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "policy.onnx").write_bytes(models.onnx_policy())
    (tmp_path / "old.nnef.tar").write_bytes(models.old_archive())
    AssetData(AssetKind.ONNX, models.onnx_policy()).save("policy.crvo")
    (tmp_path / "counter.onnx").write_bytes(counter())
    return tmp_path


def counter() -> bytes:
    """steps:0 = s:0 + obs, act = steps + eps: a memory, whose names have colons, and noise; integers beside them."""
    values = {
        "obs": [TensorProto.FLOAT, 2],
        "s:0": [TensorProto.FLOAT, 2],
        "eps": [TensorProto.FLOAT, 2],
        "flag": [TensorProto.BOOL],
    }
    nodes = [
        helper.make_node("Add", ["s:0", "obs"], ["steps:0"]),
        helper.make_node("Add", ["steps:0", "eps"], ["sum"]),
        helper.make_node("Cast", ["flag"], ["number"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["number", "one"], ["column"]),
        helper.make_node("Mul", ["sum", "column"], ["act"]),
    ]
    inputs = [helper.make_tensor_value_info(name, kind, ["N", *shape]) for name, (kind, *shape) in values.items()]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 2]) for name in ("act", "steps:0")]
    one = helper.make_tensor("one", TensorProto.INT64, [1], [1])
    graph = helper.make_graph(nodes, "counter", inputs, outputs, [one])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def call(line: str) -> Result:
    result = CliRunner().invoke(app, ["inferers", *line.split()])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.output
    return result


def read(line: str) -> Any:
    result = call(line)
    assert result.exit_code == 0, result.output
    return json.loads(result.output)


# --- api, describe ---


@pytest.mark.usefixtures("folder")
def test_api_lists_what_one_agent_gives_and_gets() -> None:
    for name in ("policy.onnx", "policy.crvo"):
        assert read(f"api {name} --json") == {
            "inputs": [
                {"name": "obs", "shape": [2], "type": "float32"},
                {"name": "noise", "shape": [3], "type": "float32"},
            ],
            "outputs": [{"name": "act", "shape": [3], "type": "float32"}],
        }
    assert [one["name"] for one in read("api old.nnef.tar --json")["inputs"]] == ["epsilon_0", "vector_observation_0"]
    lines = [line.split() for line in call("api counter.onnx").output.splitlines()]
    assert lines == [
        ["name", "shape", "type"],
        ["input", "obs", "2", "float32"],
        ["input", "s:0", "2", "float32"],
        ["input", "eps", "2", "float32"],
        ["input", "flag", "-", "bool"],
        ["output", "act", "2", "float32"],
        ["output", "steps:0", "2", "float32"],
    ]


@pytest.mark.usefixtures("folder")
def test_what_noise_and_memory_take_care_of_is_not_listed() -> None:
    found = read("api counter.onnx -w eps -r s:0:steps:0 --json")
    assert [one["name"] for one in found["inputs"]] == ["obs", "flag"]
    assert [one["name"] for one in found["outputs"]] == ["act"]


def test_describe(folder: Path) -> None:
    size = len(models.onnx_policy())
    assert read("describe policy.crvo --json") == {"file": "policy.crvo", "asset": True, "kind": "onnx", "bytes": size}
    assert read("describe policy.onnx --json") == {"file": "policy.onnx", "asset": False, "kind": "onnx", "bytes": size}
    assert call("describe policy.crvo").output.startswith("policy.crvo: an asset, which holds a model of kind onnx, ")
    tract.load("policy.onnx").save(folder / "p.nnef")
    assert call("describe p.nnef").output.startswith("p.nnef: a model of kind nnef, ")


# --- package, to-nnef ---


def test_package(folder: Path) -> None:
    for source, kind in (("policy.onnx", AssetKind.ONNX), ("old.nnef.tar", AssetKind.NNEF)):
        assert (call(f"package {source} a.crvo").exit_code, call(f"package {source} a.crvo").output) == (0, "")
        assert AssetData.load("a.crvo") == AssetData(kind, (folder / source).read_bytes())
    assert call("package policy.onnx a.crvo -O").exit_code == 0
    assert AssetData.load("a.crvo") == AssetData(AssetKind.ONNX, models.onnx_policy()).to_nnef()
    assert call("package policy.onnx a.crvo -O -N 3").exit_code == 0
    assert AssetData.load("a.crvo") == AssetData(AssetKind.ONNX, models.onnx_policy()).to_nnef(3)


def test_what_does_not_load_is_not_packaged(folder: Path) -> None:
    Path("broken.onnx").write_bytes(models.onnx_policy()[:80])
    Path("packed.nnef.tgz").write_bytes(b"\x1f\x8b" + bytes(30))
    Path("a.crvo").write_bytes(b"before")
    for line, message in {
        "broken.onnx a.crvo": "Error: broken.onnx: ",
        "policy.crvo a.crvo": "a model of format crvo is not packaged, wanted onnx or nnef",
        "packed.nnef.tgz a.crvo": "it is compressed, wanted a tar that is not",
        "old.nnef.tar a.crvo -O": "old.nnef.tar: NNEF is not optimized further",
        "absent.onnx a.crvo": "absent.onnx: there is no such file",
        "policy.onnx absent/a.crvo": "it cannot be written: No such file or directory",
    }.items():
        result = call(f"package {line}")
        assert result.exit_code == 1
        assert message in result.output
    assert Path("a.crvo").read_bytes() == b"before"


def test_tensors_in_other_files_go_into_an_archive(folder: Path) -> None:
    model = onnx.load_model_from_string(models.onnx_policy())
    onnx.save(model, "outside.onnx", save_as_external_data=True, size_threshold=0, location="outside.bin")
    assert Path("outside.bin").exists()
    assert "outside.onnx: " in call("package outside.onnx a.crvo").output
    assert not Path("a.crvo").exists()
    assert call("package outside.onnx a.crvo -O").exit_code == 0
    assert AssetData.load("a.crvo") == AssetData(AssetKind.ONNX, models.onnx_policy()).to_nnef()


def test_to_nnef(folder: Path) -> None:
    wanted = AssetData(AssetKind.ONNX, models.onnx_policy()).to_nnef()
    assert call("to-nnef policy.onnx a.nnef.tar").output == ""
    assert Path("a.nnef.tar").read_bytes() == wanted.data
    assert call("to-nnef -b 4 policy.onnx a.nnef.tar").exit_code == 0
    assert str(tract.load("a.nnef.tar").input_fact(0)) == "4,2,f32"
    assert call("to-nnef --beside policy.onnx counter.onnx").exit_code == 0
    assert Path("policy.nnef.tar").read_bytes() == wanted.data
    assert DynamicInferer.from_model(tract.load("counter.nnef.tar")).input_shapes()[0].shape == (2,)


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("policy.onnx", 2, "give an .onnx and the .nnef.tar to write, or --beside and any number of .onnx"),
        ("policy.onnx counter.onnx a.nnef.tar", 2, "or --beside"),
        ("policy.onnx a.tar", 2, "a name that ends with .nnef.tar, got 'a.tar'"),
        ("old.nnef.tar a.nnef.tar", 2, "'old.nnef.tar' has another ending than .onnx"),
        ("--beside policy.onnx old.nnef.tar", 2, "'old.nnef.tar' has another ending than .onnx"),
        ("--beside policy.onnx absent.onnx", 1, "absent.onnx: there is no such file"),
        ("policy.onnx a.nnef.tar -b 0", 2, "0 is not in the range"),
    ],
)
def test_all_names_are_checked_first(folder: Path, line: str, code: int, message: str) -> None:
    before = sorted(folder.iterdir())
    result = call(f"to-nnef {line}")
    assert result.exit_code == code
    assert message in result.output
    assert sorted(folder.iterdir()) == before


# --- run ---


@pytest.mark.usefixtures("folder")
def test_run_gives_the_first_step() -> None:
    found = read("run policy.onnx -b 3 --print-input --print-output --json")
    assert (found["batch_size"], found["ms"] > 0) == (3, True)
    values = {name: np.array(one["values"]) for name, one in {**found["inputs"], **found["outputs"]}.items()}
    np.testing.assert_array_equal(values["obs"], [[0, 0], [1, 1], [2, 2]])
    np.testing.assert_allclose(values["act"], models.expected(values["obs"], values["noise"]), rtol=1e-6)
    assert found["outputs"]["act"]["fact"] == "3,3,f32"


@pytest.mark.usefixtures("folder")
def test_run_with_memory_and_noise() -> None:
    """Though it is run twice, it is the first step that is shown: s is 0, and the noise that of step 0."""
    line = "run counter.onnx -b 3 -w eps -r s:0:steps:0 --print-input --print-output --json"
    first, again, other = read(line), read(line), read(f"{line} --seed 1")
    assert first["outputs"] == again["outputs"] != other["outputs"]
    assert first["inputs"].keys() == {"obs", "flag"}
    assert first["inputs"]["flag"]["values"] == [False, True, True]
    act = np.array(first["outputs"]["act"]["values"])
    policy = tract.load("counter.onnx").into_runnable()
    eps = act - np.arange(3)[:, None]
    eps[0] = 0
    given = [np.repeat(np.arange(3, dtype=np.float32), 2).reshape(3, 2), np.zeros((3, 2), np.float32)]
    wanted, _ = policy.run([*given, eps.astype(np.float32), np.array([False, True, True])])
    np.testing.assert_allclose(act, wanted.view(), rtol=1e-6)
    assert 0.1 < abs(eps[1:]).max() < 6


@pytest.mark.usefixtures("folder")
def test_run_prints_for_people() -> None:
    plain = call("run policy.crvo").output
    assert plain.startswith("policy.crvo: ")
    assert " ms for 1 agent, " in plain
    assert plain.count("\n") == 1
    printed = call("run policy.crvo -b 2 --random --print-output --print-input --runtime reference").output
    assert "input obs 2,2,f32" in printed
    assert "output act 2,3,f32" in printed
    other = call("run policy.crvo -b 2 --random --seed 3 --print-input").output
    assert other.partition("input obs")[2] != printed.partition("input obs")[2].partition("output")[0]


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("run policy.onnx -w nois", 1, 'no input key "nois"; there are obs: 2,float32; noise: 3,float32'),
        ("run policy.onnx -r auto", 1, "hint: name the pairs: -r IN:OUT,IN:OUT"),
        ("run counter.onnx -r h:steps:0", 1, "no input named 'h'"),
        ("run counter.onnx -r s:0:steps:0,auto", 2, "either auto, or pairs as IN:OUT,IN:OUT"),
        ("run counter.onnx -r s", 2, "'s' is no pair; write auto, or pairs as in h_in:h_out,c_in:c_out"),
        ("run counter.onnx -r s:0:steps:0 -w s:0", 1, "a layer below takes care of it already"),
        ("run policy.onnx -b 0", 2, "0 is not in the range"),
        ("run policy.onnx --runtime cpux", 1, "runtime 'cpux' is not installed"),
        ("run polcy.onnx", 1, "hint: did you mean 'policy.onnx'?"),
        ("run policy.txt", 1, "there is no such file"),
        ("benchmark policy.onnx -b 4-2", 2, "'4-2' is empty"),
        ("benchmark policy.onnx -b 0-2", 2, "'0-2' begins below 1"),
        ("benchmark policy.onnx -b 1,,2", 2, "'' is no size; write them as in 1-8,16,32"),
        ("benchmark policy.onnx -b 1-100000", 2, "more than 1000 sizes"),
        ("benchmark policy.onnx -b 1,8 -c 7", 2, "a batch of 8 is larger than the 7 observations of -c"),
        ("benchmrk policy.onnx", 2, "did you mean 'benchmark'?"),
        ("benchmark policy.onnx --cuont 3", 2, "did you mean the flag --count?"),
        ("package policy.onnx a.crvo -N 3", 2, "-N says how many agents -O makes it for: give both, or none"),
        ("package policy.onnx a.bin", 2, "a name that ends with .crvo, got 'a.bin'"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_mistakes(line: str, code: int, message: str) -> None:
    result = call(line)
    assert result.exit_code == code, result.output
    assert message in result.output


# --- benchmark ---


@pytest.mark.usefixtures("folder")
def test_benchmark_measures_each_size_once() -> None:
    found = read("benchmark counter.onnx -b 1-3,2,8 -c 17 -w eps -r s:0:steps:0 --json --runtime reference")
    assert [(one["batch_size"], one["batches"]) for one in found] == [(1, 17), (2, 8), (3, 5), (8, 2)]
    for one in found:
        low, high = one["quartiles"]
        assert 0 < low <= one["median"] <= high
        assert one["stddev"] >= 0
        assert one["total"] == pytest.approx(one["mean"] * one["batch_size"] * one["batches"])


def test_figures_are_those_of_one_agent() -> None:
    figure = Figure.of(4, [0.004, 0.008, 0.012, 0.040])
    assert (figure.batch_size, figure.batches) == (4, 4)
    np.testing.assert_allclose([figure.mean, figure.median, figure.total], [4, 2.5, 64])
    np.testing.assert_allclose(figure.stddev, np.std([1, 2, 3, 10]))


@pytest.mark.usefixtures("folder")
def test_benchmark_prints_a_table_and_a_plot(tmp_path: Path) -> None:
    shown = call("benchmark policy.crvo -b 1,4,64 -c 64 --svg plot.svg --runtime reference").output
    assert shown.splitlines()[1].split() == ["batch", "batches", "mean", "stddev", "median", "total", "ms"]
    assert [line.split()[0] for line in shown.splitlines()[2:5]] == ["1", "4", "64"]
    assert "for one agent" in shown
    assert max(map(len, shown.splitlines())) < 80
    root = ElementTree.fromstring((tmp_path / "plot.svg").read_text())
    assert len(root.findall(".//{*}circle")) == 3
    assert "*" not in call("benchmark policy.crvo -b 4 -c 8 --runtime reference").output


# --- plots ---


def test_a_plot_has_a_star_for_each_point() -> None:
    lines = plotted([(1, 10), (2, 5), (3, 5)], x_title="size", y_title="ms")
    assert lines[0] == "ms"
    assert lines[-1].endswith("size")
    assert sum(line.count("*") for line in lines) == 3
    rows = [number for number, line in enumerate(lines) if "*" in line]
    assert rows[0] < rows[1]
    assert lines[-2].split() == ["1", "2", "3"]


@pytest.mark.parametrize("values", [[3.0], [0.0, 0.0], [1, 1.5], [1, 1e6], [1e-9, 2e-9], [0.0, 5.0], [7, 56], [5, 41]])
def test_values_stand_on_their_axis(values: list[float]) -> None:
    for from_zero in (False, True):
        axis = PlotAxis.over(values, from_zero=from_zero)
        assert all(0 <= axis.share(value) <= 1 for value in values)
        assert axis.share(max(values)) >= axis.share(min(values))
        ticks = axis.ticks(6)
        assert 1 <= len(ticks) <= 7
        assert all(-1e-9 <= axis.share(tick) <= 1 + 1e-9 for tick in ticks)
        assert axis.log == (min(values) > 0 and max(values) / min(values) >= 8)


def test_many_points_and_large_values_stay_readable() -> None:
    points = [(float(size), 1e5 / size) for size in range(1, 200)]
    lines = plotted(points, x_title="agents", y_title="us")
    assert max(map(len, lines)) < 80
    labels = lines[-2].split()
    assert labels == sorted(labels, key=int)
    assert all(int(label) in range(1, 200) for label in labels)
    figures = [Figure(size, 3, 1.0, 0.1, 0.9, (0.8, 1.1), 3.0) for size in range(1, 200)]
    root = ElementTree.fromstring(drawn(figures, title="<policy> & co"))
    assert "<policy> & co" in [text.text for text in root.findall(".//{*}text")]


def test_help_names_every_subcommand() -> None:
    for line in ("", "--help"):
        shown = call(line).output
        for name in ("api", "describe", "package", "to-nnef", "benchmark", "run"):
            assert name in shown
            assert call(f"{name} --help").exit_code == 0
