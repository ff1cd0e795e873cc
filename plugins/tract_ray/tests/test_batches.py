"""Batches of NumPy and of Arrow: what comes back, and that numbers are not copied on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from row_models import dense_wanted
from tract_ray import Predictor
from tract_ray.batches import batch_of
from tract_ray.batches.arrow import arrow_array
from tract_ray.batches.arrow_columns import column_of

from tract_core.errors import InputError, Unsupported


def tensors(array: np.ndarray) -> Any:
    return pa.FixedShapeTensorArray.from_numpy_ndarray(np.ascontiguousarray(array))


def lists(array: np.ndarray) -> Any:
    return pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), array[0].size)


def free_lists(array: np.ndarray) -> Any:
    offsets = np.arange(0, array.size + 1, array[0].size, np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(array.reshape(-1)))


def large_lists(array: np.ndarray) -> Any:
    offsets = np.arange(0, array.size + 1, array[0].size)
    return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(array.reshape(-1)))


COLUMNS = [tensors, lists, free_lists, large_lists]


def bits(array: Any) -> bytes:
    return np.ascontiguousarray(array).tobytes()


def test_a_dictionary_gets_the_outputs_as_further_columns(models, rows) -> None:
    names = np.array([f"row {number}" for number in range(100)], object)
    result = Predictor(models["dense"])({"id": names, "x": rows})
    assert list(result) == ["id", "x", "y"]
    assert result["id"] is names
    assert result["x"] is rows
    assert result["y"].dtype == np.float32
    np.testing.assert_allclose(result["y"], dense_wanted(rows), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("column", COLUMNS)
def test_a_table_gives_the_bits_that_arrays_give(models, rows, column) -> None:
    predictor = Predictor(models["dense"], columns=["id"])
    result = predictor(pa.table({"id": np.arange(100), "x": column(rows)}))
    assert isinstance(result, pa.Table)
    assert result.column_names == ["id", "y"]
    assert result["y"].type.extension_name == "arrow.fixed_shape_tensor"
    assert bits(result["y"].combine_chunks().to_numpy_ndarray()) == bits(predictor({"id": rows, "x": rows})["y"])


@pytest.mark.parametrize("column", COLUMNS)
def test_columns_of_arrow_are_read_where_they_are(rows, column) -> None:
    array = column(rows)
    found = column_of(array)
    assert np.shares_memory(found.values, rows)
    np.testing.assert_array_equal(found.values, rows)
    part = column_of(array.slice(7, 20))
    assert np.shares_memory(part.values, rows)
    np.testing.assert_array_equal(part.values, rows[7:27])


def test_numbers_of_arrow_are_read_where_they_are() -> None:
    numbers = np.arange(10, dtype=np.int64)
    assert np.shares_memory(column_of(pa.array(numbers)).values, numbers)


def test_tensors_with_their_axes_in_another_order() -> None:
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    kind = pa.fixed_shape_tensor(pa.float32(), (3, 4), permutation=[1, 0])
    column = pa.ExtensionArray.from_storage(kind, lists(array))
    np.testing.assert_array_equal(column_of(column).values, array.transpose(0, 2, 1))


def test_outputs_become_columns_where_they_are(rows) -> None:
    column = arrow_array(rows, "y")
    assert np.shares_memory(column.to_numpy_ndarray(), rows)
    assert np.shares_memory(arrow_array(rows.reshape(-1), "y").to_numpy(), rows)


def test_what_the_model_is_given_is_the_memory_of_the_table(models, rows, monkeypatch) -> None:
    """Between the table and the run, nothing is copied; and the arrays are as Ray's, read-only."""
    predictor = Predictor(models["dense"])
    given = []
    model = predictor._scoring._model
    run = model.run
    object.__setattr__(model, "run", lambda arrays: given.extend(arrays) or run(arrays))
    try:
        predictor(pa.table({"x": tensors(rows)}))
        view = rows.view()
        view.flags.writeable = False
        predictor({"x": view})
    finally:
        object.__setattr__(model, "run", run)
    assert [np.shares_memory(one, rows) for one in given] == [True, True]
    assert not given[0].flags.writeable


def test_a_table_in_several_pieces(models, rows) -> None:
    predictor = Predictor(models["dense"])
    pieces = pa.concat_tables([pa.table({"x": tensors(rows[:30])}), pa.table({"x": tensors(rows[30:])})])
    assert bits(predictor(pieces)["y"].combine_chunks().to_numpy_ndarray()) == bits(predictor({"x": rows})["y"])


def test_a_record_batch_gives_one(models, rows) -> None:
    batch = pa.RecordBatch.from_arrays([tensors(rows)], ["x"])
    for on_error in ("raise", "null"):
        result = Predictor(models["dense"], on_error=on_error)(batch)
        assert isinstance(result, pa.RecordBatch)
        assert result.num_rows == 100
    assert Predictor(models["dense"])(batch.slice(0, 0)).num_rows == 0


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_batches_of_few_rows(models, rows, count) -> None:
    predictor = Predictor(models["dense"], columns=[])
    arrays = predictor({"x": rows[:count]})
    assert arrays["y"].shape == (count, 8)
    assert arrays["y"].dtype == np.float32
    table = predictor(pa.table({"x": tensors(rows).slice(0, count)}))
    assert table.num_rows == count
    assert table.schema == predictor(pa.table({"x": tensors(rows)})).schema


def test_no_rows_of_any_kind(models) -> None:
    """Types are told as far as the model knows them."""
    assert Predictor(models["looked_up"])({"index": np.zeros(0, np.int64)})["row"].shape == (0, 4)
    assert Predictor(models["of_one_row"])({"x": np.zeros((0, 3, 5), np.float32)})["total"].shape == (0, 5)
    assert Predictor(models["of_any_length"])({"x": np.zeros((0, 6), np.float32)})["y"].shape == (0, 6)
    assert Predictor(models["dense"])({"x": []})["y"].shape == (0, 8)


def test_types_of_outputs_in_arrow(models) -> None:
    x = tensors(np.array([[1.5, -2.0], [0.0, 3.0]], np.float32))
    for name, kind in (("f2", pa.float16()), ("i8", pa.int64()), ("u1", pa.uint8())):
        result = Predictor(models[f"casts_{name}"], columns=[])(pa.table({"x": x}))
        assert result["y"].type == pa.fixed_shape_tensor(kind, (2,))
    truth = Predictor(models["casts_?"], columns=[])(pa.table({"x": x}))
    assert truth["y"].to_pylist() == [[True, True], [False, True]]
    flags = Predictor(models["flags"], columns=[])(pa.table({"x": pa.array([1.5, -2.0], pa.float32())}))
    assert flags.to_pydict() == {"y": [True, False], "z": [1, -2]}
    with pytest.raises(Unsupported, match="output 'y': Arrow has no bfloat16\n  hint: have the model cast"):
        Predictor(models["casts_bf16"])(pa.table({"x": x}))
    assert Predictor(models["casts_bf16"])({"x": np.ones((2, 2), np.float32)})["y"].dtype.name == "bfloat16"


def test_nan_is_a_number_and_no_null(models) -> None:
    x = np.full((3, 8), np.nan, np.float32)
    x[1] = np.inf
    for on_error in ("raise", "null"):
        result = Predictor(models["of_any_length"], columns=[], on_error=on_error)(pa.table({"x": tensors(x)}))
        assert result["y"].null_count == 0
        np.testing.assert_array_equal(result["y"].combine_chunks().to_numpy_ndarray(), x)


def test_texts(models) -> None:
    predictor = Predictor(models["texts"], outputs={"y": "same"}, columns=[], on_error="null")
    table = predictor(pa.table({"x": ["a", None, "ä"]}))
    assert table["same"].to_pylist() == ["a", None, "ä"]
    assert table["error"].to_pylist() == [None, "column 'x': it is null", None]
    for x in (np.array(["a", "b"]), np.array(["a", "b"], object), ["a", "b"]):
        assert predictor({"x": x})["same"].tolist() == ["a", "b"]


def test_columns_of_no_kind_that_a_model_takes() -> None:
    """They are given by row, as Python has them, and refused one by one."""
    array = pa.array([{"a": 1}, None])
    assert column_of(array).values == [{"a": 1}, None]
    assert column_of(pa.array([[[1, 2], None], None])).values == [[[1, 2], None], None]
    assert column_of(pa.array(["a", "b", "a"]).dictionary_encode()).values.tolist() == ["a", "b", "a"]


def test_what_is_no_batch() -> None:
    with pytest.raises(InputError, match=r"a batch is a dictionary of NumPy arrays, a pyarrow\.Table or a pandas"):
        batch_of([1, 2])
    with pytest.raises(InputError, match=r"as many rows as each other; got \[1, 2\]"):
        batch_of({"a": np.zeros(1), "b": np.zeros(2)})
    with pytest.raises(InputError, match=r"column 'a': columns are NumPy arrays; got int\n  hint: numpy\.asarray"):
        batch_of({"a": 1})
    with pytest.raises(InputError, match="column 'a': a column has an axis of rows, and this is one number"):
        batch_of({"a": np.zeros(())})
