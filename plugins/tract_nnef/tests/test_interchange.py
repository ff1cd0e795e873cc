"""Archives go to the established engine and back, and mean the same there."""

from __future__ import annotations

import established
import numpy as np
import pytest
from established import Refused, interchange
from test_cycle import small

import tract_core as tract
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.same import same_model
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.elementwise import Exp


@interchange
@pytest.mark.parametrize("name", ["m.nnef.tgz", "m.tar", "m"])
def test_an_archive_means_the_same_there(name, tmp_path) -> None:
    model = tract.Model.from_typed(small())
    model.save(tmp_path / name, format_name="nnef")
    x = np.array([[-1, 0, 1], [0.5, -2.5, 3]], np.float32)
    y, z = established.run(tmp_path / name, [x])
    added = x + np.arange(3)
    np.testing.assert_allclose(y, np.exp(added), rtol=1e-6)
    np.testing.assert_allclose(z, np.maximum(added, 0), rtol=1e-6)


@interchange
def test_what_is_written_there_is_read_here(tmp_path) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,3,f32", model.symbols))
    (e,) = model.wire_node("e", Exp(), [x])
    model.set_outputs(model.wire_node("y", Add(), [e, x]))
    tract.Model.from_typed(model).save(tmp_path / "ours.tar")
    established.write(tmp_path / "ours.tar", tmp_path / "theirs.tar")
    found = tract.load(tmp_path / "theirs.tar")
    assert same_model(found.typed, tract.load(tmp_path / "ours.tar").typed)


@interchange
def test_an_archive_that_is_refused_there_says_why(tmp_path) -> None:
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "graph.nnef").write_text("version 1.0; graph g(x) -> (y) { y = nothing(x); }")
    with pytest.raises(Refused, match="nothing"):
        established.run(tmp_path / "m", [])
