"""What a file says is data: nothing that it names is imported, and the work that it asks for is bounded."""

from __future__ import annotations

import sys
from time import perf_counter

import pytest
from documents import archive, document
from tract_nnef.archive.writing import tar_bytes
from tract_nnef.documents.loader import NnefLoader

import tract_core as tract
from tract_core.errors import CorruptModel, LimitExceeded, MissingOperator, TractError, Unsupported
from tract_core.model.typed import TypedModel


def load(*statements: str, extensions: str = "", fragments: str = "") -> TypedModel:
    """The model of a document with an input ``x`` of shape 2,3 and the result ``y`` of the last statement."""
    body = "\n".join(["x = external(shape = [2, 3]);", *statements])
    head = f"version 1.0;\nextension tract_registry tract_core;\nextension tract_registry tract_py;\n{extensions}"
    said = f"{head}\n{fragments}\ngraph network(x) -> (y)\n{{\n{body}\n}}\n"
    return NnefLoader().load_bytes(tar_bytes({"graph.nnef": said.encode()}))


def test_an_operator_is_found_by_its_name_and_fields() -> None:
    model = load("y = tract_py_move_axis([x], source = 0, target = 1);")
    assert str(model.outlet_fact(model.outputs[0])) == "3,2,f32"


@pytest.mark.parametrize(
    "name",
    [
        "tract_py_os_system",
        "tract_py_typed_op",
        "tract_py_typed_source",
        "tract_py_pool_spec",
        "tract_py_typed_model",
        "tract_py_",
        "tract_py___init__",
        "tract_py_antigravity_fly",
    ],
)
def test_what_is_no_operator_is_not_found(name) -> None:
    before = set(sys.modules)
    with pytest.raises(MissingOperator, match=f"there is no operator '{name}'"):
        load(f"y = {name}([x]);")
    assert not {one for one in set(sys.modules) - before if not one.startswith("tract")}


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("y = tract_py_move_axis([x], source = 0);", "tract_py_move_axis wants 'target', which is not given"),
        (
            "y = tract_py_move_axis([x], source = 0, target = 1, of = 2);",
            "has no parameter 'of'; it has tensors",
        ),
        (
            "y = tract_py_move_axis([x], source = '0', target = 1);",
            "source: a whole number is wanted",
        ),
        ("y = tract_py_move_axis([x], source = 7, target = 1);", "axis"),
        ("y = tract_py_move_axis([x], source = 1000000000000, target = 1);", "axis"),
        ("y = tract_py_move_axis([], source = 0, target = 1);", "MoveAxis"),
        ("y = tract_py_move_axis([x, x, x], source = 0, target = 1);", "MoveAxis"),
        ("y = tract_py_slice([x], axis = 0, start = x, end = 2);", "start: a size is wanted, found a tensor"),
        ("y = tract_py_slice([x], axis = 0, start = tract_py_size('S'), end = 2);", "the symbol 'S' is not declared"),
        ("y = tract_py_const([], value = 'nowhere');", "there is no tensor for the label 'nowhere'"),
        ("y = tract_py_const([], value = '../../etc/passwd');", "passwd"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(statement, problem) -> None:
    with pytest.raises(TractError, match=problem) as caught:
        load(statement)
    assert "line 9" in str(caught.value)


def test_huge_tuples_are_refused_in_time() -> None:
    started = perf_counter()
    huge = ", ".join(["1"] * 200_000)
    with pytest.raises(TractError, match=r"Reshape|reshape"):
        load(f"y = tract_py_reshape([x], at = 0, before = [{huge}], after = [{huge}]);")
    with pytest.raises(TractError):
        load(f"y = tract_py_multi_broadcast_to([x], shape = [{huge}]);")
    assert perf_counter() - started < 30


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(LimitExceeded, match=r"inside one another|nested too deep"):
        load(f"y = tract_py_const([], value = {'[' * 5000}1.0{']' * 5000});")


def submodel(body: str, inside: str = "z = tract_py_external(datum_type = 'f32', shape = [2, 3]);") -> str:
    """A fragment that is a body, which reads one tensor."""
    return f"fragment {body}() -> (r: tensor<scalar>)\n{{\n{inside}\n}}\n"


CALL = "tract_py_submodel_op([{}], model = ('{}', [], []));"


def test_a_body_that_is_inside_itself_is_refused() -> None:
    inside = f"z = tract_py_external(datum_type = 'f32', shape = [2, 3]); r = {CALL.format('z', 'b')}"
    with pytest.raises(CorruptModel, match="the body 'b' is inside itself, through b"):
        load(f"y = {CALL.format('x', 'b')}", fragments=submodel("b", inside))


def test_bodies_that_double_at_every_level_are_refused_in_time() -> None:
    fragments = submodel("b0", "z = tract_py_external(datum_type = 'f32', shape = [2, 3]); r = neg(z);")
    for level in range(1, 31):
        call = CALL.format("{}", f"b{level - 1}")
        inside = (
            f"z = tract_py_external(datum_type = 'f32', shape = [2, 3]); s = {call.format('z')} r = {call.format('s')}"
        )
        fragments += submodel(f"b{level}", inside)
    started = perf_counter()
    with pytest.raises(LimitExceeded):
        load(f"y = {CALL.format('x', 'b30')}", fragments=fragments)
    assert perf_counter() - started < 10


SCAN = "{} = tract_core_scan(body = '{}', scan = [('z', {}, 0, 1)], output = [('r', 'full', 0, 1)]);"
"""The result, the body, and what is scanned."""


@pytest.mark.parametrize(
    ("call", "match"),
    [
        ("{} = {}({});", "more than 1000000 nodes"),
        ("{} = {}({})[0];", "more than 1000000 nodes"),
        (SCAN, "'b0' is a body more than 1024 times"),
    ],
    ids=["call", "part", "scan"],
)
def test_fragments_that_double_at_every_level_are_refused_in_time(call, match) -> None:
    head = "fragment b{}(z: tensor<scalar>) -> (r: tensor<scalar>)"
    fragments = f"{head.format(0)} {{ r = neg(z); }}\n"
    for level in range(1, 25):
        twice = f"{call.format('s', f'b{level - 1}', 'z')} {call.format('r', f'b{level - 1}', 's')}"
        fragments += f"{head.format(level)} {{ {twice} }}\n"
    started = perf_counter()
    with pytest.raises(LimitExceeded, match=match):
        load(call.format("y", "b24", "x"), fragments=fragments)
    assert perf_counter() - started < 10


def test_what_a_condition_leaves_out_is_not_counted() -> None:
    """A fragment for each of thirty levels, which goes on twice, or not at all."""
    head = "fragment b{}(z: tensor<scalar>, n: integer) -> (r: tensor<scalar>)"
    fragments = f"{head.format(0)} {{ r = neg(z); }}\n"
    for level in range(1, 31):
        inner = f"b{level - 1}"
        fragments += f"{head.format(level)} {{ r = {inner}({inner}(z, n - 1), n - 1) if n > 0 else z; }}\n"
    assert load("y = b30(neg(x), 3);", fragments=fragments)


def test_submodels_that_double_at_every_level_are_one_model() -> None:
    twice = document("o = tract_core_submodel(x, 'a') + tract_core_submodel(x, 'a');", ["F32[2]"], ["o"])
    leaf = document("o = neg(neg(x)) * 1.0;", ["F32[2]"], ["o"])
    for levels, refused in ((16, False), (24, True)):
        files = {f"{'a/' * level}graph.nnef": twice.encode() for level in range(1, levels)}
        files[f"{'a/' * levels}graph.nnef"] = leaf.encode()
        started = perf_counter()
        if refused:
            with pytest.raises(LimitExceeded, match="more than 1000000 nodes"):
                tract.nnef().load_bytes(archive(twice, files))
        else:
            tract.nnef().load_bytes(archive(twice, files))
        assert perf_counter() - started < 10


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("tract_py_condition", "a list of 4 texts is wanted, found ''"),
        ('tract_py_condition ["S", "==", "3"]', "a list of 4 texts is wanted"),
        ('tract_py_condition ["S", "is", "3", ""]', "'is' is no relation of sizes"),
        ('tract_py_condition ["S", "==", "U", ""]', "the symbol 'U' is not declared"),
        ('tract_py_condition ["S +", "==", "3", ""]', "found the end"),
        ("tract_py_condition " + "[" * 5000, "a list of 4 texts is wanted"),
        ('tract_py_definition ["U", "3"]', "the symbol 'U' is not declared"),
        ('tract_py_scenario ["a"]', "a text in quotes is wanted"),
        ('tract_py_unnamed "U"', "there is no symbol 'U'"),
        ('tract_py_name ["nothing", "z"]', "'nothing' is no input and no output"),
        ('tract_py_name ["x", "\\u001b[31m"]', "has a character that cannot be shown"),
        ('tract_py_shape ["y", "3", "2"]', "'y' is 2,3,f32, an extension says 3,2"),
        ('tract_py_shape ["y", "2", "3", "1"]', "'y' is 2,3,f32, an extension says 2,3,1"),
        ('tract_py_shape ["y", "2", "S"]', "an extension says 2,S"),
        ("tract_symbol", "a symbol has no name"),
    ],
)
def test_extension_lines_are_checked(line, problem) -> None:
    with pytest.raises(TractError, match=problem):
        load("y = neg(x);", extensions=f"extension tract_symbol S;\nextension {line};")


def test_unknown_lines_mean_something_to_others() -> None:
    assert load("y = neg(x);", extensions='extension tract_py_newer ["a"];\nextension KHR_what ever;')


def test_an_operator_of_nobody_is_not_written() -> None:
    from cycles import text

    from tract_core.plugins import default_registry
    from tract_core.testing.conformance.models import Unheard, empty, source

    model = empty(default_registry())
    model.set_outputs(model.wire_node("y", Unheard(), [source(model, "x", "3,f32")]))
    with pytest.raises(Unsupported, match=r"node 'y': .*:Unheard would not be found again"):
        text(model)
