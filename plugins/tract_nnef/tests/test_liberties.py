"""What other writers say otherwise than the format has it: it is read, and one line says how it is understood."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from documents import archive, compute, load, run
from tract_nnef.archive.tensors import tensor_file

import tract_core as tract
from tract_core.errors import CorruptModel, ModelWarning
from tract_core.testing.hostile import bounded

Array = np.ndarray[Any, Any]

HEAD = "version 1.0;\nextension tract_registry tract_core;\n"
RNG = np.random.default_rng(30)
PAIR = np.array([1, 2], np.float32)


def said(work: Callable[[], Any]) -> tuple[Any, list[str]]:
    """What comes out, and the warnings on the way."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = work()
    assert all(issubclass(one.category, ModelWarning) for one in caught)
    return found, [str(one.message) for one in caught]


def read(body: str, outputs: str = "y", inputs: str = "x", before: str = "") -> tuple[tract.Model, list[str]]:
    """The model of a graph whose inputs its statements make, and the warnings."""
    model, found = said(lambda: load(f"{HEAD}{before}graph g({inputs}) -> ({outputs})\n{{\n{body}\n}}"))
    assert all("\n" not in one for one in found)
    return model, found


X = "x = external(shape = [2]);\n"


# --- names that are assigned again ------------------------------------------------------------------------------------


def test_the_later_value_of_a_name_holds_for_the_lines_behind_it() -> None:
    model, found = read(f"{X}a = x + 1.0;\nb = a * 10.0;\na = a * 2.0;\ny = a + b;")
    np.testing.assert_array_equal(run(model, PAIR), (PAIR + 1) * 2 + (PAIR + 1) * 10)
    assert found == ["'a' is assigned again in line 8: the later value holds for the lines behind it"]


def test_there_is_one_warning_whatever_the_number_of_names() -> None:
    body = "".join(f"a{k} = x + {k}.0;\na{k} = a{k} * 2.0;\n" for k in range(20))
    _, found = read(f"{X}{body}y = a19;")
    assert found == ["'a0' is assigned again in line 7 (and 19 others): the later value holds for the lines behind it"]


def test_shapes_that_are_asked_for_under_one_name() -> None:
    """As torch-to-nnef writes them: the name is that of the tensor, whatever becomes of its shape."""
    body = """x = external(shape = [B, 4]);
    s = tract_core_shape_of(x);
    first = squeeze(slice(s, axes = [0], begin = [0], end = [1]), axes = [0]);
    s = tract_core_shape_of(x);
    second = squeeze(slice(s, axes = [0], begin = [1], end = [2]), axes = [0]);
    y = reshape(x, shape = [second, first]);"""
    model, found = read(body, before="extension tract_symbol B;\n")
    x = RNG.normal(size=(3, 4)).astype(np.float32)
    np.testing.assert_array_equal(run(model, x), x.reshape(4, 3))
    assert len(found) == 1


def test_a_parameter_of_a_fragment_may_be_assigned_again() -> None:
    fragment = "fragment f(a: tensor<scalar>) -> (y: tensor<scalar>) { a = a + 1.0; y = a * 2.0; }\n"
    model, found = read(f"{X}y = f(x) + f(x);", before=fragment)
    np.testing.assert_array_equal(run(model, PAIR), 4 * (PAIR + 1))
    assert len(found) == 1


def test_an_input_that_is_assigned_again_stays_the_input() -> None:
    model, found = read(f"{X}x = x + 1.0;\nx = x * 3.0;", outputs="x")
    assert model.input_name(0) == "x"
    np.testing.assert_array_equal(run(model, PAIR), (PAIR + 1) * 3)
    assert len(found) == 1


def test_a_pair_of_results_may_take_names_again() -> None:
    body = "x = external(shape = [2, 3]);\n[a, b] = unstack(x, axis = 0);\n[b, a] = unstack(x, axis = 0);\ny = a - b;"
    model, found = read(body)
    x = RNG.normal(size=(2, 3)).astype(np.float32)
    np.testing.assert_array_equal(run(model, x), x[1] - x[0])
    assert found == ["'b' is assigned again in line 7 (and 1 other): the later value holds for the lines behind it"]


def test_bodies_of_loops_too() -> None:
    fragment = """fragment body(a: tensor<scalar>, s: tensor<scalar>) -> (s2: tensor<scalar>)
    { t = a + s; t = t * 2.0; s2 = t; }\n"""
    body = """x = external(shape = [3, 1]);
    y = tract_core_scan(body = 'body', scan = [('a', x, 0, 1)], state = [('s', [[0.0]], 's2')],
        output = [('s2', 'last', 0, 1)]);"""
    model, found = read(body, before=fragment)
    assert run(model, np.array([[1], [2], [3]], np.float32)).item() == ((1 * 2 + 2) * 2 + 3) * 2
    assert len(found) == 1


def test_patches_too() -> None:
    model, _ = read(f"{X}y = x + 1.0;")
    model.transform('{"name": "patch", "body": "y = y * 2.0; t = y + 1.0; t = t * 3.0; y = y + t;"}')
    np.testing.assert_array_equal(run(model, PAIR), (PAIR + 1) * 2 + ((PAIR + 1) * 2 + 1) * 3)


def test_what_is_written_assigns_every_name_once(tmp_path) -> None:
    model, _ = read(f"{X}a = x + 1.0;\na = a * 2.0;\na = exp(a);\ny = a - x;")
    model.save(tmp_path / "m.nnef")
    text = (tmp_path / "m.nnef" / "graph.nnef").read_text()
    targets = [line.partition("=")[0].strip() for line in text.splitlines() if line.startswith(" ") and "=" in line]
    assert len(set(targets)) == len(targets) > 3
    assert said(lambda: tract.load(tmp_path / "m.nnef"))[1] == []


# --- names that are spelled in two ways -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("assigned", "used"),
    [
        ('i"input.1"', "input_1"),
        ("input_1", 'i"input.1"'),
        ("i'a/b'", "a_b"),
        ('i"/a"', "__a"),  # as the established engine writes it
        ('i"/a"', "_a"),
        ('i"0.weight"', "_0_weight"),
        ('i"a.b"', 'i"a/b"'),
    ],
)
def test_names_find_each_other(assigned: str, used: str) -> None:
    model, found = read(f"{X}{assigned} = x + 1.0;\ny = {used} * 2.0;")
    np.testing.assert_array_equal(run(model, PAIR), (PAIR + 1) * 2)
    names = [name.strip("i'\"") for name in (used, assigned)]
    wanted = f"'{names[0]}' is not assigned: '{names[1]}' is meant, the only name that is spelled like it"
    assert found == [wanted.replace("/nput", "/input").replace("'nput", "'input")]


def test_inputs_outputs_and_results_too() -> None:
    fragment = 'fragment f(a: tensor<scalar>) -> (i"r.1": tensor<scalar>) { r_1 = a + 1.0; }\n'
    model, found = read(
        "x_1 = external(shape = [2]);\ny_1 = f(x_1);", outputs='i"y.1"', inputs='i"x.1"', before=fragment
    )
    np.testing.assert_array_equal(run(model, PAIR), PAIR + 1)
    assert found == ["'r.1' is not assigned (and 2 others): 'r_1' is meant, the only name that is spelled like it"]


def test_graph_quant_too() -> None:
    quantization = '"x.1": zero_point_linear_quantize(zero_point = 3, scale = 0.5, bits = 8, signed = false);'
    text = f"{HEAD}graph g(x_1) -> (y)\n{{\nx_1 = external(shape = [2]);\ny = x_1 + 0.0;\n}}"
    model, found = said(lambda: load(text, {"graph.quant": quantization.encode()}))
    assert "QU8(Z:3 S:0.5)" in str(model.input_fact(0)).upper().replace("QU8(Z:3 S:0.5)", "QU8(Z:3 S:0.5)")
    assert found == ["'x.1' is not assigned: 'x_1' is meant, the only name that is spelled like it"]


def test_a_name_with_two_like_it_finds_none() -> None:
    with pytest.raises(CorruptModel, match="'a_b' is not defined"):
        read(f'{X}i"a.b" = x + 1.0;\ni"a/b" = x + 2.0;\ny = a_b;')


def test_the_very_name_comes_first() -> None:
    model, found = read(f'{X}i"a.b" = x + 1.0;\na_b = x + 2.0;\ny = a_b;')
    np.testing.assert_array_equal(run(model, PAIR), PAIR + 2)
    assert found == []


# --- symbols that are not declared ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("x = external(shape = [B, 2]);\ny = x + 1.0;", lambda x: x + 1),
        ("x = tract_core_external(shape = [B, 2], datum_type = 'F32');\ny = x + 1.0;", lambda x: x + 1),
        ("x = external(shape = [B, C]);\ny = reshape(x, shape = [C, B]);", lambda x: x.reshape(2, 3)),
        ("x = external(shape = [B, 2]);\ny = slice(x, axes = [0], begin = [B - 1], end = [B]);", lambda x: x[-1:]),
        ("x = external(shape = [B, 2]);\ny = tile(x, repeats = [B, 1]);", lambda x: np.tile(x, (3, 1))),
        (
            "x = external(shape = [2 * B - 1, 2]);\ny = tract_core_broadcast(x, shape = [B, 1, 1]);",
            lambda x: np.array([x] * 2),
        ),
    ],
)
def test_a_name_that_is_not_known_is_a_symbol_where_sizes_are_wanted(
    body: str, wanted: Callable[[Array], Array]
) -> None:
    model, found = read(body)
    x = RNG.normal(size=(3, 2)).astype(np.float32)
    np.testing.assert_allclose(run(model, x), wanted(x))
    assert len(found) == 1
    assert found[0].startswith("'B' is not declared")
    assert found[0].endswith(": it is a symbol, as sizes are wanted where it is used")


def test_sizes_of_a_fragment_are_sizes_where_it_is_called() -> None:
    fragment = "fragment f(a: tensor<scalar>, n: integer[]) -> (y: tensor<scalar>) { y = reshape(a, shape = n); }\n"
    model, _ = read("x = external(shape = [B, 2]);\ny = f(x, [1, B, 2]);", before=fragment)
    x = RNG.normal(size=(3, 2)).astype(np.float32)
    np.testing.assert_array_equal(run(model, x), x[None])


@pytest.mark.parametrize("use", ["B + x", "add(x, B)", "[B]", "concat([x, B], axis = 0)", "leaky_relu(x, B)"])
def test_elsewhere_a_name_that_is_not_known_is_a_mistake(use: str) -> None:
    with pytest.raises(CorruptModel, match="'B' is not defined"):
        read(f"{X}y = {use};")


def test_a_symbol_without_a_value_is_named_when_it_is_needed() -> None:
    model, found = read(f"{X}y = slice(x, axes = [0], begin = [0], end = [K]);")
    assert len(found) == 1
    with pytest.raises(tract.TractError, match="K"):
        run(model.clone(), PAIR)
    model.transform('{"name": "set_symbols", "values": {"K": 1}}')
    np.testing.assert_array_equal(run(model, PAIR), PAIR[:1])


# --- tensors from outside, anywhere -----------------------------------------------------------------------------------


def files(**arrays: Array) -> dict[str, bytes]:
    return {f"{name}.dat": b"".join(map(bytes, tensor_file(array))) for name, array in arrays.items()}


def test_variables_and_inputs_may_be_inside_fragments() -> None:
    fragments = """fragment dense(a: tensor<scalar>, label: string) -> (y: tensor<scalar>)
    { w = variable(label = label, shape = [2, 2]); y = matmul(a, w); }
    fragment given() -> (y: tensor<scalar>) { y = external(shape = [1, 2]); }\n"""
    a, b = (RNG.normal(size=(2, 2)).astype(np.float32) for _ in range(2))
    text = f"{HEAD}{fragments}graph g(x) -> (y)\n{{\nx = given();\ny = dense(dense(x, 'a'), label = 'b');\n}}"
    model, found = said(lambda: load(text, files(a=a, b=b)))
    assert found == []
    x = RNG.normal(size=(1, 2)).astype(np.float32)
    np.testing.assert_allclose(run(model, x), x @ a @ b, rtol=1e-5)


def test_what_is_external_and_not_listed_is_an_input_behind_those_that_are() -> None:
    fragment = "fragment f(a: tensor<scalar>) -> (y: tensor<scalar>) { b = external(shape = [2]); y = a - b; }\n"
    model, found = read(f"z = external(shape = [2]);\n{X}y = f(x) * z;", before=fragment)
    assert [model.input_name(place) for place in range(3)] == ["x", "z", "f.b"]
    wanted = "'z' is external and not listed as an input (and 1 other): it is one, behind those that are listed"
    assert found == [wanted]
    np.testing.assert_array_equal(run(model, PAIR, 2 * PAIR, 5 * PAIR), (PAIR - 5 * PAIR) * 2 * PAIR)


def test_an_input_that_a_fragment_computes_stands_for_the_one_inside() -> None:
    fragment = "fragment f() -> (y: tensor<scalar>) { a = external(shape = [2]); y = a * 2.0; }\n"
    model, found = read("x = f();\ny = x + 1.0;", before=fragment)
    np.testing.assert_array_equal(run(model, PAIR), 2 * PAIR + 1)
    assert found == ["the input 'x' is computed: 'x.a' is the input, which is external"]


def test_an_input_has_to_come_from_somewhere() -> None:
    with pytest.raises(CorruptModel, match="the input 'x' of the graph is computed, wanted an external tensor"):
        read("x = constant(shape = [2], value = [1.0]);\ny = x + 1.0;")
    with pytest.raises(CorruptModel, match="the inputs 'x' and 'z' of the graph are one tensor"):
        read(f"{X}z = x;\ny = x + z;", inputs="x, z")


# --- arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "wanted", "named"),
    [
        ("sub(a = x, b = y)", lambda x, y: x - y, ["'a' is taken for 'x'", "'b' is taken for 'y'"]),
        ("sub(x, other = y)", lambda x, y: x - y, ["'other' is taken for 'y'"]),
        ("sub(y = x, x = y)", lambda x, y: y - x, []),
        ("exp(input = x)", lambda x, _: np.exp(x), ["'input' is taken for 'x'"]),
        ("matmul(a = x, b = y, transposeB = true)", lambda x, y: x @ y.T, ["'a' is taken for 'A'"]),
    ],
)
def test_tensors_under_other_names_are_taken_by_their_places(call: str, wanted: Any, named: Sequence[str]) -> None:
    x, y = (RNG.normal(size=(2, 3)).astype(np.float32) for _ in range(2))
    body = f"x = external(shape = [2, 3]);\ny = external(shape = [2, 3]);\nz = {call};"
    model, found = read(body, inputs="x, y", outputs="z")
    np.testing.assert_allclose(run(model, x, y), wanted(x, y), rtol=1e-5)
    assert len(found) == bool(named)
    assert all(one in found[0] for one in named)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        ("sub(x, x, c = x)", "sub has no parameter 'c'"),
        ("leaky_relu(x, slope = 0.5)", "leaky_relu has no parameter 'slope'"),
        ("conv(x, stride = [2], kernel_size = 3)", "conv has no parameter 'kernel_size'"),
    ],
)
def test_others_are_not_guessed(call: str, problem: str) -> None:
    if "leaky" not in call and "conv" not in call:
        assert problem in read(f"{X}y = {call};")[1][0]
        return
    with pytest.raises(CorruptModel, match=problem):
        read(f"{X}y = {call};")


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ("softmax(x, axes = [-1])", lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True)),
        ("sum_reduce(x, axes = [-2])", lambda x: x.sum(0, keepdims=True)),
        ("concat([x, x], axis = -1)", lambda x: np.concatenate([x, x], -1)),
        ("squeeze(unsqueeze(x, axes = [-1]), axes = [-1])", lambda x: x),
        ("tract_core_gather(x, [1], axis = -1)", lambda x: x[:, 1:2]),
        ("tract_core_downsample(x, axis = -1, stride = 2)", lambda x: x[:, ::2]),
    ],
)
def test_axes_may_be_counted_from_the_end(call: str, wanted: Callable[[Array], Array]) -> None:
    x = RNG.normal(size=(2, 3)).astype(np.float32)
    np.testing.assert_allclose(compute(f"y = {call};", x=x), wanted(x), rtol=1e-5)


@pytest.mark.parametrize("axis", [2, -3])
def test_axes_outside_of_a_tensor_are_refused(axis: int) -> None:
    with pytest.raises(CorruptModel, match=f"axis {axis} is outside of a tensor of 2 axes"):
        compute(f"y = softmax(x, axes = [{axis}]);", x=np.zeros((2, 3), np.float32))


@pytest.mark.parametrize("name", ["floor", "ceil", "round", "tract_core_round_even"])
def test_integers_are_round_already(name: str) -> None:
    x = np.array([-3, 0, 1 << 60], np.int64)
    np.testing.assert_array_equal(compute(f"y = {name}(x);", x=x), x)


def test_one_tensor_is_an_array_of_one() -> None:
    np.testing.assert_array_equal(compute("y = concat(x, axis = 0);", x=PAIR), PAIR)
    with pytest.raises(CorruptModel, match="2 results are assigned, found a tensor"):
        compute("(y, z) = exp(x);", x=PAIR)


@pytest.mark.parametrize(("begin", "end"), [(0, 2), (-2, 9), (1, -1), (-9, 1), (2, 2)])
@pytest.mark.parametrize("size", ["[5]", "[S]"])
def test_a_place_on_an_axis_without_the_fragment_that_says_what_it_is(size: str, begin: int, end: int) -> None:
    """torch-to-nnef leaves it out where other fragments call it."""
    body = f"""x = external(shape = {size});
    n = squeeze(tract_core_shape_of(x), axes = [0]);
    y = slice(x, axes = [0], begin = [within_bound_index({begin}, n)], end = [within_bound_index({end}, n)]);"""
    x = RNG.normal(size=5).astype(np.float32)
    model, found = read(body, before="extension tract_symbol S;\n")
    np.testing.assert_array_equal(run(model, x), x[begin:end])
    assert found == []


# --- hostile ----------------------------------------------------------------------------------------------------------

MANY = 100_000


def refusal(work: Callable[[], Any]) -> str:
    """What an error says that there may be."""
    try:
        work()
    except tract.TractError as error:
        return str(error)
    return ""


@pytest.mark.hostile
@pytest.mark.parametrize(
    "body",
    [
        "a = x;\n" + "a = -a;\n" * (MANY // 3) + "y = a;",
        "".join(f'i"a{k}.b" = x;\n' for k in range(MANY)) + 'y = i"a7/b";',
        "".join(f'i"a{k}.b" = x;\nb{k} = a{k}_b;\n' for k in range(MANY // 2)) + "y = b9;",
        'i"a.b" = x;\ni"a/b" = x;\n' * (MANY // 2) + "y = x;",
        "y = x;\n" + "".join(f"z{k} = reshape(x, shape = [S{k}, -1]);\n" for k in range(2000)),
        "y = tile(x, repeats = [" + "1.0, " * MANY + "1.0]);",
        "c = 8.0;\n" + "c = floor(c / 1.0);\n" * 10_000 + "y = reshape(x, shape = [c]);",
    ],
    ids=["again", "spelled alike", "each found by another spelling", "two alike", "symbols", "sizes", "a long chain"],
)
def test_names_without_end_are_read_or_refused_in_time(body: str) -> None:
    with bounded(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        message = refusal(lambda: load(f"{HEAD}graph g(x) -> (y)\n{{\n{X}{body}\n}}"))
    assert len(message) < 1100


@pytest.mark.hostile
def test_a_constant_that_nobody_writes_out_is_no_list_of_sizes(tmp_path: Path) -> None:
    body = f"{X}w = variable<integer>(label = 'w', shape = [2000000]);\ny = tile(x, repeats = w);"
    text = f"{HEAD}graph g(x) -> (y)\n{{\n{body}\n}}"
    content = archive(text, files(w=np.ones(2_000_000, np.int64)))
    with bounded(), pytest.raises(CorruptModel, match="'w' has 2000000 elements, wanted at most 65536"):
        tract.nnef().load_bytes(content)


def test_the_name_in_a_warning_is_cut_and_cannot_steer() -> None:
    name = "a" * 500
    _, found = read(f'{X}i"{name}" = x + 1.0;\ni"{name}" = x + 2.0;\ny = x;')
    assert len(found[0]) < 150
    _, found = read(f'{X}i"a\u202e" = 1.0;\ni"a\u202e" = 2.0;\ny = x;')
    assert found[0].isprintable()
