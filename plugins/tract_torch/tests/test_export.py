"""Archives of modules: names, sizes, forms, and what is refused."""

from __future__ import annotations

import getpass
import gzip
import logging
import platform
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from calling import Calling
from tract_nnef.archive.reading import open_archive
from tract_torch import KhronosNNEF, TractNNEF, VariableNamingScheme, export_model_to_nnef

import tract_core as tract
from tract_core.errors import InputError, ModelWarning, Unsupported, Unwritable

TARGET = TractNNEF("0.23.9")


class Network(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.ReLU())
        self.head = torch.nn.Linear(4, 5)

    def forward(self, image: torch.Tensor, scales: dict[str, torch.Tensor]) -> dict[str, Any]:
        pooled = self.blocks(image).mean((2, 3)) * scales["k"]
        return {"odds": self.head(pooled), "parts": (pooled, image.shape[0])}


def example() -> tuple[Any, ...]:
    return torch.randn(2, 3, 8, 8), {"k": torch.rand(4)}


def text_of(path: Path) -> str:
    return bytes(open_archive(path).content("graph.nnef")).decode()


def add_one(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def test_names_go_over_nested_structures(tmp_path: Path) -> None:
    target = TARGET.with_dynamic_axes({"image": {0: "B", -1: "W"}})
    path = export_model_to_nnef(Network(), example(), tmp_path / "m.nnef", target, ["image", "by"], ["found"])
    model = tract.load(path)
    assert model.input_names() == ["image", "by_k"]
    assert model.output_names() == ["found_odds", "found_parts_0", "found_parts_1"]
    assert [str(fact) for fact in model.input_facts()] == ["B,3,8,W,f32", "4,f32"]


def test_names_may_be_those_of_all_tensors_and_have_defaults(tmp_path: Path) -> None:
    path = export_model_to_nnef(Network(), example(), tmp_path / "m.nnef", TARGET, ["a", "b"], ["x", "y", "z"])
    assert tract.load(path).output_names() == ["x", "y", "z"]
    path = export_model_to_nnef(Network(), example(), tmp_path / "n.nnef", TARGET)
    assert tract.load(path).input_names() == ["input_0", "input_1_k"]
    assert tract.load(path).output_names() == ["output_odds", "output_parts_0", "output_parts_1"]
    image, scales = example()
    path = export_model_to_nnef(Network(), {"scales": scales, "image": image}, tmp_path / "o.nnef", TARGET)
    assert tract.load(path).input_names() == ["image", "scales_k"]


def test_an_axis_of_one_in_the_example_may_be_dynamic(tmp_path: Path) -> None:
    target = TARGET.with_dynamic_axes({"input_0": ["a", 1][1:]})
    path = export_model_to_nnef(Calling(add_one), torch.zeros(3, 1), tmp_path / "m.nnef", target)
    assert str(tract.load(path).input_facts()[0]) == "3,input_0_dynamic_axes_0,f32"


def test_sizes_may_be_all_those_that_the_program_is_right_for(tmp_path: Path) -> None:
    def halves(x: torch.Tensor) -> torch.Tensor:
        half = x.shape[1] // 2
        return x[:, :half] + x[:, half:]

    target = TARGET.with_dynamic_axes({"input_0": {0: "B", 1: "S"}})
    archive = export_model_to_nnef(Calling(halves), torch.zeros(3, 8), tmp_path / "m.nnef", target)
    runnable = tract.load(archive).into_runnable()
    x = np.arange(12, dtype=np.float32).reshape(1, 12)
    np.testing.assert_array_equal(np.asarray(runnable.run([x])[0]), x[:, :6] + x[:, 6:])
    with pytest.raises(tract.TractError, match="does not hold for B=1, S=7"):
        runnable.run([np.zeros((1, 7), np.float32)])


@pytest.mark.parametrize(
    ("name", "level", "found"),
    [
        ("m.nnef", 0, "m.nnef.tar"),
        ("m.nnef", 3, "m.nnef.tgz"),
        ("m.nnef", None, "m.nnef"),
        ("m.nnef.tar", 0, "m.nnef.tar"),
        ("m.nnef.tgz", 0, "m.nnef.tgz"),
        ("m.nnef.tar.gz", 9, "m.nnef.tar.gz"),
    ],
)
def test_the_form_follows_level_and_name(tmp_path: Path, name: str, level: int | None, found: str) -> None:
    path = export_model_to_nnef(Calling(add_one), torch.zeros(3), tmp_path / name, TARGET, compression_level=level)
    assert path == tmp_path / found
    assert [one.name for one in tmp_path.iterdir()] == [found]
    assert path.is_dir() == (level is None)
    assert path.is_dir() or tarfile.is_tarfile(path)
    assert path.is_dir() or (path.read_bytes()[:2] == b"\x1f\x8b") == found.endswith("gz")
    (y,) = tract.load(path).into_runnable().run([np.ones(3, np.float32)])
    np.testing.assert_array_equal(y, [2, 2, 2])


def test_weights_are_found_under_their_names(tmp_path: Path) -> None:
    network = Network()
    path = export_model_to_nnef(network, example(), tmp_path / "m.nnef", TARGET, compression_level=None)
    wanted = {f"{name}.dat" for name, value in network.state_dict().items() if value.is_floating_point()}
    assert {one.name for one in path.iterdir()} == {*wanted, "graph.nnef"}
    export_model_to_nnef(network, example(), tmp_path / "n.nnef", TARGET, compression_level=None, keep_parameters=False)
    assert not (tmp_path / "n.nnef" / "blocks.1.weight.dat").exists()


def test_the_same_module_gives_the_same_bytes_and_tells_nobody_about_its_user(tmp_path: Path) -> None:
    network = Network()
    one, other = (
        export_model_to_nnef(network, example(), tmp_path / f"{name}.nnef", TARGET, compression_level=6).read_bytes()
        for name in "ab"
    )
    assert one == other
    text = gzip.decompress(one).decode("latin-1")
    private = [platform.node(), "pytest", str(tmp_path)]
    assert not [word for word in private if word and word in text]


def test_identity_is_told_where_it_is_asked_for(tmp_path: Path) -> None:
    target = TractNNEF("0.23.9", dump_identity_properties=True, specific_properties={"licence": 'MIT "or" so\n\\'})
    path = export_model_to_nnef(Calling(add_one), torch.zeros(3), tmp_path / "m.nnef", target)
    held = {name: str(value) for name, value in tract.load(path).typed.properties.items()}
    assert held["user"] == getpass.getuser()
    assert held["licence"] == 'MIT "or" so\n\\'
    assert held["tract_target_version"] == "0.23.9"
    assert {"export_cmd", "hostname", "os", "export_date", "py_version", "exported_py_class"} <= held.keys()


@pytest.mark.parametrize(
    ("scheme", "name"),
    [
        ("raw", "linear"),
        ("natural_verbose", "head_linear"),
        ("natural_verbose_camel", "headLinear"),
        ("numeric", "v_"),
    ],
)
def test_naming_schemes(tmp_path: Path, scheme: str, name: str) -> None:
    path = tmp_path / "m.nnef.tar"
    export_model_to_nnef(Network(), example(), path, TARGET, nnef_variable_naming_scheme=scheme)
    assert f"  {name}" in text_of(path)
    assert "head_weight = variable" in text_of(path)
    assert VariableNamingScheme(scheme).value == scheme


def test_extensions_become_part_of_the_archive(tmp_path: Path) -> None:
    target = TARGET.with_dynamic_axes({"input_0": {0: "P"}})
    lines = ["tract_assert P >= 1", "tract_assert tg: P==1", "tract_symbol Q", "my_extension a b"]
    path = export_model_to_nnef(Calling(add_one), torch.zeros(3), tmp_path / "m.nnef", target, custom_extensions=lines)
    assert all(f"extension {line}" in text_of(path) for line in ("tract_symbol Q", "my_extension a b"))
    with pytest.raises(tract.TractError, match="P"):
        tract.load(path).into_runnable().run([np.zeros(0, np.float32)])


def test_an_output_may_be_an_input(tmp_path: Path) -> None:
    module = Calling(lambda x: (x, x * 2))
    path = export_model_to_nnef(module, torch.zeros(3), tmp_path / "m.nnef", TARGET, ["x"], ["same", "double"])
    same, double = tract.load(path).into_runnable().run([np.ones(3, np.float32)])
    np.testing.assert_array_equal(np.asarray(same) * 2, double)
    with pytest.raises(InputError, match="'x' is the name of an input and of an output"):
        export_model_to_nnef(module, torch.zeros(3), tmp_path / "n.nnef", TARGET, ["x"], ["x", "double"])
    assert not (tmp_path / "n.nnef.tar").exists()


def test_what_is_no_tensor_becomes_part_of_the_model_with_a_warning(tmp_path: Path) -> None:
    module = Calling(lambda x, count: x * count)
    with pytest.warns(ModelWarning, match="3 in the example is no tensor"):
        path = export_model_to_nnef(module, (torch.zeros(3), 3), tmp_path / "m.nnef", TARGET)
    (y,) = tract.load(path).into_runnable().run([np.ones(3, np.float32)])
    np.testing.assert_array_equal(y, [3, 3, 3])


def test_the_standard_alone(tmp_path: Path) -> None:
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU())
    target = KhronosNNEF("1.0.5")
    path = export_model_to_nnef(module, torch.randn(2, 3, 8, 8), tmp_path / "m.nnef", target)
    assert "tract_" not in text_of(path)
    assert target.report is not None
    assert target.report.archive == str(path)
    with pytest.raises(Unwritable, match="cannot be written with the standard alone"):
        export_model_to_nnef(Calling(torch.erf), torch.zeros(3), tmp_path / "n.nnef", KhronosNNEF("1.0.5"))
    assert [one.name for one in tmp_path.iterdir()] == ["m.nnef.tar"]


REFUSED = [
    ({"file_path_export": "m.tar"}, InputError, "the name of an archive holds '.nnef'"),
    ({"file_path_export": "m.nnef.tar", "compression_level": 5}, InputError, "plain tar, and compression of level 5"),
    ({"file_path_export": "m.nnef.tgz", "compression_level": None}, InputError, "and a folder is asked"),
    ({"compression_level": 10}, InputError, "compression_level is 10, wanted None for a folder, or 0 to 9"),
    ({"inference_target": "tract"}, InputError, "inference_target is str"),
    ({"model": "module"}, InputError, "the module is str, wanted a torch.nn.Module"),
    ({"args": ()}, InputError, "the example does not fit Network: missing"),
    ({"args": 3.0}, InputError, "args is float"),
    ({"input_names": ["a", "a"]}, InputError, "two inputs have the name 'a'"),
    ({"input_names": ["a", "b", "c"]}, InputError, "3 names for 2 inputs"),
    ({"input_names": "ab"}, InputError, "the names of the inputs are 'ab', wanted a list of texts"),
    ({"output_names": ["a", "b"]}, InputError, "2 names for 1 output: a, b"),
    ({"custom_extensions": "tract_symbol B"}, InputError, "custom_extensions is no list of texts"),
    ({"custom_extensions": ["tract_assert >"]}, InputError, "extension 'tract_assert >'"),
    ({"inference_target": TARGET.with_dynamic_axes({"imge": {0: "B"}})}, InputError, "there is no such input"),
    ({"inference_target": TARGET.with_dynamic_axes({"image": {4: "B"}})}, InputError, "axis 4 is outside"),
    ({"inference_target": TARGET.with_dynamic_axes({"image": {0: "B", -4: "C"}})}, InputError, "are one axis"),
    ({"inference_target": TARGET.with_dynamic_axes({"image": {0: "B", 2: "B"}})}, InputError, "B is 2 on axis 0"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "kind", "problem"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_is_refused_leaves_nothing_behind(tmp_path: Path, change: Any, kind: Any, problem: str) -> None:
    asked = {"model": Network(), "args": example(), "inference_target": TARGET, "input_names": ["image", "by"]} | change
    asked["file_path_export"] = tmp_path / asked.get("file_path_export", "m.nnef")
    with pytest.raises(kind, match=problem):
        export_model_to_nnef(**asked)
    assert not list(tmp_path.iterdir())


class _Quarters(torch.nn.Module):
    """The first of every four elements, added to others"""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.unflatten(1, (-1, 4))[:, :, 0] + y


@pytest.mark.parametrize(("size", "other"), [(3, 12), (1, 4)])
def test_sizes_may_be_multiples_of_a_symbol(tmp_path: Path, size: int, other: int) -> None:
    target = TractNNEF(None, dynamic_axes={"x": {-1: "4*H"}, "y": {1: "H"}})
    given = torch.randn(2, other), torch.randn(2, size)
    path = export_model_to_nnef(_Quarters(), given, tmp_path / "m.nnef", target, ["x", "y"])
    typed = tract.load(path).typed
    assert [str(typed.outlet_fact(outlet)) for outlet in typed.inputs] == ["2,4*H,f32", "2,H,f32"]
    assert not list(typed.symbols)
    assert target.report is not None
    assert target.report.values_of("H") > {1}


def test_sizes_may_be_multiples_with_something_more(tmp_path: Path) -> None:
    module = Calling(lambda x, y: x[:, 1:] * y.unflatten(1, (2, -1)).sum(1))
    target = TractNNEF(None, dynamic_axes={"x": {1: "H+1"}, "y": {1: "2*H"}})
    path = export_model_to_nnef(
        module, (torch.randn(2, 6), torch.randn(2, 10)), tmp_path / "m.nnef", target, ["x", "y"]
    )
    typed = tract.load(path).typed
    assert [str(typed.outlet_fact(outlet)) for outlet in typed.inputs] == ["2,H+1,f32", "2,2*H,f32"]


@pytest.mark.parametrize(
    ("axes", "problem"),
    [
        ({"x": {1: "3*H"}}, r"dynamic_axes\['x'\]: axis 1 of 'x' has size 16 in the example, wanted 3\*H"),
        ({"x": {1: "4*H"}, "y": {1: "H"}}, "H is 4 on axis 1 of 'x' and 3 on axis 1 of 'y' in the example"),
    ],
)
def test_examples_that_are_no_multiples(tmp_path: Path, axes: Any, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        export_model_to_nnef(
            _Quarters(),
            (torch.randn(2, 16), torch.randn(2, 3)),
            tmp_path / "m.nnef",
            TractNNEF(None, dynamic_axes=axes),
            ["x", "y"],
        )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"version": "0.20.1"}, "archives cannot be written for tract 0.20.1"),
        ({"version": "newest"}, "'newest' is no version"),
        ({"dynamic_axes": {"x": {"0": "B"}}}, "'0' is no axis"),
        ({"dynamic_axes": {"x": {0: "B*C"}}}, r"'B\*C' is no size.*as '4\*H\+1'; PyTorch takes no others"),
        ({"dynamic_axes": {"x": {0: "B-1"}}}, "'B-1' is no size that may be another one"),
        ({"dynamic_axes": {"x": {0: "B/2"}}}, "'B/2' is no size that may be another one"),
        ({"dynamic_axes": {"x": {0: "2*S"}}}, "'2\\*S' cannot be told to PyTorch, .*as 'T'"),
        ({"dynamic_axes": {"x": {0: "größe"}}}, "'größe' is no name of a symbol"),
        ({"dynamic_axes": {"x": 0}}, "0 is neither a mapping of axes to symbols nor a list"),
        ({"dynamic_axes": ["x"]}, "dynamic_axes is list, wanted a mapping"),
        ({"specific_properties": {"a": 1}}, "the property 'a' is 1, wanted texts"),
    ],
)
def test_targets_that_cannot_be(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=f"(?s){problem}"):
        TractNNEF(**({"version": "0.23.9"} | options))


def test_features_that_no_release_has_are_refused() -> None:
    with pytest.raises(Unsupported, match=r"no release of tract 0\.23\.9 was built with complex numbers"):
        TractNNEF("0.23.9", feature_flags={"complex"})  # pyright: ignore[reportArgumentType]: the value of a flag


class _Told(torch.nn.Module):
    """What a function computes."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (lambda x: x[-1:] * 2, "max(0, S - 1)"),
        (lambda x: torch.arange(x.shape[0])[:, None] + x, "tract_core_range(0, S, 1, announced"),
        (lambda x: x[1:3] * 2, "tract_assert S>=3"),
        (lambda x: x[:, :1].squeeze(), "tract_assert S>=2"),
    ],
    ids=["from the end", "positions", "as many as needed", "squeezed"],
)
def test_sizes_in_archives_for_other_engines(function: Any, found: str, tmp_path: Path) -> None:
    target = TractNNEF("0.23.9", dynamic_axes={"x": {0: "S"}})
    path = export_model_to_nnef(_Told(function), torch.randn(5, 4), tmp_path / "m.nnef", target, input_names=["x"])
    with tarfile.open(path) as archive:
        text = archive.extractfile("graph.nnef")
        assert text is not None
        assert found in text.read().decode()


def test_assertions_that_other_engines_cannot_read_are_lines_that_they_pass_over(tmp_path: Path) -> None:
    target = TractNNEF("0.23.9", dynamic_axes={"x": {0: "S"}})
    module = _Told(lambda x: x.chunk(2)[0])
    path = export_model_to_nnef(module, torch.randn(5, 4), tmp_path / "m.nnef", target, input_names=["x"])
    with tarfile.open(path) as archive:
        text = archive.extractfile("graph.nnef")
        assert text is not None
        lines = text.read().decode().splitlines()
    assert any(line.startswith('extension tract_py_assert "') and "==" in line for line in lines)
    assert not any("tract_assert" in line and "==" in line for line in lines)


def test_the_logger_speaks_as_before_afterwards(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("tract_torch")
    before = logger.level
    path = export_model_to_nnef(
        torch.nn.ReLU(), torch.ones(2), tmp_path / "m.nnef", TractNNEF(None), log_level=logging.INFO
    )
    assert f"{path} is written" in caplog.messages
    caplog.clear()
    with pytest.raises(InputError):
        export_model_to_nnef(torch.nn.ReLU(), (), tmp_path / "n.nnef", TractNNEF(None), log_level="DEBUG")
    export_model_to_nnef(torch.nn.ReLU(), torch.ones(2), tmp_path / "n.nnef", TractNNEF(None), log_level=logging.ERROR)
    assert not [one for one in caplog.records if one.name == "tract_torch"]
    assert logger.level == before
