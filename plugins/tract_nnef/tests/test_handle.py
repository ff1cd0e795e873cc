"""What users hold: every method of `tract.nnef()`, and what `tract.load` and `Model.save` make of names."""

from __future__ import annotations

import gzip
import tarfile

import numpy as np
import pytest
from cycles import small_model
from tract_nnef.documents.saver import NnefWriter

import tract_core as tract
from tract_core.data import DatumType
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.same import same_model
from tract_core.model.typed import TypedModel
from tract_core.ops.cast import Cast
from tract_core.ops.elementwise import Erf
from tract_core.ops.non_zero import NonZero
from tract_core.ops.pool import MaxPool
from tract_core.ops.pool_spec import DataFormat, PoolSpec

WITH = {
    "with_tract_core": "tract_core",
    "with_tract_extra": "tract_extra",
    "with_tract_transformers": "tract_transformers",
    "with_tract_resource": "tract_resource",
    "with_onnx": "tract_onnx",
    "with_pulse": "tract_pulse",
}


@pytest.fixture
def model() -> tract.Model:
    return tract.Model.from_typed(small_model()).declutter()


@pytest.mark.parametrize("method", [*WITH, "with_extended_identifier_syntax", "without_tract_core", "without_tract_py"])
def test_methods_that_say_what_may_be_written_give_the_object_back(method) -> None:
    nnef = tract.nnef()
    assert getattr(nnef, method)() is nnef


@pytest.mark.parametrize(("method", "registry"), WITH.items())
def test_each_adds_the_registry_of_its_name(method, registry) -> None:
    shown = repr(getattr(tract.nnef().without_tract_core(), method)())
    assert shown == f"the loader of the format nnef, which writes {registry}"


def test_three_containers_hold_the_same_model(model, tmp_path) -> None:
    nnef = tract.nnef()
    nnef.write_model_to_dir(model, tmp_path / "folder")
    nnef.write_model_to_tar(model, str(tmp_path / "m.tar"))
    nnef.write_model_to_tar_gz(model, tmp_path / "m.tgz")
    assert (tmp_path / "folder" / "graph.nnef").is_file()
    assert tarfile.is_tarfile(tmp_path / "m.tar")
    content = (tmp_path / "m.tgz").read_bytes()
    assert gzip.decompress(content) == (tmp_path / "m.tar").read_bytes()
    assert nnef.write_model_to_bytes(model) == content
    for found in (nnef.load(tmp_path / "folder"), nnef.load(tmp_path / "m.tar"), nnef.load_bytes(content)):
        assert same_model(found.typed, model.typed)
    assert not model.is_consumed


def test_a_folder_that_is_there_is_refused_and_stays(model, tmp_path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(tract.errors.InputError, match="it is there already, and a folder is never written over"):
        tract.nnef().write_model_to_dir(model, tmp_path / "folder")
    assert [*(tmp_path / "folder").iterdir()] == []
    assert [one.name for one in tmp_path.iterdir()] == ["folder"]


def test_strict_mode_names_the_node(tmp_path) -> None:
    wide = tract.Model.from_typed(small_model("B,3,f32"))
    with pytest.raises(tract.errors.Unsupported, match=r"node 'x': .* cannot be written") as error:
        tract.nnef().without_tract_core().write_model_to_tar(wide, tmp_path / "m.tar")
    assert str(tmp_path / "m.tar") in str(error.value)
    assert [*tmp_path.iterdir()] == []


def test_strict_mode_writes_what_the_standard_can_say(tmp_path) -> None:
    model = tract.Model.from_typed(small_model("2,3,f32"))
    tract.nnef().without_tract_core().write_model_to_dir(model, tmp_path / "m")
    assert "extension" not in (tmp_path / "m" / "graph.nnef").read_text()
    x = np.ones((2, 3), np.float32)
    (found,) = tract.load(tmp_path / "m").into_runnable().run([x])
    np.testing.assert_allclose(found.to_numpy(), np.exp(x + np.arange(3)), rtol=1e-6)


@pytest.mark.parametrize("name", ["m.nnef.tgz", "m.nnef.tar.gz", "m.nnef.tar", "m.tgz", "m.tar.gz", "m.tar", "m.nnef"])
def test_models_are_saved_and_loaded_by_what_the_path_names(name, model, tmp_path) -> None:
    model.save(tmp_path / name)
    assert same_model(tract.load(tmp_path / name).typed, model.typed)
    assert (tmp_path / name).is_dir() is name.endswith("nnef")


def test_what_a_file_is_decides_and_not_its_name(model, tmp_path) -> None:
    model.save(tmp_path / "m.tar")
    (tmp_path / "m.tar").rename(tmp_path / "m.tgz")
    assert same_model(tract.load(tmp_path / "m.tgz").typed, model.typed)


def test_an_output_gets_another_name(model, tmp_path) -> None:
    model.save(tmp_path / "m.tar", override_output_name="scores")
    assert tract.load(tmp_path / "m.tar").output_name(0) == "scores"
    assert model.output_name(0) == "y"
    with pytest.raises(tract.errors.InputError, match="cannot be called 'x': another tensor of the model is"):
        model.save(tmp_path / "n.tar", override_output_name="x")


def test_names_that_are_no_identifiers(tmp_path) -> None:
    model = tract.Model.from_typed(small_model("2,3,f32", output="layer/0:y"))
    strict, plain, extended = (tract.nnef() for _ in range(3))
    strict.without_tract_core().write_model_to_tar(model, tmp_path / "strict.tar")
    plain.write_model_to_tar(model, tmp_path / "plain.tar")
    extended.with_extended_identifier_syntax().write_model_to_tar(model, tmp_path / "extended.tar")
    assert tract.load(tmp_path / "strict.tar").output_name(0) == "layer_0_y"
    for name in ("plain.tar", "extended.tar"):
        assert tract.load(tmp_path / name).output_name(0) == "layer/0:y"


def test_anything_but_a_model_is_refused(tmp_path) -> None:
    with pytest.raises(tract.errors.InputError, match="a Model is written, got str"):
        tract.nnef().write_model_to_dir("m.onnx", tmp_path / "m")


def test_archives_for_others_say_it_with_what_they_know(tmp_path) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("1,8,8,2,f32", model.symbols))
    spec = PoolSpec(DataFormat.NHWC, (2, 2), strides=(2, 2))
    model.set_outputs(model.wire_node("y", MaxPool(spec), [x]))
    pooled = tract.Model.from_typed(model)
    tract.nnef().write_model_to_tar(pooled, tmp_path / "ours.tar")
    tract.nnef().without_tract_py().write_model_to_tar(pooled, tmp_path / "theirs.tar")
    assert b"tract_py" in (tmp_path / "ours.tar").read_bytes()
    assert b"tract_py" not in (tmp_path / "theirs.tar").read_bytes()
    given = np.random.default_rng(0).standard_normal((1, 8, 8, 2)).astype(np.float32)
    wanted = given.reshape(1, 4, 2, 4, 2, 2).max((2, 4))
    for name in ("ours.tar", "theirs.tar"):
        (found,) = tract.load(tmp_path / name).into_runnable().run([given])
        np.testing.assert_array_equal(found.to_numpy(), wanted)


def test_what_only_this_project_has_is_refused_for_others(tmp_path) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("3,f32", model.symbols))
    model.set_outputs(model.wire_node("y", NonZero(model.symbols.add("n")), [x]))
    with pytest.raises(tract.errors.Unsupported, match=r"node 'y': NonZero cannot be written"):
        tract.nnef().without_tract_py().write_model_to_tar(tract.Model.from_typed(model), tmp_path / "m.tar")


def test_all_that_cannot_be_written_is_said_at_once(tmp_path) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("3,f32", model.symbols))
    places = [*model.wire_node("y", NonZero(model.symbols.add("n")), [x])]
    (casts,) = model.wire_node("f", Cast(DatumType.F32), places)
    (angle,) = model.wire_node("z", Erf(), [casts])
    model.set_outputs([angle, *model.wire_node("w", NonZero(model.symbols.add("m")), [x])])
    with pytest.raises(tract.errors.Unwritable) as caught:
        tract.nnef().without_tract_core().write_model_to_tar(tract.Model.from_typed(model), tmp_path / "m.tar")
    lines = str(caught.value).splitlines()
    assert lines[0] == f"{tmp_path / 'm.tar'}: 4 nodes cannot be written:"
    assert "  node 'y', node 'w': NonZero cannot be written with the standard alone" in lines
    assert [line for line in lines if "node 'f'" in line]
    assert [line for line in lines if "node 'z'" in line]
    assert (
        lines[-1] == "  hint: allow tract_core, tract_py, another registry: docs/nnef.md has the methods and the flags"
    )


def test_inputs_and_outputs_that_cannot_be_written_are_named_with_the_nodes(tmp_path) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("3,f16", model.symbols))
    z = model.add_source("z", parse_typed_fact("S,i64", model.symbols))
    c = model.add_const("c", np.zeros((100, *[1] * 8), np.float32))
    model.set_outputs([*model.wire_node("y", Erf(), [x]), z, c])
    with pytest.raises(tract.errors.Unwritable) as caught:
        tract.nnef().without_tract_core().write_model_to_tar(tract.Model.from_typed(model), tmp_path / "m.tar")
    lines = str(caught.value).splitlines()
    assert lines[0] == f"{tmp_path / 'm.tar'}: 4 nodes cannot be written:"
    assert "  node 'x', node 'z': TypedSource cannot be written with the standard alone" in lines
    assert [line for line in lines if "node 'y': Erf" in line]
    assert [line for line in lines if "node 'c': Const" in line]


def test_a_folder_that_is_there_is_named_once(model, tmp_path) -> None:
    for write in (
        lambda: tract.nnef().write_model_to_dir(model, tmp_path),
        lambda: model.save(tmp_path, format_name="nnef"),
    ):
        with pytest.raises(tract.errors.InputError) as caught:
            write()
        assert (
            str(caught.value).splitlines()[0] == f"{tmp_path}: it is there already, and a folder is never written over"
        )


def test_a_writer_takes_no_flag_that_is_none() -> None:
    wanted = "archives are not written with 'registries'; there are compiled, compress"
    with pytest.raises(tract.errors.InputError, match=wanted):
        NnefWriter(registries=["tract_core"])


@pytest.mark.parametrize("write", ["write_model_to_dir", "write_model_to_tar", "write_model_to_tar_gz"])
def test_what_cannot_be_written_is_named_once(write, model, tmp_path) -> None:
    target = tmp_path / "nowhere" / "m"
    with pytest.raises(tract.errors.InputError) as caught:
        getattr(tract.nnef(), write)(model, target)
    assert caught.value.where == str(target)


def test_a_registry_that_is_not_installed_is_refused(model) -> None:
    with pytest.raises(tract.errors.Unsupported, match=r"'nosuch' is not installed; there are .*tract_core"):
        tract.nnef().with_registry("nosuch").write_model_to_bytes(model)


def test_registries_are_named_by_texts() -> None:
    with pytest.raises(tract.errors.InputError, match="a registry is named by a text, got int"):
        tract.nnef().with_registry(3)


def test_what_is_refused_says_what_would_allow_it() -> None:
    wide = tract.Model.from_typed(small_model("B,3,f32"))
    with pytest.raises(tract.errors.Unsupported, match="hint: allow tract_core, tract_py, another registry: docs"):
        tract.nnef().without_tract_core().write_model_to_bytes(wide)
