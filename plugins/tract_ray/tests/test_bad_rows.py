"""Rows that do not fit, and rows on which the model fails: raised, null, or set aside. The others keep their bits."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tract_ray import BadRows, Predictor
from tract_ray.dead_letters import write_dead_letters

from tract_core.errors import InputError


def ragged(rows: np.ndarray) -> list[Any]:
    """As lists: row 17 is too short, row 40 is null, row 41 has a null in it."""
    listed = rows.tolist()
    listed[17] = listed[17][:3]
    listed[40] = None
    listed[41] = [None, *listed[41][1:]]
    return listed


REASONS = {
    17: "column 'x': its shape is 3, and input 'x' takes 8",
    40: "column 'x': it is null",
    41: "column 'x': it is null",
}


def table(rows: np.ndarray) -> Any:
    return pa.table({"id": np.arange(100), "x": pa.array(ragged(rows), pa.list_(pa.float32()))})


def arrays(rows: np.ndarray) -> Any:
    return {"id": np.arange(100), "x": ragged(rows)}


@pytest.fixture
def wanted(models, rows) -> np.ndarray:
    """What good rows give in a batch of the same size: the bad ones may hold anything there."""
    mended = rows.copy()
    mended[list(REASONS)] = 0.5
    return np.delete(Predictor(models["dense"])({"x": mended})["y"], list(REASONS), axis=0)


def test_raised_with_numbers_of_rows(models, rows) -> None:
    for batch in (table(rows), arrays(rows)):
        with pytest.raises(BadRows) as raised:
            Predictor(models["dense"])(batch)
        assert raised.value.rows == REASONS
        told = str(raised.value).splitlines()
        assert told[0] == "3 of 100 rows cannot be scored:"
        assert told[1:] == [
            "  row 17: column 'x': its shape is 3, and input 'x' takes 8",
            "  row 40, 41: column 'x': it is null",
            "  hint: on_error='null' or 'dead_letter' sets such rows aside, and scores the others",
        ]
        again = pickle.loads(pickle.dumps(raised.value))
        assert (str(again), again.rows) == (str(raised.value), REASONS)


def test_null_in_a_table(models, rows, wanted) -> None:
    result = Predictor(models["dense"], columns=["id"], on_error="null")(table(rows))
    assert result.column_names == ["id", "y", "error"]
    assert {row: why for row, why in enumerate(result["error"].to_pylist()) if why} == REASONS
    values = result["y"].combine_chunks().to_numpy_ndarray()
    assert np.flatnonzero(np.isnan(values).all(axis=1)).tolist() == list(REASONS)
    assert np.delete(values, list(REASONS), axis=0).tobytes() == wanted.tobytes()


def test_null_in_arrays(models, rows, wanted) -> None:
    result = Predictor(models["dense"], columns=["id"], on_error="null", error_column="why")(arrays(rows))
    assert np.isnan(result["y"][list(REASONS)]).all()
    assert {row: why for row, why in enumerate(result["why"]) if why} == REASONS
    assert set(np.delete(result["why"], list(REASONS))) == {""}
    assert np.delete(result["y"], list(REASONS), axis=0).tobytes() == wanted.tobytes()


def test_the_schema_does_not_depend_on_bad_rows(models, rows) -> None:
    predictor = Predictor(models["dense"], columns=["id"], on_error="null")
    schemas = [predictor(table(rows).slice(*part)).schema for part in ((0, 100), (0, 10), (17, 1), (0, 0))]
    assert schemas == [schemas[0]] * 4


@pytest.mark.parametrize("batch", [table, arrays])
def test_set_aside(models, rows, wanted, batch, tmp_path: Path) -> None:
    folder = tmp_path / "made" / "letters"
    predictor = Predictor(models["dense"], columns=["id"], on_error="dead_letter", dead_letter=folder)
    result = predictor(batch(rows))
    good = np.delete(np.arange(100), list(REASONS))
    y = result["y"].combine_chunks().to_numpy_ndarray() if isinstance(result, pa.Table) else result["y"]
    assert np.asarray(result["id"]).tolist() == good.tolist()
    assert y.tobytes() == wanted.tobytes()
    (file,) = folder.iterdir()
    letters = [{"id": row, "error": why} for row, why in REASONS.items()]
    if file.suffix == ".parquet":
        assert pq.read_table(file).to_pylist() == letters
    else:
        assert [json.loads(line) for line in file.read_text().splitlines()] == letters
    predictor(batch(rows))  # as a task that is tried again
    assert list(folder.iterdir()) == [file]
    assert predictor({"id": good, "x": rows[good]})["id"].tolist() == good.tolist()
    assert list(folder.iterdir()) == [file]


def test_letters_of_other_rows_are_other_files(models, rows, tmp_path: Path) -> None:
    predictor = Predictor(models["dense"], columns=["id"], on_error="dead_letter", dead_letter=tmp_path)
    predictor(arrays(rows))
    predictor(arrays(rows) | {"id": np.arange(100, 200)})
    assert len(list(tmp_path.iterdir())) == 2


def test_letters_with_what_json_has_no_word_for(models, tmp_path: Path) -> None:
    when = np.array(["2026-01-02"], "M8[D]")
    batch = {"x": np.array([["a"]], object), "n": np.array([np.nan]), "b": np.array([b"\xff"], object), "when": when}
    Predictor(models["dense"], on_error="dead_letter", dead_letter=tmp_path)(batch)
    (file,) = tmp_path.iterdir()
    letter = json.loads(file.read_text(), parse_constant=pytest.fail)
    assert letter == {
        "x": ["a"], "n": "nan", "b": "b'\\xff'", "when": "2026-01-02", "error": "column 'x': it holds what is no number"
    }  # fmt: skip


def test_nothing_is_left_of_letters_that_could_not_be_written(models, rows, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    predictor = Predictor(models["dense"], on_error="dead_letter", dead_letter=blocked, columns=[])
    with pytest.raises(InputError, match="file: it cannot be made"):
        predictor(arrays(rows))
    assert blocked.read_text() == ""


def test_rows_on_which_the_model_fails(models) -> None:
    index = np.arange(1000) % 10
    index[[3, 500]] = 10, -11
    with pytest.raises(BadRows) as raised:
        Predictor(models["looked_up"])({"index": index})
    assert list(raised.value.rows) == [3, 500]
    assert "10" in raised.value.rows[3]
    assert raised.value.__cause__ is not None
    result = Predictor(models["looked_up"], on_error="null")({"index": index})
    assert np.flatnonzero(np.isnan(result["row"]).any(axis=1)).tolist() == [3, 500]
    mended = np.where(np.isin(np.arange(1000), [3, 500]), 0, index)
    expected = Predictor(models["looked_up"])({"index": mended})["row"]
    good = np.delete(np.arange(1000), [3, 500])
    assert result["row"][good].tobytes() == expected[good].tobytes()


def test_the_hint_of_the_model_is_kept(models) -> None:
    with pytest.raises(BadRows) as raised:
        Predictor(models["looked_up"])({"index": np.array([1, 99])})
    cause = raised.value.__cause__
    assert raised.value.hint is not None
    assert raised.value.hint.endswith("sets such rows aside, and scores the others")
    assert cause.hint is None or cause.hint in raised.value.hint


def test_many_failing_rows_are_not_all_looked_for_where_they_are_raised(models) -> None:
    with pytest.raises(BadRows, match=r"^5 or more of 5000 rows") as raised:
        Predictor(models["looked_up"])({"index": np.full(5000, 77)})
    assert list(raised.value.rows) == [0, 1, 2, 3, 4]


def test_bad_rows_of_both_kinds_at_once(models) -> None:
    index = pa.array([1, None, 2, 55, 3])
    result = Predictor(models["looked_up"], on_error="null")(pa.table({"index": index}))
    values = result["row"].combine_chunks().to_numpy_ndarray()
    assert np.isnan(values).any(axis=1).tolist() == [False, True, False, True, False]
    assert result["error"][1].as_py() == "column 'index': it is null"
    assert "55" in result["error"][3].as_py()


def test_no_row_is_good(models, tmp_path: Path) -> None:
    for index in (np.array([11, 12]), np.ma.masked_array([1, 2], mask=True)):
        result = Predictor(models["looked_up"], on_error="null")({"index": index})
        assert result["row"].shape == (2, 4)
        assert np.isnan(result["row"]).all()
        assert all(result["error"])
        rest = Predictor(models["looked_up"], on_error="dead_letter", dead_letter=tmp_path)({"index": index})
        assert rest["row"].shape == (0, 4)


def test_a_column_of_another_type_is_bad_whole(models, rows) -> None:
    why = "column 'x': its elements are float64, and input 'x' takes float32: convert the column before"
    with pytest.raises(BadRows, match="100 of 100 rows cannot be scored:\n  row 0, 1, 2, 3, 4 and 95 more: column 'x'"):
        Predictor(models["dense"])({"x": rows.astype(np.float64)})
    result = Predictor(models["dense"], on_error="null")({"x": rows.astype(np.float64)})
    assert set(result["error"]) == {why}


def test_values_that_are_null_or_zero_where_there_is_no_nan(models) -> None:
    x = np.ma.masked_array(np.array([1.5, 2.5], np.float32), mask=[False, True])
    result = Predictor(models["flags"], on_error="null")({"x": x})
    assert result["y"].tolist() == [True, False]
    assert result["z"].tolist() == [1, 0]
    column = pa.array([1.5, None], pa.float32())
    table = Predictor(models["flags"], on_error="null", columns=[])(pa.table({"x": column}))
    assert table["y"].to_pylist() == [True, None]
    assert table["z"].to_pylist() == [1, None]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("text", "it is a str"),
        ({}, "it is a dict"),
        ([[1, 2], [3]], "its parts have several lengths"),
        ([1, None], "it is null"),
        (None, "it is null"),
        (np.zeros(8), "its elements are float64, and input 'x' takes float32: convert the column before"),
        (np.zeros(7, np.float32), "its shape is 7, and input 'x' takes 8"),
        (3.0, "its shape is one element, and input 'x' takes 8"),
    ],
)
def test_why_a_row_does_not_fit(models, value, why) -> None:
    result = Predictor(models["dense"], on_error="null")({"x": [value, [0.5] * 8]})
    assert result["error"].tolist() == [f"column 'x': {why}", ""]


def test_integers_are_not_rounded_and_not_wrapped(models) -> None:
    predictor = Predictor(models["looked_up"], on_error="null")
    values = [1, 1.5, 1 << 70, True, np.int32(3), np.int64(3), -1]
    errors = predictor({"index": values})["error"].tolist()
    assert errors[1] == errors[3] == "column 'index': it holds numbers that int64 has not"
    assert [bool(one) for one in errors] == [False, True, True, True, True, False, False]


def test_rows_of_several_shapes_are_no_batch(models) -> None:
    """None of them is bad: they cannot be run together."""
    for on_error in ("raise", "null"):
        with pytest.raises(InputError, match=r"input 'x': rows of a batch .* have several shapes: 2; 3\n  hint: pad"):
            Predictor(models["of_any_length"], on_error=on_error)({"x": [[1, 2], [1, 2, 3]]})


def test_a_folder_of_letters_is_written_to_once(tmp_path: Path) -> None:
    from tract_ray.dead_letters import lines_of_rows

    letters = lines_of_rows({"id": np.array([1, 2])})
    path = write_dead_letters(str(tmp_path), letters)
    before = path.stat().st_ino
    assert write_dead_letters(str(tmp_path), letters) == path
    assert path.stat().st_ino == before
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
