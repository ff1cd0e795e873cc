"""Tables of keys and values: what fills them, and what of that is refused."""

from __future__ import annotations

import numpy as np
import pytest
from graphdef_builder import CODES, const, function, graph, load, node, placeholder, refused, run, saved_model
from tract_tensorflow.graphdef.loader import TensorflowLoader
from tract_tensorflow.graphdef.text_tables import TextTable

from tract_core.data import DatumType
from tract_core.errors import CorruptModel, LimitExceeded, MissingOperator, TractError, Unsupported
from tract_core.limits import LoadLimits
from tract_core.testing.hostile import bounded

I64, F32, STRING = CODES[DatumType.I64], CODES[DatumType.F32], CODES[DatumType.STRING]
X = placeholder("x", -1, code=I64)
TABLE = node("HashTableV2", "t", key_dtype=("type", I64), value_dtype=("type", I64))
DEFAULT = const("d", np.int64(-1))
FIND = node("LookupTableFindV2", "y", "t", "x", "d")
KEYS = const("k", np.int64([5, 7]))
VALUES = const("v", np.int64([50, 70]))
FILL = node("InitializeTableV2", "fill", "t", "k", "v")


ASKED = np.array([7, 6, 5])


def test_what_fills_a_table_is_no_output():
    model = load(X, TABLE, DEFAULT, KEYS, VALUES, FILL, FIND)
    assert [model.outlet_name(outlet) for outlet in model.outputs] == ["y"]
    np.testing.assert_array_equal(run(model, ASKED)[0], [70, -1, 50])


def test_a_table_may_be_filled_in_a_function():
    fill = function(
        "fill",
        ["t", "k"],
        {},
        [const("v", np.int64([50, 70])), node("LookupTableImportV2", "f", "t", "k", "v:output:0")],
    )
    call = node("StatefulPartitionedCall", "c", "t", "k", f=("func", "fill"))
    other = function("other", ["x"], {"y": "x"}, [])
    model = load(X, TABLE, DEFAULT, KEYS, call, FIND, functions=[fill, other], outputs="y")
    np.testing.assert_array_equal(run(model, ASKED)[0], [70, -1, 50])


@pytest.mark.parametrize(
    ("keys", "values", "wanted"),
    [([], [], [-1, -1, -1]), ([5], [9], [-1, -1, 9]), ([7, 5, 7], [1, 2, 1], [1, -1, 2])],
)
def test_tables_of_few_keys(keys, values, wanted):
    held = [const("k", np.array(keys, np.int64)), const("v", np.array(values, np.int64))]
    size = node("LookupTableSizeV2", "n", "t")
    found, count = run(load(X, TABLE, DEFAULT, *held, FILL, FIND, size, outputs="y,n"), ASKED)
    np.testing.assert_array_equal(found, wanted)
    assert count == len(set(keys))


SEQUENCE = [
    const("a", np.int32(3)),
    const("b", np.int32(5)),
    const("s", np.int32(1)),
    node("Range", "r", "a", "b", "s"),
]


def test_values_in_sequence():
    cast = node("Cast", "v", "r", DstT=("type", I64))
    np.testing.assert_array_equal(run(load(X, TABLE, DEFAULT, KEYS, *SEQUENCE, cast, FILL, FIND), ASKED)[0], [4, -1, 3])


LONG = [const("b", np.int32(2**31 - 1)), node("Range", "v", "a", "b", "s")]


@pytest.mark.parametrize(
    ("nodes", "said"),
    [
        ([], "nothing is known of what the table 't' holds"),
        ([placeholder("k", 2, code=I64), VALUES, FILL], "a table is filled with what is no constant"),
        ([KEYS, VALUES, node("InitializeTableV2", "fill", "t", "k")], "it has 2 inputs, a table, keys and values"),
        ([KEYS, const("v", np.int64([1])), FILL], "keys of shape [2] do not go with values of shape [1]"),
        ([const("k", np.int64([5, 5])), VALUES, FILL], "the key '5' has two values"),
        ([KEYS, VALUES, FILL, node("LookupTableImportV2", "more", "t", "k", "v")], "several nodes fill the table"),
        ([KEYS, const("v", np.float32([1, 2])), FILL], "a table of 2,i64 and 2,f32 is asked for x_0,i64, or i64"),
        ([KEYS, SEQUENCE[0], SEQUENCE[2], *LONG, FILL], "2147483644 values do not go with 2 keys"),
        ([KEYS, node("Cast", "v", "v", DstT=("type", I64)), FILL], "a table is filled with what is no constant"),
        ([KEYS, node("Cast", "v", "k", DstT=("type", F32)), FILL], "that is cast to f32"),
        ([node("InitializeTableFromTextFileV2", "fill", "t", "k"), const("k", np.int64(1))],
         "the file that fills it is none that is kept with the model"),
        ([node("InitializeTableFromTextFileV2", "fill", "t")], "it has no file to read"),
    ],
)  # fmt: skip
def test_what_fills_a_table_wrongly_is_refused(nodes, said):
    assert said in refused(TractError, X, TABLE, DEFAULT, FIND, *nodes, outputs="y")


def test_tables_that_change_are_refused_by_name():
    changing = node("MutableHashTableV2", "t", key_dtype=("type", I64), value_dtype=("type", I64))
    message = refused(MissingOperator, X, changing, DEFAULT, KEYS, VALUES, FIND, outputs="y")
    assert "operator 'MutableHashTableV2' of TensorFlow is not known" in message


def test_a_table_is_no_tensor():
    message = refused(Unsupported, X, TABLE, node("Relu", "y", "t"))
    assert "the table 't', which this operator does not take" in message


@pytest.mark.hostile
def test_functions_that_call_others_very_often_are_refused():
    fill = function("f0", ["t", "k"], {}, [node("LookupTableImportV2", "f", "t", "k", "k")])
    functions = [fill]
    for level in range(1, 20):
        calls = [node("PartitionedCall", f"c{n}", "t", "k", f=("func", f"f{level - 1}")) for n in range(10)]
        functions.append(function(f"f{level}", ["t", "k"], {}, calls))
    call = node("PartitionedCall", "c", "t", "k", f=("func", "f19"))
    with bounded():
        message = refused(
            LimitExceeded, X, TABLE, DEFAULT, KEYS, FIND, call, functions=functions, outputs="y",
            limits=LoadLimits(max_nodes=20_000),
        )  # fmt: skip
    assert "more than 20000 nodes" in message


# --- files of text ---


def columns(content, keys=DatumType.STRING, values=DatumType.I64, **options):
    table = node("InitializeTableFromTextFileV2", "fill", **options)
    return [array.tolist() for array in TextTable.of(table).columns(content, keys, values)]


def test_lines_and_their_numbers():
    assert columns(b"a\nb\n") == [["a", "b"], [0, 1]]
    assert columns(b"a\r\nb") == [["a", "b"], [0, 1]]
    assert columns(b"") == [[], []]
    assert columns(b"a\n\nb\n", offset=5) == [["a", "", "b"], [5, 6, 7]]
    assert columns(b"a\nb\nc\n", vocab_size=2) == [["a", "b"], [0, 1]]
    assert columns("é\n".encode()) == [["é"], [0]]


def test_columns():
    assert columns(b"a\t7\nb\t-8\n", key_index=0, value_index=1) == [["a", "b"], [7, -8]]
    found = columns(b"1.5,a\n,b", DatumType.STRING, DatumType.STRING, key_index=1, value_index=0, delimiter=b",")
    assert found == [["a", "b"], ["1.5", ""]]


@pytest.mark.parametrize(
    ("content", "options", "kinds", "said"),
    [
        (b"a\tb\n", {"key_index": 0, "value_index": 1}, (), "line 1 has 'b', wanted i64"),
        (b"a\t1\nb\n", {"key_index": 0, "value_index": 1}, (), "line 2 has 1 columns, column 2 is wanted"),
        (b"a\t" + b"9" * 30, {"key_index": 0, "value_index": 1}, (), "wanted i64"),
        (b"a\t" + b"9" * 10_000, {"key_index": 0, "value_index": 1}, (), "wanted i64"),
        (b"a\n", {"vocab_size": 2}, (), "a file of 2 lines is wanted, it has 1"),
        (b"\xff\n", {}, (), "line 1 is not UTF-8"),
        (b"a\n", {"key_index": -3}, (), "columns -3 and -1"),
        (b"a\n", {"delimiter": b""}, (), "with '' between them"),
        (b"a\n", {}, (DatumType.STRING, DatumType.F32), "the numbers of lines are wanted as f32"),
        (b"a\n", {}, (DatumType.I64, DatumType.I64), "lines of a text are wanted as i64"),
        (b"a\n", {"value_index": 0}, (DatumType.STRING, DatumType.BOOL), "lines of a text are wanted as bool"),
    ],
)
def test_texts_that_do_not_fit_are_refused(content, options, kinds, said):
    with pytest.raises(TractError) as caught:
        columns(content, *kinds, **options)
    assert said in str(caught.value)


def served(folder, asset, *, limits=None):
    """The SavedModel of a table that is filled from a file among its assets."""
    table = node("HashTableV2", "t", key_dtype=("type", STRING), value_dtype=("type", I64))
    nodes = [
        placeholder("x", -1, code=STRING), table, DEFAULT, FIND, placeholder("path", code=STRING),
        node("InitializeTableFromTextFileV2", "fill", "t", "path", key_index=-2, value_index=-1),
    ]  # fmt: skip
    found = saved_model(graph(*nodes), {"y": "y:0"}, {"x": "x:0"})
    found.meta_graphs[0].signature_def["serving_default"].inputs["x"].dtype = STRING
    found.meta_graphs[0].asset_file_def.add(filename=asset).tensor_info.name = "path:0"
    (folder / "saved_model.pb").write_bytes(found.SerializeToString())
    return TensorflowLoader(limits=limits or LoadLimits()).load(folder)


def test_assets(tmp_path):
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "words.txt").write_bytes(b"of\nthe\n")
    model = served(tmp_path, "words.txt")
    np.testing.assert_array_equal(run(model, np.array(["the", "a"], object))[0], [1, -1])
    (tmp_path / "assets" / "words.txt").write_bytes(b"of\n" * 3000)
    with pytest.raises(LimitExceeded, match="has 9000 bytes, 5000 are allowed"):
        served(tmp_path, "words.txt", limits=LoadLimits(max_parsed_bytes=5000))


@pytest.mark.parametrize("asset", ["../words.txt", "/etc/passwd", "none.txt", "", "a\nb"])
def test_assets_that_are_not_in_the_folder_are_refused(tmp_path, asset):
    (tmp_path / "assets").mkdir()
    (tmp_path / "words.txt").write_bytes(b"of\nthe\n")
    with pytest.raises(TractError):
        served(tmp_path, asset).into_typed()


def test_assets_that_cannot_be_read_are_refused():
    model = saved_model(graph(X, node("Identity", "y", "x")), {"y": "y:0"}, {"x": "x:0"})
    model.meta_graphs[0].collection_def["saved_model_assets"].any_list.value.add(value=b"\xff\xff")
    with pytest.raises(CorruptModel, match="one of its assets cannot be read"):
        TensorflowLoader().load_bytes(model.SerializeToString())
