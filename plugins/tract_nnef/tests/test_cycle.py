"""Models that are written as archives, and read back."""

from __future__ import annotations

import numpy as np
import pytest
from cycles import INTERCHANGE, cycled, small_model
from documents import read, run
from tract_nnef.documents.loader import NnefLoader
from tract_nnef.documents.saver import NnefWriter
from tract_nnef.options import Writing

import tract_core as tract
from tract_core.data import DatumType
from tract_core.dims import symbol
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.same import same_model
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Max
from tract_core.ops.concat import TypedConcat
from tract_core.ops.elementwise import Exp, GeluExact

NAMES = ("m.nnef.tgz", "m.tar", "m")


def small() -> TypedModel:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,3,f32", model.symbols))
    bias = model.add_const("bias", np.arange(3, dtype=np.float32).reshape(1, 3))
    (added,) = model.wire_node("added", Add(), [x, bias])
    (y,) = model.wire_node("y", Exp(), [added])
    (z,) = model.wire_node("z", Max(), [added, model.add_const("zero", np.zeros((1, 1), np.float32))])
    model.set_outputs([y, z])
    model.properties["purpose"] = np.array("a test", object)
    return model


@pytest.mark.parametrize("name", NAMES)
def test_a_model_comes_back_from_every_kind_of_archive(name, tmp_path) -> None:
    model = tract.Model.from_typed(small())
    model.save(tmp_path / name, format_name="nnef")
    found = tract.load(tmp_path / name)
    assert same_model(found.typed, model.typed)
    assert [found.input_name(0), found.output_name(0), found.output_name(1)] == ["x", "y", "z"]


def test_what_properties_are_computed_from_is_no_part_of_the_model() -> None:
    written = small()
    written.properties["counts"] = np.arange(3)
    found = NnefLoader().load_bytes(NnefWriter().to_bytes(written))
    np.testing.assert_array_equal(found.properties["counts"], np.arange(3))
    assert len(found.nodes) == len(written.nodes)


def test_what_no_registry_can_say_is_refused_by_name(tmp_path) -> None:
    from tract_core.ops.non_zero import NonZero

    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("2,3,f32", model.symbols))
    model.set_outputs(model.wire_node("places", NonZero(model.symbols.add("n")), [x]))
    with pytest.raises(tract.errors.Unsupported, match="node 'places': NonZero cannot be written"):
        tract.nnef().without_tract_core().write_model_to_tar(tract.Model.from_typed(model), tmp_path / "m.tar")
    assert not (tmp_path / "m.tar").exists()
    tract.Model.from_typed(model).save(tmp_path / "m.tar")
    assert same_model(tract.load(tmp_path / "m.tar").typed, model)


def test_errors_say_which_file_and_which_line(tmp_path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "graph.nnef").write_text(
        "version 1.0;\ngraph g(x) -> (y)\n{\n  x = external(shape = [2]);\n  y = sigmiod(x);\n}\n"
    )
    with pytest.raises(tract.errors.MissingOperator) as caught:
        tract.load(folder)
    assert str(caught.value) == (
        f"{folder}: graph.nnef: line 5: there is no operator 'sigmiod'\n  hint: did you mean 'sigmoid'?"
    )


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_gelu_is_found_again_in_the_form_in_which_it_is_written(kind, tmp_path) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(f"B,3,{kind}", model.symbols))
    model.set_outputs(model.wire_node("y", GeluExact(), [x]))
    tract.nnef().write_model_to_tar(tract.Model.from_typed(model), tmp_path / "m.tar")
    text = (tmp_path / "m.tar").read_bytes()
    assert b"tract_core_erf" in text
    assert b"tract_py" not in text
    assert same_model(tract.load(tmp_path / "m.tar").typed, model)


@pytest.mark.parametrize("body", ["y = tract_core_cast([[B, 2 * B]], to = 'f32') * x;", "y = x * [[B, 2 * B]];"])
def test_sizes_take_the_type_that_is_wanted(body) -> None:
    x = np.array([[1, 10], [0.5, 2], [3, 4]], np.float32)
    np.testing.assert_array_equal(run(read(body, {"x": "B,2"}), x), x * np.float32([3, 6]))


def test_a_size_may_be_an_output() -> None:
    model = small_model()
    size = model.add_const("size", symbol("B"))
    model.set_outputs([*model.outputs, size])
    found = cycled(model)
    assert [found.outlet_name(outlet) for outlet in found.outputs] == ["y", "size"]
    assert str(found.outlet_fact(found.outputs[1])) == str(model.outlet_fact(size))


def test_conditions_that_later_ones_put_in_other_words_come_back_once() -> None:
    model = TypedModel()
    a, b, c, d = (model.add_source(name, parse_typed_fact(f"{name},2,f32", model.symbols)) for name in "abcd")
    sums = model.wire_node("sums", Add(), [a, b])  # (a#b) rows
    twice = model.wire_node("twice", TypedConcat(0), [*sums, *sums])
    more = model.wire_node("more", Add(), [*twice, d])  # 2*(a#b) and d are equal, or one is 1
    joined = model.wire_node("joined", TypedConcat(1), [*sums, c])  # now (a#b) is c
    model.set_outputs([*more, *joined])
    model = model.declutter()
    found = NnefLoader().load_bytes(NnefWriter().to_bytes(model)).declutter()
    assert [str(one) for one, _ in found.conditions] == [str(one) for one, _ in model.conditions]
    assert same_model(found, model)


@pytest.mark.parametrize("how", [Writing(), INTERCHANGE], ids=["for us", "for others"])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 9, 33])
@pytest.mark.parametrize("kind", ["u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"])
def test_constants_at_the_ends_of_integer_types(kind: str, count: int, how: Writing) -> None:
    type_ = DatumType.parse(kind).numpy
    ends = np.iinfo(type_)
    held = np.resize(np.array([ends.max, ends.min, ends.max - 1], type_), count)
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(f"{count},{kind}", model.symbols))
    model.set_outputs(model.wire_node("y", Max(), [x, model.add_const("held", held)]))
    found = tract.Model.from_typed(cycled(model, how=how))
    for runtime in ("reference", "cpu"):
        (y,) = tract.runtime_for_name(runtime).prepare(found.clone()).run([np.full(count, ends.min, type_)])
        np.testing.assert_array_equal(np.asarray(y), held)


@pytest.mark.parametrize("value", [2**63, 2**64 - 1])
def test_integers_beyond_i64_are_u64(value: int) -> None:
    """As archives of earlier versions have them."""
    text = f"y = max(x, tract_core_cast([{value}], to = 'u64')); z = [{value}, 1];"
    model = read(text, {"x": "1"}, outputs="y, z", kinds={"x": "u64"})
    assert [one.tolist() for one in run(model, np.array([5], np.uint64))] == [[value], [value, 1]]


@pytest.mark.parametrize("numbers", [f"{2**64}", f"-1, {2**63}", f"{-(2**63) - 1}"])
def test_integers_of_no_type_are_refused(numbers: str) -> None:
    with pytest.raises(tract.errors.CorruptModel, match=r"is no tensor of|takes more than 64 bits"):
        read(f"y = max(x, tract_core_cast([{numbers}], to = 'u64'));", {"x": "1"}, kinds={"x": "u64"})
