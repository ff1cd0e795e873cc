"""What lies beside a document: models inside the archive, JSON, and documents that are templates of it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from documents import archive, document, load, run_text
from tract_nnef.documents.loader import NnefLoader
from tract_nnef.documents.saver import NnefWriter
from tract_nnef.options import Writing

from tract_core import errors
from tract_core.limits import LoadLimits
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.same import same_model
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Mul
from tract_core.ops.submodel import SubmodelOp
from tract_core.plugins import default_registry
from tract_core.testing.case import CASES

X = np.array([1, 2, 3], np.float32)
INNER = document("o = x * y + 1.0;", ["F32[N]", "F32[N]"], ["o"], symbols=["N"])
OUTER = document("o = tract_core_submodel([x, x], label = 'part');", ["F32[3]"], ["o"])


@pytest.mark.parametrize(
    "files",
    [
        {"part/graph.nnef": INNER.encode()},
        {"part.nnef.tar": archive(INNER)},
    ],
)
def test_a_model_inside_the_archive_is_an_operator(files) -> None:
    (found,) = run_text(OUTER, X, files=files)
    np.testing.assert_array_equal(found, X * X + 1)


def test_one_input_needs_no_brackets() -> None:
    inner = document("o = -x;", ["F32[3]"], ["o"])
    outer = document("o = tract_core_submodel(x, label = 'part');", ["F32[3]"], ["o"])
    np.testing.assert_array_equal(run_text(outer, X, files={"part/graph.nnef": inner.encode()})[0], -X)


def test_a_model_that_is_not_there_is_named() -> None:
    with pytest.raises(errors.CorruptModel, match=r"no submodel 'part', wanted a folder or part\.nnef\.tgz"):
        load(OUTER)


def test_what_is_wrong_inside_says_where_it_is() -> None:
    inner = INNER.replace("+ 1.0;", "+ nothing;")
    with pytest.raises(errors.CorruptModel, match=r"submodel 'part'.*line .*'nothing' is not defined"):
        load(OUTER, {"part/graph.nnef": inner.encode()})


def test_models_that_use_one_another_twice_count_twice() -> None:
    twice = document("o = tract_core_submodel(x, 'a') + tract_core_submodel(x, 'a');", ["F32[2]"], ["o"])
    leaf = document("o = -x;", ["F32[2]"], ["o"])
    files = {f"{'a/' * level}graph.nnef": (twice if level < 12 else leaf).encode() for level in range(1, 13)}
    with pytest.raises(errors.LimitExceeded, match="more than 2000 nodes"):
        NnefLoader(limits=LoadLimits(max_nodes=2000)).load_bytes(archive(twice, files))


@pytest.mark.parametrize("label", ["", ".", "./", "/", "..", "a/.."])
def test_a_model_is_not_inside_itself(label, tmp_path) -> None:
    text = document(f"o = tract_core_submodel(x, '{label}');", ["F32[2]"], ["o"])
    (tmp_path / "graph.nnef").write_text(text)
    for read in (lambda: load(text), lambda: NnefLoader().load(tmp_path)):
        with pytest.raises(errors.TractError):
            read()


def nested() -> TypedModel:
    """x -> (x + 1) * big, where the sum is a model in a model."""

    def around(inside: TypedModel) -> TypedModel:
        model = TypedModel()
        x = model.add_source("x", parse_typed_fact("3,f32", model.symbols))
        model.set_outputs(model.wire_node("part", SubmodelOp(inside), [x]))
        return model

    inside = TypedModel()
    x = inside.add_source("x", parse_typed_fact("3,f32", inside.symbols))
    (found,) = inside.wire_node("sum", Add(), [x, inside.add_const("one", np.ones(1, np.float32))])
    inside.set_outputs([found])
    model = around(inside)
    (found,) = model.wire_node("scaled", Mul(), [model.outputs[0], model.add_const("big", X)])
    model.set_outputs([found])
    return around(model)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["m.nnef.tgz", "m.tar", "m"])
def test_models_in_models_come_back(name, packed, tmp_path) -> None:
    NnefWriter(how=Writing(pack_submodels=packed)).write(nested(), tmp_path / name)
    assert same_model(NnefLoader().load(tmp_path / name), nested())


def test_submodels_are_folders_unless_they_are_to_be_packed() -> None:
    def names(*, packed: bool) -> set[str]:
        return set(NnefWriter(how=Writing(pack_submodels=packed)).files(nested()))

    assert names(packed=True) == {"graph.nnef", "part.nnef.tgz"}
    assert names(packed=False) == {"graph.nnef", "part/graph.nnef", "part/part/graph.nnef"}


@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("case", default_registry()[CASES].find("submodel") or (), ids=str)
def test_a_case_comes_back(case, symbolic, tmp_path) -> None:
    model = case.model(symbolic=symbolic)
    NnefWriter().write(model, tmp_path / "m.tar")
    assert same_model(NnefLoader().load(tmp_path / "m.tar"), model)


SIZES = {"hidden": 3, "flags": {"scale": 2.5, "up": True}, "names": ["a", "b c"], "list": [[1, 2], [3, 4]], "no": None}
FILES = {"sizes.json": json.dumps(SIZES).encode()}


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("o = x * tract_resource_get('sizes', '$.flags.scale');", X * 2.5),
        ("o = x + tract_resource_get(label = 'sizes', key = '$.list')[1][0];", X + 3),
        ("o = x * tract_resource_get('sizes', \"$['hidden']\");", X * 3),
        ("o = reshape(x, shape = [tract_resource_get('sizes', '$.hidden'), 1]);", X[:, None]),
        ("o = reshape(x, shape = tract_resource_get('sizes', '$.list[0]') * 1);", None),
        ("o = x * 2.0 if tract_resource_get('sizes', '$.flags[\"up\"]') else x;", X * 2),
        ("o = x * {{ sizes.flags.scale }};", X * 2.5),
        ("o = x * {{sizes.list[1][1]}}.0;", X * 4),
        ("o = x + {{ sizes.list[0] }}[1];", X + 2),
        ("o = {{ sizes['names'][0] }}bs(x) * {{ sizes.hidden }};", X * 3),
    ],
)
def test_values_come_from_json(body, wanted) -> None:
    text = document(body, ["F32[3]"], ["o"], registries=["tract_core", "tract_resource"])
    if wanted is None:
        with pytest.raises(errors.TractError):
            run_text(text, X, files=FILES)
        return
    np.testing.assert_array_equal(run_text(text, X, files=FILES)[0], wanted)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("o = x * tract_resource_get('other', '$');", "the file 'other.json' is wanted, there is sizes.json"),
        ("o = x * tract_resource_get('sizes', 'hidden');", r"does not begin with \$"),
        ("o = x * tract_resource_get('sizes', '$.wide');", "sizes.json: there is no 'wide'; there is hidden, flags"),
        ("o = x * tract_resource_get('sizes', '$.list[2]');", "element 2 is asked for, of 2"),
        ("o = x * tract_resource_get('sizes', '$.list.a');", "'a' is asked of a list"),
        ("o = x * tract_resource_get('sizes', '$..hidden');", "is no step of a path"),
        ("o = x * tract_resource_get('sizes', '$.no');", "found a NoneType, wanted a number"),
        ("o = x * tract_resource_get('sizes', '$.flags');", "found a dict"),
        ("o = x * {{ sizes.wide }};", "sizes.json: there is no 'wide'"),
        ("o = x * {{ other }};", "the file 'other.json' is wanted"),
        ("o = x * {{ sizes.hidden | int }};", "no step of a path"),
        ("{% for i in sizes.list %} o = x; {% endfor %}", "more than the name of a value"),
        ("o = x * {{ 3 }};", "more than the name of a value"),
    ],
)
def test_what_cannot_be_filled_in_is_refused(body, message) -> None:
    text = document(body, ["F32[3]"], ["o"], registries=["tract_core", "tract_resource"])
    with pytest.raises(errors.TractError, match=message):
        load(text, FILES)


@pytest.mark.parametrize("content", [b"{", b"[" * 100_000, b'{"a": 1e999999, "b": ' + b"9" * 10_000 + b"}", b"\xff"])
def test_what_is_no_json_is_refused(content) -> None:
    text = document(
        "o = x * tract_resource_get('sizes', '$.b');", ["F32[3]"], ["o"], registries=["tract_core", "tract_resource"]
    )
    with pytest.raises(errors.CorruptModel, match=r"sizes\.json is no JSON"):
        load(text, {"sizes.json": content})


def test_a_document_without_templates_may_have_braces() -> None:
    text = document("o = x; # {{ no template %}", ["F32[3]"], ["o"])
    np.testing.assert_array_equal(run_text(text, X)[0], X)
