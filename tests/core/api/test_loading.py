"""Loading files: which plugin, which errors."""

from __future__ import annotations

import io
import pickle
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir
import pytest

import tract_core
from tract_core import InferenceModel, Model, Onnx
from tract_core.analysis import inference as core
from tract_core.api.loading import Loader
from tract_core.errors import (
    ContradictoryFacts,
    CorruptModel,
    InputError,
    LimitExceeded,
    MissingFile,
    ModelError,
    ModelWarning,
    PluginError,
)
from tract_core.limits import LoadLimits
from tract_core.model import TypedModel
from tract_core.model.fact import InferenceFact
from tract_core.plugins import Format, Registry
from tract_core.plugins.descriptor import Option
from tract_core.testing.toys import toy_registry

DIGITS = Path(__file__).parents[3] / "examples" / "digits" / "digits.onnx"


class ToyLoader:
    """Makes a model of one input from any file, unless the file's name asks for trouble."""

    def load(self, path: Path) -> Any:
        if "directory" in path.name:
            raise IsADirectoryError(21, "Is a directory")
        if "broken" in path.name:
            raise ZeroDivisionError("in the loader")
        if "typed" in path.name:
            return TypedModel()
        if "nothing" in path.name:
            return None
        model = core.InferenceModel()
        model.set_outputs([model.add_source("x", InferenceFact())])
        return model


@pytest.fixture
def registry() -> Registry:
    formats = [Format(name, (f".{name}",), f"{__name__}:ToyLoader") for name in ("onnx", "nnef")]
    return toy_registry("toys", formats=formats)


def test_a_missing_plugin() -> None:
    nothing = Registry(discover=False)
    problem = "format 'onnx' is not installed; installed formats: none"
    with pytest.raises(PluginError, match=rf"{problem}\n  hint: tract-onnx is installed, but not in use"):
        Loader("onnx", nothing)
    with pytest.raises(
        PluginError, match=r"format 'nnef' is not installed.*\n  hint: tract-nnef is installed, but not"
    ):
        Loader("nnef", nothing)


def test_nnef_until_it_is_installed() -> None:
    if "nnef" in tract_core.plugins.default_registry().formats():
        pytest.skip("it is installed")
    with pytest.raises(PluginError, match=r"format 'nnef' is not installed; .*\n  hint: pip install .*tract_nnef"):
        tract_core.nnef()


@pytest.mark.parametrize("as_text", [True, False])
def test_load(registry: Registry, tmp_path: Path, as_text: bool) -> None:
    file = tmp_path / "model.onnx"
    file.touch()
    model = Loader("onnx", registry).load(str(file) if as_text else file)
    assert isinstance(model, InferenceModel)
    assert model.input_names() == ["x"]


def test_nnef_gives_models(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "typed.nnef").touch()
    assert Loader("nnef", registry).load(tmp_path / "typed.nnef").input_count() == 0


@pytest.mark.parametrize(
    ("name", "kind", "problem"),
    [
        ("broken.onnx", CorruptModel, "cannot be read: ZeroDivisionError: in the loader"),
        ("directory.onnx", ModelError, "cannot be read: Is a directory"),
        ("nothing.onnx", ModelError, "the loader gave a NoneType, wanted an InferenceModel or a TypedModel"),
    ],
)
def test_failures_name_the_file(registry: Registry, tmp_path: Path, name: str, kind: type, problem: str) -> None:
    (tmp_path / name).touch()
    with pytest.raises(kind, match=f"{name}: {problem}"):
        Loader("onnx", registry).load(tmp_path / name)


def test_a_file_that_is_not_there(registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It can be caught as a ModelError, and as what Python programs expect."""
    for kind in (ModelError, MissingFile, FileNotFoundError):
        with pytest.raises(kind, match=r"missing\.onnx: there is no such file\n  hint: check the path$"):
            Loader("onnx", registry).load(tmp_path / "missing.onnx")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingFile, match=r"check the path; a relative one begins at '.*'") as caught:
        Loader("onnx", registry).load("missing.onnx")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_file_of_a_similar_name_is_suggested(registry: Registry, tmp_path: Path) -> None:
    for name in ("digits.onnx", "digit.txt", "unrelated.onnx"):
        (tmp_path / name).touch()
    with pytest.raises(MissingFile, match=r"did you mean '.*digits\.onnx'\?"):
        Loader("onnx", registry).load(tmp_path / "digts.onnx")
    with pytest.raises(MissingFile) as caught:
        Loader("onnx", registry).load(tmp_path / "whatever.onnx")
    assert "did you mean" not in str(caught.value)
    with pytest.raises(MissingFile, match=r"there is no folder '.*absent'"):
        Loader("onnx", registry).load(tmp_path / "absent" / "model.onnx")


def test_a_model_in_memory() -> None:
    from onnx.parser import parse_model

    model = parse_model('<ir_version: 10, opset_import: ["": 21]> f (float[N] x) => (float[N] y) { y = Neg (x) }')
    content = model.SerializeToString()
    (y,) = Onnx().load_bytes(content).into_model().into_runnable().run([np.ones(2, np.float32)])
    assert y.to_numpy().tolist() == [-1, -1]
    assert Onnx().load_bytes(content, ignore_output_shapes=True).output_fact(0).rank() is None
    with pytest.raises(InputError, match=r"load_bytes takes bytes, got ModelProto\n.*SerializeToString"):
        Onnx().load_bytes(model)  # pyright: ignore[reportArgumentType]: what users do by mistake
    with pytest.raises(CorruptModel, match=r"model: wanted a binary ONNX file, found a text"):
        Onnx().load_bytes(b"model.onnx")
    with pytest.raises(InputError, match=r"a path is .*, got bytes\n  hint: load_bytes"):
        Onnx().load(content)  # pyright: ignore[reportArgumentType]: what users do by mistake


def test_models_of_other_libraries_and_opened_files(tmp_path: Path) -> None:
    proto = onnx.load(DIGITS)
    fact = {"image": "B,1,8,8,f32"}
    wanted = tract_core.load(DIGITS, inputs=fact)
    for given in (proto, onnx_ir.from_proto(proto), io.BytesIO(proto.SerializeToString())):
        assert tract_core.load(given, inputs=fact).typed == wanted.typed
    with DIGITS.open("rb") as file:
        assert Onnx().load(file).input_names() == ["image"]
    with DIGITS.open(encoding="latin-1") as file, pytest.raises(InputError, match="the file gives str, wanted bytes"):
        tract_core.load(file)
    few = LoadLimits(max_bytes=1000)
    with DIGITS.open("rb") as file, pytest.raises(LimitExceeded, match="bytes"):
        tract_core.load(file, limits=few)
    with pytest.raises(LimitExceeded, match="bytes"):
        tract_core.load(proto, limits=few)
    with pytest.raises(InputError, match=r"got ModelProto\n  hint: .*SerializeToString"):
        tract_core.load(proto, format_name="nnef")


def test_the_first_bytes_tell_the_format(tmp_path: Path) -> None:
    model = tract_core.load(DIGITS)
    contents = {"onnx": DIGITS.read_bytes(), "compressed": tract_core.nnef().write_model_to_bytes(model)}
    for name in ("digits.nnef.tar", "digits.crvo"):
        model.save(tmp_path / name)
        contents[name] = (tmp_path / name).read_bytes()
    image = np.random.default_rng(0).random((2, 1, 8, 8), np.float32)
    (wanted,) = model.into_runnable().run([image])
    for kind, content in contents.items():
        (found,) = tract_core.load_bytes(content).into_runnable().run([image])
        np.testing.assert_allclose(found, wanted, rtol=1e-5, err_msg=kind)
    named = tract_core.load_bytes(contents["onnx"], format_name="onnx", inputs={"image": "3,1,8,8,f32"})
    assert str(named.input_fact(0)) == "3,1,8,8,f32"


def test_bytes_that_are_no_model() -> None:
    digits = DIGITS.read_bytes()
    for content, kind, message in (
        ("digits.onnx", InputError, r"load_bytes takes bytes, got str\n  hint: load\(path\) takes the path"),
        (DIGITS, InputError, r"load_bytes takes bytes, got PosixPath\n  hint: load\(path\)"),
        (bytearray(digits), InputError, r"load_bytes takes bytes, got bytearray"),
        (b"", CorruptModel, "it is no ONNX model"),
        (b"<!DOCTYPE html><html>", CorruptModel, "an HTML page"),
        (b"\x1f\x8b" + bytes(600), CorruptModel, "it cannot be inflated"),
        (digits[:1000], CorruptModel, "."),
    ):
        with pytest.raises(kind, match=message):
            tract_core.load_bytes(content)  # pyright: ignore[reportArgumentType]: what users do by mistake
    with pytest.raises(PluginError, match="format 'caffe' is not installed"):
        tract_core.load_bytes(digits, format_name="caffe")
    content = tract_core.nnef().write_model_to_bytes(tract_core.load(DIGITS))
    with pytest.raises(InputError, match="the inputs of a model of format nnef are what the file says"):
        tract_core.load_bytes(content, inputs={"image": "3,1,8,8,f32"})
    with pytest.raises(LimitExceeded):
        tract_core.load_bytes(digits, limits=LoadLimits(max_bytes=1000))


@pytest.mark.usefixtures("toys")
def test_bytes_of_which_several_formats_may_be() -> None:
    hint = r"\n  hint: say which it has: load_bytes\(content, format_name=\.\.\.\)"
    with pytest.raises(InputError, match=f"do not tell its format; it may be one of onnx, nnef{hint}"):
        tract_core.load_bytes(b"anything")


@pytest.mark.parametrize("path", [None, 3, ["model.onnx"]])
def test_a_path_is_a_text_or_a_path(registry: Registry, path: Any) -> None:
    with pytest.raises(InputError, match=r"a path is a text or a pathlib\.Path"):
        Loader("onnx", registry).load(path)


def test_what_the_file_says_is_set_aside_refused_or_ignored(tmp_path: Path) -> None:
    """The declared outputs contradict the operator: a warning, an error where that is wanted, or nothing at all."""
    from onnx import TensorProto, helper

    path = tmp_path / "model.onnx"
    for kind, shape, flag in (
        (TensorProto.FLOAT, [9], "ignore_output_shapes"),
        (TensorProto.INT64, [2], "ignore_output_types"),
    ):
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2])
        y = helper.make_tensor_value_info("y", kind, shape)
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "graph", [x], [y])
        opset = helper.make_opsetid("", 17)
        path.write_bytes(helper.make_model(graph, opset_imports=[opset], ir_version=8).SerializeToString())
        with pytest.warns(
            ModelWarning, match=r"1 tensor is set aside.*'y'.*the file says .*, its operators give 2,f32"
        ):
            assert Onnx().load(path).into_model().output_fact(0).dump() == "2,f32"
        with pytest.raises(
            ContradictoryFacts, match=r"the file says .*, its operators give 2,f32\n.*load it with " + flag
        ):
            Onnx().load(path, strict_facts=True).into_model()
        with warnings.catch_warnings(action="error"):
            assert Onnx().load(path, strict_facts=True, **{flag: True}).into_model().output_fact(0).dump() == "2,f32"


@pytest.fixture
def toys(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    """The formats of `Plugin` are those that are installed."""
    monkeypatch.setattr("tract_core.plugins.default._default", [registry])


@pytest.mark.usefixtures("toys")
def test_load_takes_any_format(tmp_path: Path) -> None:
    for name in ("a.onnx", "typed.NNEF"):
        (tmp_path / name).write_text("")
    model = tract_core.load(tmp_path / "a.onnx", inputs={"x": "B,3,f32"})
    assert str(model) == "Model(x: B,3,f32 -> x: B,3,f32; 1 nodes)"
    assert isinstance(tract_core.load(str(tmp_path / "typed.NNEF")), Model)


@pytest.mark.usefixtures("toys")
def test_load_says_what_is_wrong(tmp_path: Path) -> None:
    for name in ("a.onnx", "typed.nnef", "a.bin"):
        (tmp_path / name).write_bytes(b"\x00")
    with pytest.raises(ModelError, match="the rank or the element type of 'x' is not known"):
        tract_core.load(tmp_path / "a.onnx")
    with pytest.raises(InputError, match="there is no input 'y'"):
        tract_core.load(tmp_path / "a.onnx", inputs={"y": "B,3,f32"})
    with pytest.raises(InputError, match="the inputs of a model of format nnef are what the file says"):
        tract_core.load(tmp_path / "typed.nnef", inputs={"y": "B,3,f32"})
    with pytest.raises(InputError, match=r"no installed format takes files named \*\.bin; installed: onnx"):
        tract_core.load(tmp_path / "a.bin")
    assert tract_core.load(tmp_path / "a.bin", inputs={0: "f32"}, format_name="onnx").input_count() == 1
    with pytest.raises(PluginError, match="format 'caffe' is not installed"):
        tract_core.load(tmp_path / "a.bin", format_name="caffe")
    with pytest.raises(MissingFile, match="there is no such file"):
        tract_core.load(tmp_path / "b.onnx")
    for path in ("", 3, None):
        with pytest.raises(InputError, match=r"the path is empty|a path is a text or a pathlib\.Path"):
            tract_core.load(path)  # pyright: ignore[reportArgumentType]: what is tested


def test_an_option_that_is_misspelt(registry: Registry) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'strict'"):
        Onnx().load("model.onnx", strict=False)  # pyright: ignore
    with pytest.raises(InputError, match=r"the loader of the format onnx has no option 'strict'; it has ignore"):
        Onnx().load_bytes(b"", strict=False)
    with pytest.raises(InputError, match=r"the loader of the format nnef has no option 'strict'; it has none"):
        Loader("nnef", registry).load("model.nnef", strict=None)


class Counting:
    """Gives a model only where it is told to count from 0."""

    def __init__(self, count: int = 5) -> None:
        self.count = count

    def load(self, path: Path) -> Any:
        return None if self.count else TypedModel()


def test_an_option_that_is_nought_is_given_to_the_loader(tmp_path: Path) -> None:
    counting = Format("counting", (".x",), f"{__name__}:Counting", flags={"count": Option("For a test.", int)})
    loader = Loader("counting", toy_registry("toys", formats=[counting]))
    (tmp_path / "any.x").touch()
    assert isinstance(loader.load(tmp_path / "any.x", count=0), Model)
    for options in ({}, {"count": None}, {"count": 1}):
        with pytest.raises(ModelError, match="the loader gave a NoneType"):
            loader.load(tmp_path / "any.x", **options)
