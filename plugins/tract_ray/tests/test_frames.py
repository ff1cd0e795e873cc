"""Frames of pandas: columns of numbers, of arrays and lists, of what may be null. Run by `make test-ray`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from row_models import dense_wanted
from tract_ray import Predictor

pd: Any = pytest.importorskip("pandas", reason="run by `make test-ray`")


def frame(rows: np.ndarray, as_list: bool = False) -> Any:
    column = [one.tolist() for one in rows] if as_list else list(rows)
    return pd.DataFrame({"id": np.arange(len(rows)), "x": column}, index=np.arange(len(rows)) + 1000)


@pytest.mark.parametrize("as_list", [False, True])
def test_columns_of_arrays_and_of_lists(models, rows, as_list) -> None:
    given = frame(rows, as_list)
    result = Predictor(models["dense"], columns=["id"])(given)
    assert isinstance(result, pd.DataFrame)
    assert list(result.columns) == ["id", "y"]
    assert result.index.tolist() == given.index.tolist()
    np.testing.assert_allclose(np.stack(list(result["y"])), dense_wanted(rows), rtol=1e-5, atol=1e-5)
    assert list(given.columns) == ["id", "x"]


def test_columns_of_numbers_are_read_where_they_are() -> None:
    from tract_ray.batches.frames import FrameBatch

    values = np.arange(5, dtype=np.float32)
    batch = FrameBatch(pd.DataFrame({"x": values}, copy=False))
    assert np.shares_memory(batch.column("x").values, values)


def test_numbers_that_may_be_null(models) -> None:
    given = pd.DataFrame({"x": pd.array([1.5, None, -1.0], "Float32")})
    result = Predictor(models["flags"], on_error="null", columns=[])(given)
    assert result["y"].tolist() == [True, pd.NA, False]
    assert result["z"].tolist() == [1, pd.NA, -1]
    assert result["error"].tolist() == [None, "column 'x': it is null", None]
    good = Predictor(models["flags"], on_error="null", columns=[])(given.iloc[[0, 2]])
    assert good.dtypes.tolist() == result.dtypes.tolist()


def test_nan_is_a_number(models) -> None:
    result = Predictor(models["flags"], outputs={"y": "y"})(pd.DataFrame({"x": np.array([np.nan, 1], np.float32)}))
    assert result["y"].tolist() == [False, True]


def test_bad_rows_are_null_or_set_aside(models, rows, tmp_path: Path) -> None:
    given = frame(rows, as_list=True)
    given.at[1017, "x"] = [1.0]
    given.at[1040, "x"] = None
    null = Predictor(models["dense"], columns=["id"], on_error="null")(given)
    assert null.index[null["y"].isna()].tolist() == [1017, 1040]
    assert null["error"].dropna().to_dict() == {
        1017: "column 'x': its shape is 1, and input 'x' takes 8",
        1040: "column 'x': it is null",
    }
    predictor = Predictor(models["dense"], columns=["id"], on_error="dead_letter", dead_letter=tmp_path)
    rest = predictor(given)
    assert rest.index.tolist() == [row for row in given.index if row not in {1017, 1040}]
    assert all(one.tobytes() == other.tobytes() for one, other in zip(rest["y"], null["y"].dropna(), strict=True))
    (file,) = tmp_path.iterdir()
    assert [json.loads(line)["id"] for line in file.read_text().splitlines()] == [17, 40]


def test_texts_and_columns_whose_names_are_no_texts(models) -> None:
    result = Predictor(models["texts"], columns=["0"])(pd.DataFrame({0: [1, 2], "x": ["a", "b"]}))
    assert result["y"].tolist() == ["a", "b"]
    assert result[0].tolist() == [1, 2]


def test_types_of_arrow(models) -> None:
    pytest.importorskip("pyarrow")
    given = pd.DataFrame({"index": pd.array([1, None, 3], "int64[pyarrow]")})
    result = Predictor(models["looked_up"], on_error="null")(given)
    assert result["error"].tolist() == [None, "column 'index': it is null", None]


def test_no_rows(models, rows) -> None:
    result = Predictor(models["dense"])(frame(rows).iloc[:0])
    assert list(result.columns) == ["id", "x", "y"]
    assert len(result) == 0
