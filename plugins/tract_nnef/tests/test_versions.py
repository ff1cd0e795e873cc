"""Archives say who wrote them in which version of the format, and one of an unknown version is refused."""

from __future__ import annotations

import pytest
from cycles import small_model

import tract_core as tract
from tract_core.version import version


@pytest.fixture
def archive(tmp_path):
    tract.nnef().write_model_to_dir(tract.Model.from_typed(small_model()), tmp_path / "m")
    return tmp_path / "m"


def rewritten(archive, old: str, new: str) -> None:
    path = archive / "graph.nnef"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_an_archive_says_who_wrote_it(archive) -> None:
    text = (archive / "graph.nnef").read_text()
    assert f'("tract_nnef_ser_version", "{version()}")' in text
    assert '("tract_nnef_format_version", "beta1")' in text
    assert tract.load(archive).property_keys() == []


def test_a_version_that_is_not_known_is_refused_before_the_graph_is_read(archive) -> None:
    rewritten(archive, '"beta1"', '"omega9"')
    rewritten(archive, "exp(", "an_operator_of_the_future(")
    with pytest.raises(tract.errors.VersionError) as error:
        tract.load(archive)
    assert "the archive is of version 'omega9' of the format, beta1 can be read" in str(error.value)
    assert f"its writer was of version '{version()}'" in str(error.value)
    assert "hint: update tract-nnef, or cook the model again" in str(error.value)


def test_later_writers_of_the_same_format_are_read(archive) -> None:
    rewritten(archive, f'"{version()}"', '"99.0.0"')
    assert tract.load(archive).output_name(0) == "y"


def test_a_file_that_says_nothing_is_read(archive) -> None:
    path = archive / "graph.nnef"
    text = path.read_text()
    start, end = text.index("fragment"), text.index("graph network")
    path.write_text(text[:start] + text[end:])
    assert tract.load(archive).output_name(0) == "y"
