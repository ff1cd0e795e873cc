"""Properties of models."""

from __future__ import annotations

import pytest

import tract_core as tract
from tract_core import Model
from tract_core.errors import TransformError
from tract_core.model import TypedModel
from tract_core.transforms.set_property import SetProperty


def test_a_property_is_set_and_replaced_and_is_in_archives(network, tmp_path) -> None:
    model = Model.from_typed(network())
    model.transform('{"name": "set_property", "key": "tract.name", "value": "first"}')
    model.transform('{"name": "set_property", "key": "tract.name", "value": "a \\"name\\"\\nof \u03b1"}')
    model.save(tmp_path / "m.nnef.tar")
    assert tract.load(tmp_path / "m.nnef.tar").typed.properties["tract.name"].item() == 'a "name"\nof \u03b1'


@pytest.mark.parametrize(
    ("key", "value", "problem"),
    [
        (3, "a", "'key' is 3, wanted a text"),
        ("a", None, "'value' is None, wanted a text"),
        ("", "a", "'key' is empty"),
    ],
)
def test_what_is_no_text_is_refused(key, value, problem) -> None:
    with pytest.raises(TransformError, match=problem):
        SetProperty(key, value).apply(TypedModel())
