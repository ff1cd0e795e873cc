"""Every operator takes every parameter in every form that the grammar allows, and computes the same."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import established
import numpy as np
import pytest
from established import interchange
from sweep import Document, forms, operators
from sweep_rows import APART, TABLE
from tars import END, entry
from tract_nnef.documents.loader import NnefLoader

from tract_core.runtime.plan import TypedSimplePlan

Array = np.ndarray[Any, Any]


def packed(document: Document) -> bytes:
    contents = {"graph.nnef": document.text.encode(), **document.files}
    return b"".join(entry(name, content) for name, content in contents.items()) + END


def found(document: Document) -> list[Array]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an update holds for one run
        return list(TypedSimplePlan(NnefLoader().load_bytes(packed(document))).run(document.inputs))


def test_the_table_has_every_operator() -> None:
    assert sorted({*TABLE, *APART}) == sorted(operators())


@pytest.mark.parametrize("name", TABLE)
def test_every_form_means_the_same(name: str) -> None:
    plain, *others = forms(name)
    wanted = found(plain)
    problems: list[str] = []
    for other in others:
        try:
            for one, expected in zip(found(other), wanted, strict=True):
                assert one.dtype == expected.dtype
                np.testing.assert_array_equal(one, expected)
        except Exception as error:
            problems.append(f"{other.form}: {type(error).__name__} {error}\n{other.text}")
    assert not problems, "\n".join(problems)


def unpacked(document: Document, folder: Path) -> Path:
    folder.mkdir()
    (folder / "graph.nnef").write_text(document.text)
    for name, content in document.files.items():
        (folder / name).write_bytes(content)
    return folder


OTHERWISE = {
    "tract_core_matmul": "it links the columns of the second matrix to the first",
    "tract_onnx_random": "its random numbers are others",
    "tract_onnx_ml_reverse_lookup": "it takes its arguments in another order",
    "tract_onnx_multinomial": "its random numbers are others",
    "tract_transformers_quantized_kv_sdpa": "it keeps keys in steps of at least 1",
}
"""What the engine computes otherwise."""

REFUSED = {
    *("gelu", "silu", "rcp", "add_n", "copy_n", "selu", "constant", "separable_deconv", "debox", "argmax_pool"),
    *("sample", "desample", "split", "gather", "update", "nearest_downsample", "area_downsample"),
    *("linear_quantize", "logarithmic_quantize", "min_max_linear_quantize", "zero_point_linear_quantize"),
    *("avg_roi_pool", "max_roi_pool", "roi_resample", "avg_roi_align", "max_roi_align", "tract_core_einsum_q"),
    *("tract_core_qmatmul", "tract_core_inner_dim_to_complex", "tract_core_complex_to_inner_dim"),
    *("tract_core_shape_of", "tract_onnx_ml_direct_lookup"),
}
"""Operators that the engine does not have, does not take as the table has them, or whose results it cannot give."""

AS_ONE_TENSOR = (": a name of a literal", ": a variable", " of floats", " of i32", ": the shape of a tensor")
"""Forms of a list of numbers of which the engine takes the first number alone."""


@interchange
@pytest.mark.parametrize("name", [name for name in TABLE if name not in OTHERWISE])
def test_what_the_established_engine_takes_means_the_same_there(name: str, tmp_path: Path) -> None:
    documents = [one for one in forms(name) if not one.is_list or not one.form.endswith(AS_ONE_TENSOR)]
    folders = [unpacked(document, tmp_path / str(place)) for place, document in enumerate(documents)]
    wanted = found(documents[0])
    outcomes = established.run_each(folders, [one.inputs for one in documents])
    assert isinstance(outcomes[0], str) is (name in REFUSED), outcomes[0]
    problems: list[str] = []
    for document, there in zip(documents, outcomes, strict=True):
        try:
            for one, expected in zip([] if isinstance(there, str) else there, wanted, strict=False):
                assert one.shape == expected.shape
                np.testing.assert_allclose(one.astype(expected.dtype), expected, rtol=1e-4, atol=1e-5)
        except AssertionError as error:
            problems.append(f"{document.form}: {error}\n{document.text}")
    assert not problems, "\n".join(problems)
